import SslPinningPlatform
import SslPinningRules
import TestSupport
import Testing

@Suite("Digests and pins of certificates")
struct CryptoDigestTests {
  @Test(
    "hashes as FIPS 180-4 prints it",
    arguments: [
      (
        "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
          + "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"
      ),
      (
        "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce"
          + "47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e"
      ),
    ])
  func known(text: String, sha256: String, sha512: String) {
    #expect(Digest.isAvailable)
    #expect(hex(Digest.sha256([UInt8](text.utf8))) == sha256)
    #expect(hex(Digest.sha512([UInt8](text.utf8))) == sha512)
    // A slice, and a collection without contiguous storage.
    #expect(hex(Digest.sha256(([0] + [UInt8](text.utf8)).dropFirst())) == sha256)
    #expect(hex(Digest.sha256([UInt8](text.utf8).reversed().lazy.reversed())) == sha256)
  }

  /// Rows whose certificates lie outside the vectors that are kept here.
  static let certificatesElsewhere = [
    "../odd/boringssl-unusual/verify-lencr-root-x1.der": "taken from x509-limbo instead",
    "../odd/boringssl-unusual/verify-lencr-root-x1-cross-signed.der": "the same key, cross-signed",
    "../odd/boringssl-unusual/verify-lencr-root-dst-x3.der": "an expired root; no copy at hand",
  ]

  @Test("takes the pins that others published")
  func knownPins() throws {
    let rows = try Vectors.rows("spki-pins/known/known_pins.tsv")
    #expect(rows.count == 40)
    var taken = 0
    for row in rows {
      let (name, pin) = (try #require(row.first), try #require(row.dropFirst().first))
      guard Self.certificatesElsewhere[name] == nil else { continue }
      let der = try certificate("spki-pins/known/\(name)")
      #expect(try SPKIPin(certificateDER: der).base64 == pin, "\(name)")
      let key = try SubjectPublicKeyInfo.bytes(inCertificate: der)
      #expect(try SPKIPin(subjectPublicKeyInfoDER: Array(key)).base64 == pin, "\(name)")
      taken += 1
    }
    #expect(taken + Self.certificatesElsewhere.count == rows.count)
  }

  @Test("takes the published pin of ISRG Root X1")
  func isrgRootX1() throws {
    let cases = try LimboCase.all().filter { $0.id == "online::stackoverflow.com" }
    let certificates = try cases.flatMap { try $0.trusted + $0.presented }
    let pins = try certificates.map { try SPKIPin(certificateDER: $0).base64 }
    #expect(pins.contains("C5+lpZ7tcVwmwQIMcRtPbsQtWLABXhQzejna0wHFr8M="))
  }

  @Test("refuses to take a pin from what is no certificate and no key")
  func refusals() throws {
    let row = try #require(try Vectors.rows("spki-pins/known/known_pins.tsv").first?.first)
    let der = try certificate("spki-pins/known/\(row)")
    let key = Array(try SubjectPublicKeyInfo.bytes(inCertificate: der))
    for bytes in [
      [], der.dropLast(), der + [0], key,
      [UInt8](PEMBlock(label: "CERTIFICATE", bytes: der).text.utf8),
    ] {
      #expect(throws: CertificateSyntaxError.self) { try SPKIPin(certificateDER: Array(bytes)) }
    }
    // The RSAPublicKey inside a SubjectPublicKeyInfo is a SEQUENCE too.
    let pkcs1 = Array(key.dropFirst(24))
    for bytes in [[], key.dropLast(), key + [0], der, pkcs1] {
      #expect(throws: CertificateSyntaxError.self) {
        try SPKIPin(subjectPublicKeyInfoDER: Array(bytes))
      }
    }
  }

  private func certificate(_ path: String) throws -> [UInt8] {
    let bytes = try Vectors.bytes(path)
    return bytes.first == 0x30 ? bytes : try #require(try PEMBlock.blocks(in: bytes).first).bytes
  }

  private func hex(_ bytes: [UInt8]) -> String {
    bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }
}
