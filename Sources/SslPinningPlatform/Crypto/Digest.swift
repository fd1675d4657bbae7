import SslPinningRules

/// SHA-2 over bytes, by the platform's own library.
public enum Digest {
  /// SHA-256 (FIPS 180-4): 32 bytes.
  public static func sha256(_ bytes: some Collection<UInt8>) -> [UInt8] {
    PlatformDigest.sha256.hash(bytes)
  }

  /// SHA-512 (FIPS 180-4): 64 bytes.
  public static func sha512(_ bytes: some Collection<UInt8>) -> [UInt8] {
    PlatformDigest.sha512.hash(bytes)
  }

  /// Whether the platform's library can hash at all. A broken installation cannot; hashing then
  /// stops the process, so a self-test asks first.
  package static var isAvailable: Bool {
    PlatformDigest.sha256.isAvailable && PlatformDigest.sha512.isAvailable
  }
}

extension SPKIPin {
  /// The pin of a certificate: SHA-256 over its SubjectPublicKeyInfo as the bytes stand
  /// (RFC 7469 §2.4). No key is parsed, so none can be re-encoded into another pin.
  ///
  /// - Parameter certificate: one certificate in DER, without anything behind it.
  /// - Throws: ``SslPinningRules/CertificateSyntaxError``.
  package init(certificateDER certificate: [UInt8]) throws(CertificateSyntaxError) {
    self.init(hashing: try SubjectPublicKeyInfo.bytes(inCertificate: certificate))
  }

  /// The pin of a public key in DER (SubjectPublicKeyInfo, what `-----BEGIN PUBLIC KEY-----` holds).
  ///
  /// Only the framing is read: any algorithm, known or not, has a pin.
  ///
  /// - Throws: ``SslPinningRules/CertificateSyntaxError`` for anything else, such as a bare PKCS#1 key: its hash
  ///   would be a pin that no server ever presents.
  package init(subjectPublicKeyInfoDER key: [UInt8]) throws(CertificateSyntaxError) {
    var outer = DERReader(key[...])
    let sequence = try outer.element(tag: .sequence, what: "subjectPublicKeyInfo")
    guard outer.isAtEnd else { throw .trailingData(offset: outer.offset) }
    var fields = DERReader(sequence.contents)
    _ = try fields.element(tag: .sequence, what: "algorithm")
    _ = try fields.element(tag: .bitString, what: "subjectPublicKey")
    guard fields.isAtEnd else { throw .trailingData(offset: fields.offset) }
    self.init(hashing: sequence.whole)
  }

  /// The pins of a chain's certificates, leaf first, up to the first that has no key: the leaf's place is
  /// never taken by another certificate.
  static func readable(_ certificates: [[UInt8]]) -> [SPKIPin] {
    var pins: [SPKIPin] = []
    for certificate in certificates {
      guard let pin = try? SPKIPin(certificateDER: certificate) else { break }
      pins.append(pin)
    }
    return pins
  }

  private init(hashing bytes: ArraySlice<UInt8>) {
    self.init(computed: Digest.sha256(bytes))
  }
}

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
