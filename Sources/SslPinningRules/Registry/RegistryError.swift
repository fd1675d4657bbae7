import CanonicalJSON

/// Why a document is not accepted as a registry. Nothing of a refused document is ever used.
public enum RegistryError: Error, Equatable, Sendable {
  /// More bytes than the limit.
  case tooLarge(limit: Int)
  /// Not strict I-JSON.
  case malformed(JSONError)
  /// JSON of another shape: this member is missing or of another type.
  case missingMember(String)
  /// The signature is not base64.
  case unreadableSignature
  /// The signature does not belong to the payload under the given key.
  case badSignature
  /// Signed and well-formed, and not one entry has both a readable host and a readable pin. An
  /// empty list is no list: it would refuse every host.
  case noUsableKey
  /// A key set cannot be believed; those before it are.
  case invalidKeySet(epoch: Int64, DocumentFault)
  /// The newest key set expired at this Unix time: nothing new is accepted under it.
  case keySetExpired(epoch: Int64, at: Int64)
  /// The statement cannot be believed.
  case invalidStatement(DocumentFault)
  /// The statement demands what this client does not know: these members. The one before stays in force.
  case clientTooOld([String])
  /// The statement is older than what the app ships beside its keys.
  case olderThanShipped(RegistryMinimum)
  /// The statement expired at this Unix time.
  case statementExpired(at: Int64)
  /// The statement's number is lower than the one that is believed.
  case rolledBack(to: RegistryStamp.Version, from: RegistryStamp.Version)
  /// The payload is not the one that the statement is about.
  case otherPayload
  /// There is no statement, and there was one before.
  case statementStripped
  /// There is no statement, and the app demands one.
  case statementRequired
  /// It came by another road than its server's, no statement is believed yet, and the app ships no minimum:
  /// anybody could hand over an old one.
  case minimumRequired
  /// There is no statement, and the app ships no key for documents without.
  case noFormat1Key
  /// A stored state is not one of this registry and version.
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
      "key set \(epoch) expired on \(RFC3339.text(time)); hint: the root keys must sign a new one"
    case .invalidStatement(let fault): "the statement is refused: \(fault)"
    case .clientTooOld(let names):
      "the registry needs a newer version of SslPinning, which knows its "
        + ForeignText.list(names)
        + "; hint: update the app"
    case .olderThanShipped(let minimum):
      "the registry is older than \(minimum), which the app ships; hint: is this an old copy?"
    case .statementExpired(let time):
      "the statement expired on \(RFC3339.text(time)); hint: does the registry's server still sign?"
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
