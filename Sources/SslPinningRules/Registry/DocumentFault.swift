import CanonicalJSON

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
  /// Not one of the keys that must sign did: perhaps it is another registry's.
  case notSigned(by: Signers)
  /// Some of the keys that must sign did, and fewer than must.
  case tooFewSignatures(of: Signers, count: Int, threshold: Int)
  /// Another document of the same number is believed already.
  case conflict
  /// The expiry is not after the issue.
  case expiresBeforeIssue
  /// It would live for longer than any statement may: more than so many days.
  case livesTooLong(days: Int64)
  /// These members are said to be critical, and nobody here knows them.
  case unknownCritical([String])
}

extension DocumentFault {
  /// Whose signatures are asked for.
  public enum Signers: Hashable, Sendable {
    /// Those that sign statements in this epoch.
    case onlineKeys(epoch: Int64)
    /// Those that sign the key set after this one.
    case root(epoch: Int64)
    /// The key set's own root, which signs beside the root before it.
    case ownRoot
  }
}

extension DocumentFault.Signers: CustomStringConvertible {
  public var description: String {
    switch self {
    // Whoever ships one key need not know that it is two roles of an epoch.
    case .onlineKeys(epoch: 0), .root(epoch: 0): "the keys that the app ships"
    case .onlineKeys(let epoch): "the online keys of epoch \(epoch)"
    case .root(let epoch): "the root keys of epoch \(epoch)"
    case .ownRoot: "its own root keys"
    }
  }
}

extension DocumentFault: CustomStringConvertible {
  public var description: String {
    switch self {
    case .member(let name): "its \(name) is missing or malformed"
    case .otherType(let type): "it is of type \(ForeignText(type))"
    case .otherRegistry(let name): "it belongs to the registry \(ForeignText(name))"
    case .epoch(let found, let expected): "it is of epoch \(found), and \(expected) is due"
    case .duplicateKey(let id): "key \(id) stands twice in one role"
    case .threshold(let threshold, let keys):
      "a threshold of \(threshold) over \(keys) keys; hint: from 1 to as many as there are"
    case .unusableKey(let id): "key \(id) is not what its entry says"
    case .signsTwice(let id): "key \(ForeignText(id)) signs twice"
    case .notSigned(.onlineKeys(epoch: 0)), .notSigned(.root(epoch: 0)):
      "none of \(Signers.root(epoch: 0)) signed it; hint: is this the registry's signing key?"
    case .notSigned(let keys): "none of \(keys) signed it"
    case .tooFewSignatures(let keys, let count, let threshold):
      "\(count) of \(keys) signed it, and \(threshold) must"
    case .conflict: "it differs from the one of the same number that is believed"
    case .expiresBeforeIssue: "it expires before it is issued"
    case .livesTooLong(let days): "it lives for more than \(days) days"
    case .unknownCritical(let names):
      "this version does not know its \(ForeignText.list(names))"
        + "; hint: update SslPinning"
    }
  }
}
