import SslPinningPlatform

/// Why a configuration is not used. Nothing of a refused configuration takes effect.
///
/// `key` is the path of the member in question, as in `keys[2].fqdn`; `at` is where it was set.
public enum ConfigurationError: Error, Equatable, Sendable {
  /// The file could not be read; `reason` is the system's.
  case unreadable(path: String, reason: String)
  /// Larger than the limit in bytes.
  case tooLarge(limit: Int)
  /// Not YAML.
  case notYAML(line: Int, reason: String)
  /// An environment variable for a list is not JSON.
  case notJSON(variable: String, reason: String)
  /// A key that this server does not know, and the known key that is spelled most like it.
  case unknownKey(key: String, at: ConfigurationOrigin, similar: String?)
  /// An environment variable of this server's that stands for no key, and one that is much like it.
  case unknownVariable(name: String, similar: String?)
  /// A key that stands twice in one mapping. YAML readers differ on which of the two counts.
  case repeatedKey(key: String, at: ConfigurationOrigin, first: ConfigurationOrigin)
  /// A value of another kind than expected.
  case wrongType(key: String, at: ConfigurationOrigin, expected: String, found: String)
  /// A key that must be given.
  case missing(key: String, at: ConfigurationOrigin, hint: String)
  /// A value of the right kind that cannot be used.
  case invalid(key: String, at: ConfigurationOrigin, reason: String, hint: String?)
  /// Two or more of the others: whoever writes a configuration reads all of them at once.
  case several([ConfigurationError])

  /// Where the offence is; `nil` where it is the file as a whole.
  public var origin: ConfigurationOrigin? {
    switch self {
    case .unreadable, .tooLarge: nil
    case .notYAML(let line, _): .file(line: line)
    case .notJSON(let name, _), .unknownVariable(let name, _): .environment(name: name)
    case .unknownKey(_, let origin, _), .repeatedKey(_, let origin, _),
      .wrongType(_, let origin, _, _), .missing(_, let origin, _), .invalid(_, let origin, _, _):
      origin
    case .several(let all): all.first?.origin
    }
  }

  /// The description, with the name of the file before the line.
  public func description(file: String) -> String {
    if case .several(let all) = self {
      return Self.lines(all) { $0.description(file: file) }
    }
    return switch origin {
    case .file: "\(file): \(self)"
    case nil, .standard, .keysFile, .environment, .flag: description
    }
  }
}

extension ConfigurationError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .unreadable(let path, let reason): return "cannot read \(path): \(reason)"
    case .tooLarge(let limit): return "the configuration is larger than \(limit) bytes"
    case .several(let all): return Self.lines(all, \.description)
    case .notYAML, .notJSON, .unknownKey, .unknownVariable, .repeatedKey, .wrongType, .missing,
      .invalid:
      break
    }
    let (cause, hint) = parts
    let place = origin.map { $0 == .standard ? "" : "\($0): " } ?? ""
    return place + cause + (hint.map { "; hint: \($0)" } ?? "")
  }

  /// A template that is wrong once is wrong in thousands of entries.
  private static func lines(
    _ errors: [ConfigurationError], _ line: (ConfigurationError) -> String
  ) -> String {
    let most = 20
    let more = errors.count > most ? ["and \(errors.count - most) more"] : []
    return (errors.prefix(most).map(line) + more).joined(separator: "\n")
  }

  private var parts: (cause: String, hint: String?) {
    switch self {
    case .unreadable(_, let reason): (reason, nil)
    case .tooLarge: ("too large", nil)
    case .several(let all): (Self.lines(all, \.description), nil)
    case .notYAML(_, let reason):
      (
        "not YAML: \(reason)",
        // libyaml's words for a tab where a line begins.
        reason.contains("cannot start any token") ? "YAML is indented by blanks, not by tabs" : nil
      )
    case .notJSON(_, let reason):
      ("not JSON: \(reason)", "write a list, as in [{\"fqdn\": \"www.example.com\"}] or [\"…\"]")
    case .unknownKey(let key, _, let similar):
      ("unknown key \(key)", similar.map { "did you mean \($0)?" })
    case .unknownVariable(_, let similar):
      (
        "unknown variable",
        similar.map { "did you mean \($0)?" }
          ?? "the names are \(Setting.variablePrefix) and a key, as in \(Setting.logLevel.variable)"
      )
    case .repeatedKey(let key, _, .file(let line)):
      ("\(key) stands twice", "it was first set on line \(line); keep one of them")
    case .repeatedKey(let key, _, .keysFile(_, let line)):
      ("\(key) stands twice", "it was first set on line \(line); keep one of them")
    case .repeatedKey(let key, _, _): ("\(key) stands twice", "keep one of them")
    case .wrongType(let key, _, let expected, let found):
      ("\(key) is \(found)", "\(expected) is expected")
    case .missing(let key, _, let hint): ("\(key) is missing", hint)
    case .invalid(let key, _, let reason, let hint): ("\(key): \(reason)", hint)
    }
  }
}

extension ConfigurationError: ExplainedError {}

/// What is wrong with a configuration, gathered while it is read.
struct ConfigurationFindings {
  private var errors: [ConfigurationError] = []

  var isEmpty: Bool { errors.isEmpty }

  /// What `read` comes to; `nil` where it throws, which is kept.
  @discardableResult
  mutating func gather<Value>(
    _ read: () throws(ConfigurationError) -> Value
  ) -> Value? {
    do throws(ConfigurationError) { return try read() } catch {
      add(error)
      return nil
    }
  }

  mutating func add(_ error: ConfigurationError) {
    if case .several(let all) = error { errors += all } else { errors.append(error) }
  }

  /// - Throws: what was gathered.
  func end() throws(ConfigurationError) {
    guard let first = errors.first else { return }
    throw errors.count == 1 ? first : .several(errors)
  }
}

/// Where a value of the configuration was set.
public enum ConfigurationOrigin: Sendable, Hashable {
  /// Nowhere: it is the default.
  case standard
  /// In the file, on this line, counted from 1.
  case file(line: Int)
  /// In a file of `keys_dir`, on this line.
  case keysFile(path: String, line: Int)
  /// In an environment variable.
  case environment(name: String)
  /// By a flag of the command line, such as `--log-level`.
  case flag(name: String)

  /// The line, where it is in the file.
  var line: Int? {
    if case .file(let line) = self { line } else { nil }
  }
}

extension ConfigurationOrigin: CustomStringConvertible {
  public var description: String {
    switch self {
    case .standard: "default"
    case .file(let line): "line \(line)"
    case .keysFile(let path, let line): "\(path): line \(line)"
    case .environment(let name), .flag(let name): name
    }
  }
}
