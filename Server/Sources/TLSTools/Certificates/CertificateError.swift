import SslPinningPlatform

/// Why a key, a certificate or a file of either could not be made or read.
public enum CertificateError: Error, Equatable, Sendable {
  /// The text holds no PEM block of the wanted kind (`CERTIFICATE`, `PRIVATE KEY`).
  case noPEM(of: String)
  /// The bytes are not what they should be; `what` names it, `reason` is OpenSSL's.
  case malformed(what: String, reason: String)
  /// A subjectAltName that is neither a DNS name in ASCII nor an IP address.
  case invalidName(String)
  /// A certificate for nothing: a server certificate needs one name at least.
  case noNames
  /// An RSA size outside 1024…8192 bits.
  case keySize(Int)
  /// A validity that ends before it begins, or that X.509 cannot write down (years 0–9999).
  case validity(notBefore: Int64, notAfter: Int64)
  /// An OpenSSL call failed that never fails on good input (out of memory, no entropy).
  case openSSL(operation: String, reason: String)
  /// The file could not be written or read; `reason` is the system's.
  case file(path: String, reason: String)
}

extension CertificateError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .noPEM(let kind):
      "no PEM block '\(kind)' in the text; hint: it begins with -----BEGIN \(kind)-----"
    case .malformed(let what, let reason): "malformed \(what): \(reason)"
    case .invalidName(let name):
      "'\(name)' is no DNS name in ASCII and no IP address; hint: write international names as xn--…"
    case .noNames: "a server certificate needs at least one name"
    case .keySize(let bits): "\(bits) bits is no RSA key size; hint: 2048, 3072 or 4096"
    case .validity(let from, let to): "no certificate can be valid from \(from) to \(to)"
    case .openSSL(let operation, let reason): "\(operation) failed: \(reason)"
    case .file(let path, let reason): "\(path): \(reason)"
    }
  }
}

extension CertificateError: ExplainedError {}
