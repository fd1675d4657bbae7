import SslPinningPlatform
import SslPinningRules

/// A key as people hand it over: a public key, a certificate request or a certificate, in a block of PEM.
///
/// - What is hashed are the bytes as they stand, never a key that was encoded again.
/// - A private key is none of them: whoever has one signs a request with it (``CertificateRequest/pem(signedBy:)``).
package struct PEMKey: Sendable {
  /// What the block holds, as the administration calls it.
  package enum Form: String, Sendable, CaseIterable {
    case key, csr, certificate

    /// - Parameter label: the block's own.
    package init?(label: String) {
      switch label {
      case "PUBLIC KEY", "RSA PUBLIC KEY": self = .key
      case "CERTIFICATE REQUEST", "NEW CERTIFICATE REQUEST": self = .csr
      case "CERTIFICATE": self = .certificate
      default: return nil
      }
    }
  }

  package let form: Form
  package let block: PEMBlock
  package let pin: SPKIPin

  package init(_ block: PEMBlock) throws(PEMKeyError) {
    guard let form = Form(label: block.label) else { throw .label(block.label) }
    (self.form, self.block) = (form, block)
    do {
      pin =
        switch (form, block.label) {
        case (.key, "RSA PUBLIC KEY"):
          try SPKIPin(subjectPublicKeyInfoDER: try VerificationKey(block.text).spkiDER)
        case (.key, _): try SPKIPin(subjectPublicKeyInfoDER: block.bytes)
        case (.csr, _):
          try SPKIPin(
            subjectPublicKeyInfoDER: try CertificateRequest(der: block.bytes).publicKeyDER)
        case (.certificate, _): try SPKIPin(certificateDER: block.bytes)
        }
    } catch { throw .unreadable("\(error)") }
  }
}

/// Why a block of PEM names no key.
package enum PEMKeyError: Error, Hashable, Sendable {
  /// It holds something else.
  case label(String)
  /// It holds less than it says.
  case unreadable(String)
}

extension PEMKeyError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .label(let label): "it holds a \(label); hint: a key, a CSR or a certificate"
    case .unreadable(let reason): reason
    }
  }
}
