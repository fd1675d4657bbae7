import SslPinningRules

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
