import Foundation
import SslPinningPlatform
import SslPinningRules
import TestSupport
import Testing

/// Wycheproof's RSA PKCS#1 v1.5 signatures over SHA-512.
@Suite("RSA signatures: Wycheproof")
struct CryptoWycheproofTests {
  struct File: Decodable {
    let numberOfTests: Int
    let testGroups: [Group]
  }
  struct Group: Decodable {
    let publicKeyPem: String
    let publicKeyDer: String
    let publicKeyAsn: String
    let tests: [Case]

    /// The key in every encoding that is offered to users.
    var encodings: [(name: String, bytes: [UInt8])] {
      get throws {
        let spki = try #require(decoded(hex: publicKeyDer))
        let pkcs1 = try #require(decoded(hex: publicKeyAsn))
        let pem = [UInt8](publicKeyPem.utf8)
        return [
          ("PEM", pem), ("base64 of PEM", [UInt8](StrictBase64.encode(pem).utf8)),
          ("base64 of SPKI", [UInt8](StrictBase64.encode(spki).utf8)),
          ("base64 of PKCS#1", [UInt8](StrictBase64.encode(pkcs1).utf8)),
          ("SPKI", spki), ("PKCS#1", pkcs1),
          ("PKCS#1 PEM", [UInt8](PEMBlock(label: "RSA PUBLIC KEY", bytes: pkcs1).text.utf8)),
        ]
      }
    }
  }
  struct Case: Decodable {
    let tcId: Int
    let comment: String
    let msg: String
    let sig: String
    let result: String
  }

  @Test(
    "accepts exactly the signatures that are valid, under the key in every encoding",
    arguments: [
      ("rsa_signature_2048_sha512_test.json", 8, 251),
      ("rsa_signature_3072_sha512_test.json", 8, 252),
      ("rsa_signature_4096_sha512_test.json", 7, 252),
    ])
  func wycheproof(name: String, accepted: Int, refused: Int) throws {
    let file = try JSONDecoder().decode(
      File.self, from: Data(try Vectors.bytes("wycheproof/\(name)")))
    #expect(!file.testGroups.isEmpty)
    var counts: [String: (accepted: Int, refused: Int)] = [:]
    for group in file.testGroups {
      var spki: Set<[UInt8]> = []
      for (encoding, bytes) in try group.encodings {
        let key = try VerificationKey(bytes: bytes)
        spki.insert(key.spkiDER)
        for test in group.tests {
          let message = try #require(decoded(hex: test.msg))
          let signature = try #require(decoded(hex: test.sig))
          let valid = key.isValid(signature: signature, over: message)
          #expect(
            valid == (test.result == "valid"), "\(encoding), test \(test.tcId): \(test.comment)")
          if valid {
            counts[encoding, default: (0, 0)].accepted += 1
          } else {
            counts[encoding, default: (0, 0)].refused += 1
          }
        }
      }
      // However a key is passed, it is the same key.
      #expect(spki == [try #require(decoded(hex: group.publicKeyDer))])
    }
    #expect(counts.count == 7)
    for (encoding, count) in counts {
      #expect(count == (accepted, refused), "\(encoding)")
      #expect(count.accepted + count.refused == file.numberOfTests)
    }
  }
}

/// The bytes that a text of hexadecimal digits spells.
private func decoded(hex: String) -> [UInt8]? {
  let digits = hex.utf8.map { UInt8(String(UnicodeScalar($0)), radix: 16) }
  guard digits.count % 2 == 0, !digits.contains(nil) else { return nil }
  let values = digits.compactMap { $0 }
  return stride(from: 0, to: values.count, by: 2).map { values[$0] << 4 | values[$0 + 1] }
}
