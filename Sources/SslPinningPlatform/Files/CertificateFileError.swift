import SslPinningRules

/// Why a file gave no certificates.
public enum CertificateFileError: Error, Equatable, Sendable {
  /// The file cannot be read; the system's reason.
  case unreadableFile(reason: String)
  /// The file has more bytes than this.
  case tooLarge(limit: Int)
  /// A PEM block is broken.
  case brokenPEM(PEMError)
  /// Certificates in DER, or PEM blocks of them: this is neither.
  case brokenCertificate(CertificateSyntaxError)
  /// The file is empty, or is PEM without a certificate.
  case noCertificate
}

extension CertificateFileError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .unreadableFile(let reason): reason
    case .tooLarge(let limit): "more than \(limit) bytes"
    case .brokenPEM(let error): "\(error)"
    case .brokenCertificate(let error): "\(error)"
    case .noCertificate: "no certificate in it; hint: DER (.cer) or PEM"
    }
  }
}
