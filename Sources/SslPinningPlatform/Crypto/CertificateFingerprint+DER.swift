import SslPinningRules

extension CertificateFingerprint {
  /// The fingerprint of a certificate: SHA-256 over its bytes.
  ///
  /// - Parameter certificate: one certificate in DER, without anything behind it.
  /// - Throws: ``SslPinningRules/CertificateSyntaxError``.
  package init(certificateDER certificate: [UInt8]) throws(CertificateSyntaxError) {
    // Something that is no certificate has a hash as well, and no server ever shows it.
    _ = try SubjectPublicKeyInfo.bytes(inCertificate: certificate)
    self.init(hashing: certificate)
  }

  /// The fingerprint of bytes that a certificate was read from.
  init(hashing certificate: [UInt8]) { self.init(computed: Digest.sha256(certificate)) }
}
