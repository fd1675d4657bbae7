import SslPinningPlatform
import SslPinningRules

/// What clients that know format 1 only make of a document's signature.
enum Format1Signature: String, Sendable {
  case valid, invalid, missing
  /// Nobody said what key they have.
  case unknown

  /// Checks the signature of a document that was parsed already.
  init(of document: [UInt8], by key: VerificationKey?) {
    guard let key else {
      self = .unknown
      return
    }
    let envelope = try? RegistryEnvelope(parsing: document)
    if envelope?.document["signature"] == nil {
      self = .missing
    } else {
      self = (try? envelope?.verifiedPayload(by: key)) == nil ? .invalid : .valid
    }
  }

  /// What an operator has to know.
  var problem: String? {
    switch self {
    case .valid, .unknown: nil
    case .invalid, .missing:
      "the format-1 signature is \(rawValue): clients that know no statements refuse the document"
    }
  }
}
