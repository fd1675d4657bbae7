import CanonicalJSON
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// A pin that was found in a file or on a server, with what it belongs to.
struct PinnedKey: Sendable {
  enum Role: String, Sendable {
    /// A server's certificate, or any that signs no others.
    case leaf
    /// A certificate that may sign others.
    case ca
    /// A public key without a certificate.
    case key
    /// A request for a certificate (PKCS#10, RFC 2986): the key that is to be used next.
    case request
    /// A certificate that OpenSSL cannot parse; its key has a pin all the same.
    case unknown
  }

  let pin: SPKIPin
  let role: Role
  private let certificate: Certificate?

  /// The pin of a certificate in DER.
  ///
  /// - Parameter role: what it is used as, where that is known otherwise.
  /// - Throws: where the framing is broken. Nothing but the framing is needed for a pin.
  init(certificateDER der: [UInt8], as role: Role? = nil) throws(CertificateSyntaxError) {
    pin = try SPKIPin(certificateDER: der)
    certificate = try? Certificate(der: der)
    self.role = role ?? certificate.map { $0.isAuthority ? .ca : .leaf } ?? .unknown
  }

  /// The pin of a public key in DER (SubjectPublicKeyInfo).
  init(publicKeyDER der: [UInt8]) throws(CertificateSyntaxError) {
    pin = try SPKIPin(subjectPublicKeyInfoDER: der)
    certificate = nil
    role = .key
  }

  /// The pin of the key in a certificate request in DER.
  ///
  /// - Throws: ``CertificateError`` where the bytes are no request that is signed by its own key, and
  ///   ``CertificateSyntaxError``.
  init(requestDER der: [UInt8]) throws {
    pin = try SPKIPin(subjectPublicKeyInfoDER: CertificateRequest(der: der).publicKeyDER)
    certificate = nil
    role = .request
  }

  /// What stands in the certificate's subject, for people.
  var subject: String {
    guard let certificate else {
      return switch role {
      case .key: "(a public key)"
      case .request: "(a certificate request)"
      case .leaf, .ca, .unknown: "(not readable)"
      }
    }
    return certificate.subject.isEmpty ? "(no subject)" : certificate.subject
  }

  var json: JSONValue {
    .members([
      "pin": .string(pin.base64), "role": .string(role.rawValue),
      "subject": .optional(certificate?.subject), "issuer": .optional(certificate?.issuer),
      "notBefore": certificate?.validity.map { .integer($0.notBefore) } ?? .null,
      "notAfter": certificate?.validity.map { .integer($0.notAfter) } ?? .null,
    ])
  }
}
