import SslPinningPlatform
import SslPinningRules

/// A certificate that a probe saw, with its pin.
public struct ProbedCertificate: Sendable, Hashable {
  public let certificate: Certificate
  /// SHA-256 over the SubjectPublicKeyInfo as it stands in the certificate; nil when the strict
  /// reader refuses an encoding that OpenSSL let pass.
  public let pin: SPKIPin?

  init(_ certificate: Certificate) {
    self.certificate = certificate
    pin = try? SPKIPin(certificateDER: certificate.der)
  }
}

/// What a server showed, and what is to be thought of it.
///
/// Chain and name are judged apart: an expired, self-signed or wrongly named server still has a
/// result. Hazard: only `isTrusted` says that the server is who it claims to be; pins of a result
/// that is not trusted may be an attacker's.
public struct ProbedServer: Sendable, Hashable {
  /// OpenSSL's verdict on the chain, without the name.
  public struct Verification: Sendable, Hashable {
    /// `X509_V_ERR_…`; 0 is good.
    public let code: Int32
    /// The code in OpenSSL's words.
    public let reason: String
    /// Which certificate of the path it is about; 0 is the leaf.
    public let depth: Int

    public var isGood: Bool { code == 0 }
  }

  public let target: ProbeTarget
  /// The address that answered.
  public let address: Endpoint
  /// Such as `TLSv1.3`.
  public let tlsVersion: String
  /// OpenSSL's name of the cipher suite.
  public let cipher: String
  /// The server's own certificate.
  public let leaf: ProbedCertificate
  /// As sent, the leaf first: in any order and with anything else the server chose to send.
  public let presented: [ProbedCertificate]
  /// From the leaf to the anchor, as validated; nil when no valid path was found.
  public let validated: [ProbedCertificate]?
  public let verification: Verification
  /// Whether the leaf carries the target's name in subjectAltName (RFC 9525: never the common
  /// name, and `*` only as a whole label).
  public let nameMatches: Bool

  /// Whether a client without pins would talk to this server.
  public var isTrusted: Bool { validated != nil && nameMatches }

  /// What is wrong, in one line; nil when nothing is.
  public var complaint: String? {
    ShownChain.complaint(
      verification.isGood ? nil : verification.reason, isNamed: nameMatches, host: target.host)
  }
}
