/// Why bytes are not a certificate that a pin can be taken from. Offsets are in bytes from the
/// start of the DER.
public enum CertificateSyntaxError: Error, Equatable, Sendable {
  /// The bytes end inside this field.
  case truncated(String, offset: Int)
  /// Another element stands where this field belongs.
  case unexpectedTag(UInt8, String, offset: Int)
  /// A length that DER does not allow: indefinite, not minimal, or beyond 4 GB.
  case badLength(String, offset: Int)
  /// Bytes behind the certificate.
  case trailingData(offset: Int)
}

extension CertificateSyntaxError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .truncated(let field, let offset):
      "not a certificate: it ends inside \(field) at byte \(offset)"
    case .unexpectedTag(let tag, let field, let offset):
      "not a certificate: tag 0x\(String(tag, radix: 16)) where \(field) belongs, at byte \(offset)"
    case .badLength(let field, let offset):
      "not a certificate: a length that DER does not allow in \(field), at byte \(offset)"
    case .trailingData(let offset):
      "data behind the certificate, at byte \(offset)"
    }
  }
}
