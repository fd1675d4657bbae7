import SslPinningPlatform
import SslPinningRules
import TestSupport
import Testing

/// Keys in an encoding that OpenSSL reads and would not write.
@Suite("Keys as they stand in certificates")
struct ValidationEncodingTests {
  /// `AlgorithmIdentifier` of an RSA key (RFC 3279 §2.3.1), with the NULL that belongs there, and
  /// the same without, as some makers of certificates leave it out.
  private static let usual: [UInt8] =
    [0x30, 0x0D, 0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x01, 0x05, 0x00]
  private static let odd: [UInt8] =
    [0x30, 0x0B, 0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x01]

  @Test("are pinned by their bytes on the validated path, never by what OpenSSL makes of them")
  func withoutNull() async throws {
    let openssl = try OpenSSLCommand()
    let whole = try await openssl.make(
      "leaf.der",
      [
        "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "leaf.key", "-subj", "/CN=Leaf",
        "-addext", "subjectAltName=DNS:www.example.com", "-days", "2", "-outform", "DER",
      ])
    let certificate = try Self.withoutNull(whole)
    let usualPin = try SPKIPin(certificateDER: whole)
    let key = try SubjectPublicKeyInfo.bytes(inCertificate: certificate)
    let pin = SPKIPin(digest: Digest.sha256(key))
    #expect(pin != usualPin)
    // Its own anchor: the change broke the signature, which nobody checks on an anchor.
    let evidence = try ChainValidator(trust: .anchors([certificate]))
      .evidence(presented: [certificate], host: try HostName("www.example.com"))
    #expect(evidence.presented == [pin])
    #expect(try evidence.validation.get().path == [pin])
  }

  /// The certificate with the NULL cut out of its key's algorithm, and the three lengths around it
  /// (certificate, tbsCertificate, subjectPublicKeyInfo: two bytes each) put right.
  private static func withoutNull(_ certificate: [UInt8]) throws -> [UInt8] {
    var bytes = certificate
    let start = try #require(
      bytes.indices.first { bytes[$0...].starts(with: usual) }, "no RSA key")
    bytes.replaceSubrange(start..<start + usual.count, with: odd)
    for header in [0, 4, start - 4] {
      try #require(bytes[header] == 0x30 && bytes[header + 1] == 0x82)
      let length = Int(bytes[header + 2]) << 8 + Int(bytes[header + 3]) - 2
      bytes[header + 2] = UInt8(length >> 8)
      bytes[header + 3] = UInt8(length & 0xFF)
    }
    return bytes
  }
}
