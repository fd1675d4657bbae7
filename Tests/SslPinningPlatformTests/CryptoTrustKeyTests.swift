import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@Suite("Keys of key sets")
struct CryptoTrustKeyTests {
  struct File: Decodable {
    let numberOfTests: Int
    let testGroups: [Group]
  }
  struct Group: Decodable {
    let publicKeyPem: String
    let publicKeyDer: String
    let tests: [Case]
  }
  struct Case: Decodable {
    let tcId: Int
    let comment: String
    let msg: String
    let sig: String
    let result: String
  }

  @Test(
    "Wycheproof: accepts exactly the signatures that are valid",
    arguments: [
      ("ecdsa_secp256r1_sha256_test.json", SignatureAlgorithm.es256, 174, 310),
      ("ed25519_test.json", .edDSA, 88, 63),
    ])
  func wycheproof(
    name: String, algorithm: SignatureAlgorithm, accepted: Int, refused: Int
  ) throws {
    let file = try JSONDecoder().decode(
      File.self, from: Data(try Vectors.bytes("wycheproof/\(name)")))
    var counts = [true: 0, false: 0]
    for group in file.testGroups {
      let spki = try #require(bytes(hex: group.publicKeyDer))
      let key = try #require(TrustKey(algorithm, spkiDER: spki))
      #expect(try TrustKey(group.publicKeyPem) == key)
      for other in SignatureAlgorithm.allCases where other != algorithm {
        #expect(TrustKey(other, spkiDER: spki) == nil)
      }
      for test in group.tests {
        let valid = key.isValid(
          signature: try #require(bytes(hex: test.sig)), over: try #require(bytes(hex: test.msg)))
        #expect(valid == (test.result == "valid"), "test \(test.tcId): \(test.comment)")
        counts[valid, default: 0] += 1
      }
    }
    #expect(counts == [true: accepted, false: refused])
    #expect(accepted + refused == file.numberOfTests)
  }

  static let kinds: [(TrustSigningKey.Kind, SignatureAlgorithm)] = [
    (.rsa(bits: 1024), .rs512), (.p256, .es256), (.ed25519, .edDSA),
  ]

  @Test("what a signing key signs verifies, one bit beside it does not", arguments: kinds)
  func roundTrip(kind: TrustSigningKey.Kind, algorithm: SignatureAlgorithm) throws {
    let signer = try TrustSigningKey.generate(kind)
    #expect(signer.algorithm == algorithm)
    let key = try #require(TrustKey(algorithm, spkiDER: signer.publicKeyDER))
    #expect(try TrustKey(signer.publicKeyPEM) == key)
    #expect(try TrustKey(StrictBase64.encode(signer.publicKeyDER)) == key)
    #expect(key.id == (try SPKIPin(subjectPublicKeyInfoDER: signer.publicKeyDER)))
    let message = [UInt8]("a statement".utf8)
    let signature = try signer.sign(message)
    #expect(key.isValid(signature: signature, over: message))
    #expect(!key.isValid(signature: signature, over: message + [0]))
    #expect(!key.isValid(signature: [], over: message))
    #expect(!key.isValid(signature: signature + [0], over: message))
    #expect(!key.isValid(signature: signature.dropLast(), over: message))
    for index in signature.indices {
      var changed = signature
      changed[index] ^= 1
      #expect(!key.isValid(signature: changed, over: message))
    }
    let other = try TrustSigningKey.generate(kind)
    #expect(!key.isValid(signature: try other.sign(message), over: message))
  }

  @Test("a key survives its file, which only its owner can read", arguments: kinds)
  func files(kind: TrustSigningKey.Kind, algorithm: SignatureAlgorithm) throws {
    let directory = try TemporaryDirectory()
    let signer = try TrustSigningKey.generate(kind)
    let (secret, open) = (
      directory.url.appending(path: "prv.pem"), directory.url.appending(path: "pub.pem")
    )
    try signer.write(to: secret)
    try signer.writePublicKey(to: open)
    let mode =
      try FileManager.default
      .attributesOfItem(atPath: secret.path)[.posixPermissions] as? Int
    #expect(mode == 0o600)
    #expect(try TrustSigningKey(file: secret).publicKeyDER == signer.publicKeyDER)
    #expect(try TrustKey(bytes: [UInt8](Data(contentsOf: open))).spkiDER == signer.publicKeyDER)
    #expect(throws: SigningKeyError.publicKey) { try TrustSigningKey(file: open) }
    #expect(throws: VerificationKeyError.privateKey) {
      try TrustKey(bytes: [UInt8](Data(contentsOf: secret)))
    }
  }

  @Test(
    "refuses keys of other types and keys in a second spelling",
    arguments: [
      ["EC", "-pkeyopt", "ec_paramgen_curve:P-384"],
      ["EC", "-pkeyopt", "ec_paramgen_curve:secp256k1"],
      [
        "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-pkeyopt", "ec_param_enc:explicit",
      ],
      ["ED448"], ["X25519"], ["RSA-PSS", "-pkeyopt", "rsa_keygen_bits:1024"],
    ])
  func otherTypes(algorithm: [String]) async throws {
    let openssl = try OpenSSLCommand()
    let secret = try await openssl.make("prv.pem", ["genpkey", "-algorithm"] + algorithm)
    let spki = try await openssl.make(
      "spki.der", ["pkey", "-in", "prv.pem", "-pubout", "-outform", "DER"])
    #expect(throws: VerificationKeyError.self) { try TrustKey(bytes: spki) }
    for algorithm in SignatureAlgorithm.allCases {
      #expect(TrustKey(algorithm, spkiDER: spki) == nil)
    }
    #expect(throws: SigningKeyError.self) {
      try TrustSigningKey(pem: String(decoding: secret, as: UTF8.self))
    }
  }

  @Test("refuses a compressed point, a point off the curve, bytes behind, and bare RSA keys")
  func spellings() async throws {
    let signer = try TrustSigningKey.generate(.p256)
    let spki = signer.publicKeyDER
    let point = Array(spki.suffix(65))
    #expect(TrustKey(.es256, spkiDER: spki) != nil)
    var off = spki
    off[off.count - 1] ^= 1
    let compressed =
      [UInt8]([0x30, 0x39]) + spki[2..<23] + [0x03, 0x22, 0x00] + [2 | point[64] & 1]
      + point[1..<33]
    for bytes in [
      off, Array(compressed), spki + [0], spki.dropLast(), [], point,
      [UInt8](signer.publicKeyPEM.utf8), [UInt8](StrictBase64.encode(spki).utf8),
    ] {
      #expect(TrustKey(.es256, spkiDER: Array(bytes)) == nil)
    }
    let rsa = try TrustSigningKey.generate(.rsa(bits: 1024))
    #expect(TrustKey(.rs512, spkiDER: rsa.publicKeyDER) != nil)
    #expect(TrustKey(.rs512, spkiDER: Array(rsa.publicKeyDER.dropFirst(22))) == nil)
    #expect(try TrustKey(bytes: Array(rsa.publicKeyDER.dropFirst(22))).algorithm == .rs512)
  }

  private func bytes(hex: String) -> [UInt8]? {
    let digits = hex.utf8.compactMap { UInt8(String(UnicodeScalar($0)), radix: 16) }
    guard digits.count == hex.utf8.count, digits.count % 2 == 0 else { return nil }
    return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
  }
}
