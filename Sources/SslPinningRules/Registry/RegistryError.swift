import CanonicalJSON

/// Why a document is not accepted as a registry. No pin of a refused document is ever used.
public enum RegistryError: Error, Equatable, Sendable {
  /// More bytes than the limit.
  case tooLarge(limit: Int)
  /// Not strict I-JSON.
  case malformed(JSONError)
  /// JSON of another shape: this member is missing or has another type.
  case missingMember(String)
  /// The signature is not base64.
  case unreadableSignature
  /// The signature does not belong to the payload under the given key.
  case badSignature
  /// Signed and well-formed, but no entry has both a readable host and a readable pin. Such a list would refuse
  /// every host.
  case noUsableKey
  /// A key set cannot be believed; those before it are.
  case invalidKeySet(epoch: Int64, DocumentFault)
  /// The newest key set expired at this Unix time: nothing new is accepted under it.
  case keySetExpired(epoch: Int64, at: Int64)
  /// The statement cannot be believed.
  case invalidStatement(DocumentFault)
  /// The statement requires these members, which this client does not know. The previous one stays in force.
  case clientTooOld([String])
  /// The statement is older than the minimum that the app ships.
  case olderThanShipped(RegistryMinimum)
  /// The statement expired at this Unix time.
  case statementExpired(at: Int64)
  /// The statement's number is lower than that of the believed one.
  case rolledBack(to: RegistryStamp.Version, from: RegistryStamp.Version)
  /// The payload is not the one that the statement is about.
  case otherPayload
  /// There is no statement, although there was one before.
  case statementStripped
  /// There is no statement, and the app requires one.
  case statementRequired
  /// It did not come from its server, no statement is believed yet, and the app ships no minimum: anybody could
  /// hand over an old document.
  case minimumRequired
  /// There is no statement, and the app ships no format-1 key.
  case noFormat1Key
  /// The stored state is unreadable, or of another version.
  case unreadableState
}

extension RegistryError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .tooLarge(let limit): "the registry is larger than \(limit) bytes"
    case .malformed(let error): "the registry is not strict JSON: \(error)"
    case .missingMember(let name): "the document has no \(name); hint: is this a registry?"
    case .unreadableSignature: "the signature is not base64"
    case .badSignature:
      "the signature does not match the payload; hint: is this the registry's signing key?"
    case .noUsableKey: "the registry holds no usable key"
    case .invalidKeySet(let epoch, let fault): "key set \(epoch) is refused: \(fault)"
    case .keySetExpired(let epoch, let time):
      "key set \(epoch) expired on \(RFC3339.text(time)); hint: is the device's clock ahead? if not, the root keys must sign a new one"
    case .invalidStatement(let fault): "the statement is refused: \(fault)"
    case .clientTooOld(let names):
      "the registry needs a newer version of SslPinning, which knows its "
        + ForeignText.list(names)
        + "; hint: update the app"
    case .olderThanShipped(let minimum):
      "the registry is older than \(minimum), which the app ships; hint: is this an old copy?"
    case .statementExpired(let time):
      "the statement expired on \(RFC3339.text(time)); hint: is the device's clock ahead? does the registry's server still sign?"
    case .rolledBack(let to, let from):
      "version \(to) after \(from): rolled back"
    case .otherPayload: "the payload is not the one that the statement was signed for"
    case .statementStripped: "the statement is missing, and this registry had one"
    case .statementRequired:
      "the document has no statement that vouches for its list, and one is required"
    case .minimumRequired:
      "the first registry cannot be handed over without a minimum; hint: ship minimumRegistry"
    case .noFormat1Key:
      "the document has no statement; hint: without one a signingKeyBase64 is needed"
    case .unreadableState: "the stored state is not readable; hint: it is made anew"
    }
  }
}

/// What is wrong with a key set or a statement.
public enum DocumentFault: Error, Equatable, Sendable {
  /// This member is missing or invalid.
  case member(String)
  /// The document has this other type.
  case otherType(String)
  /// The document is for this other registry.
  case otherRegistry(String)
  /// A key set of this epoch is in the place of another, or a statement names this epoch while another key set
  /// is the newest.
  case epoch(Int64, expected: Int64)
  /// A role names a key twice.
  case duplicateKey(SPKIPin)
  /// A threshold of zero, or above the number of keys.
  case threshold(Int64, keys: Int)
  /// A key does not fit its entry's algorithm.
  case unusableKey(SPKIPin)
  /// One key signs twice.
  case signsTwice(keyID: String)
  /// None of the required keys has signed: perhaps it is another registry's document.
  case notSigned(by: Signers)
  /// Fewer of the required keys have signed than must.
  case tooFewSignatures(of: Signers, count: Int, threshold: Int)
  /// Another document with the same number is already believed.
  case conflict
  /// The expiry is not after the issue.
  case expiresBeforeIssue
  /// It would be valid for longer than any statement may: more than so many days.
  case livesTooLong(days: Int64)
  /// These members are marked critical and are unknown here.
  case unknownCritical([String])
}

extension DocumentFault {
  /// Whose signatures are required.
  public enum Signers: Hashable, Sendable {
    /// The keys that sign statements in this epoch.
    case onlineKeys(epoch: Int64)
    /// The keys that sign the key set after this one.
    case root(epoch: Int64)
    /// The key set's own root, which must sign besides the previous root.
    case ownRoot
  }
}

extension DocumentFault.Signers: CustomStringConvertible {
  public var description: String {
    switch self {
    // An app that ships one key need not know that it has two roles of an epoch.
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
