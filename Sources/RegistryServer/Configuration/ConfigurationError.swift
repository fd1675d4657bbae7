/// Why a configuration is not used. Nothing of a refused configuration takes effect.
///
/// `key` is the path of the member in question, as in `keys[2].fqdn`; `line` counts from 1.
public enum ConfigurationError: Error, Equatable, Sendable {
  /// The file could not be read; `reason` is the system's.
  case unreadable(path: String, reason: String)
  /// Larger than the limit in bytes.
  case tooLarge(limit: Int)
  /// Not YAML.
  case notYAML(line: Int, reason: String)
  /// A key that this server does not know, and the known key that is spelled most like it.
  case unknownKey(key: String, line: Int, similar: String?)
  /// A key that stands twice in one mapping. YAML readers differ on which of the two counts.
  case repeatedKey(key: String, line: Int, firstLine: Int)
  /// A value of another kind than expected.
  case wrongType(key: String, line: Int, expected: String, found: String)
  /// A key that must be given.
  case missing(key: String, line: Int, hint: String)
  /// A value of the right kind that cannot be used.
  case invalid(key: String, line: Int, reason: String, hint: String?)
}

extension ConfigurationError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .unreadable(let path, let reason): "cannot read \(path): \(reason)"
    case .tooLarge(let limit): "the configuration is larger than \(limit) bytes"
    case .notYAML(let line, let reason): "line \(line): not YAML: \(reason)"
    case .unknownKey(let key, let line, let similar):
      "line \(line): unknown key \(key)" + (similar.map { "; hint: did you mean \($0)?" } ?? "")
    case .repeatedKey(let key, let line, let firstLine):
      "line \(line): \(key) stands twice; hint: it was first set on line \(firstLine)"
    case .wrongType(let key, let line, let expected, let found):
      "line \(line): \(key) is \(found); hint: \(expected) is expected"
    case .missing(let key, let line, let hint): "line \(line): \(key) is missing; hint: \(hint)"
    case .invalid(let key, let line, let reason, let hint):
      "line \(line): \(key): \(reason)" + (hint.map { "; hint: \($0)" } ?? "")
    }
  }
}
