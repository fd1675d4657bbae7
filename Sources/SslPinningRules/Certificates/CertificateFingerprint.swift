/// The SHA-256 of a whole certificate in DER: this certificate and no other, not even its renewal
/// with the same key.
///
/// Certificates end within months; a pin on the key survives a renewal, this one does not. It exists
/// for apps that bundle their server's or CA's certificate.
public struct CertificateFingerprint: Hashable, Sendable {
  /// The 32 bytes.
  public let bytes: [UInt8]

  /// A fingerprint from its 32 bytes.
  ///
  /// - Returns: `nil` where there are not exactly 32 bytes.
  public init?(digest: some Collection<UInt8>) {
    guard digest.count == 32 else { return nil }
    self.init(computed: [UInt8](digest))
  }

  /// A fingerprint from 32 bytes that a hash function just computed.
  package init(computed digest: [UInt8]) {
    precondition(digest.count == 32, "a SHA-256 has 32 bytes")
    bytes = digest
  }
}

extension CertificateFingerprint: Comparable {
  public static func < (left: CertificateFingerprint, right: CertificateFingerprint) -> Bool {
    left.bytes.lexicographicallyPrecedes(right.bytes)
  }
}

extension CertificateFingerprint: CustomStringConvertible {
  /// Lower-case hex, as `openssl x509 -fingerprint -sha256` has it without its colons.
  public var description: String {
    hex(bytes)
  }
}
