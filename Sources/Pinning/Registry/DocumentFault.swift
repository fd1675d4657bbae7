/// What is wrong with a key set or a statement.
public enum DocumentFault: Error, Equatable, Sendable {
  /// This member is missing or not what it must be.
  case member(String)
  /// The document is of this type.
  case otherType(String)
  /// The document is of this registry.
  case otherRegistry(String)
  /// A key set of this epoch stands where another belongs, or a statement names it and another key
  /// set is the newest.
  case epoch(Int64, expected: Int64)
  /// A role names a key twice.
  case duplicateKey(SPKIPin)
  /// A threshold of zero, or above the number of keys.
  case threshold(Int64, keys: Int)
  /// A key that is not what its entry says.
  case unusableKey(SPKIPin)
  /// One key signs twice.
  case signsTwice(keyID: String)
  /// Too few of the keys that must sign did.
  case notSigned(by: String)
  /// Another document of the same number is believed already.
  case conflict
  /// The expiry is not after the issue.
  case expiresBeforeIssue
}

extension DocumentFault: CustomStringConvertible {
  public var description: String {
    switch self {
    case .member(let name): "its \(name) is missing or malformed"
    case .otherType(let type): "it is of type \"\(type)\""
    case .otherRegistry(let name): "it belongs to the registry \"\(name)\""
    case .epoch(let found, let expected): "it is of epoch \(found), and \(expected) is due"
    case .duplicateKey(let id): "key \(id) stands twice in one role"
    case .threshold(let threshold, let keys): "a threshold of \(threshold) over \(keys) keys"
    case .unusableKey(let id): "key \(id) is not what its entry says"
    case .signsTwice(let id): "key \(id) signs twice"
    case .notSigned(let role): "too few signatures of \(role)"
    case .conflict: "it differs from the one of the same number that is believed"
    case .expiresBeforeIssue: "it expires before it is issued"
    }
  }
}
