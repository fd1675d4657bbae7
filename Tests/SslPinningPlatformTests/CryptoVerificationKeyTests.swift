import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@Suite("Signing keys as people pass them")
struct CryptoVerificationKeyTests {
  /// A pair of keys made by the openssl program, and a message signed by it.
  struct Pair {
    let privatePEM: [UInt8]
    let spkiPEM: [UInt8]
    let spki: [UInt8]
    let pkcs1PEM: [UInt8]
    let pkcs1: [UInt8]
    let message = [UInt8]("a registry".utf8)
    let signature: [UInt8]

    init(bits: Int) async throws {
      let openssl = try OpenSSLCommand()
      privatePEM = try await openssl.make(
        "prv.pem", ["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:\(bits)"])
      spkiPEM = try await openssl.make("spki.pem", ["pkey", "-in", "prv.pem", "-pubout"])
      spki = try await openssl.make(
        "spki.der", ["pkey", "-in", "prv.pem", "-pubout", "-outform", "DER"])
      pkcs1PEM = try await openssl.make(
        "pkcs1.pem", ["rsa", "-in", "prv.pem", "-RSAPublicKey_out"])
      pkcs1 = try await openssl.make(
        "pkcs1.der", ["rsa", "-in", "prv.pem", "-RSAPublicKey_out", "-outform", "DER"])
      try openssl.write(message, to: "message")
      try await openssl.run(
        ["dgst", "-sha512", "-sign", "prv.pem", "-out", "signature", "message"])
      signature = try openssl.read("signature")
    }
  }

  @Test(
    "takes a key of any size in any encoding, and they are all one key",
    arguments: [1024, 2048, 3072, 4096])
  func encodings(bits: Int) async throws {
    let pair = try await Pair(bits: bits)
    func base64(_ bytes: [UInt8]) -> [UInt8] { [UInt8](StrictBase64.encode(bytes).utf8) }
    let spellings: [(String, [UInt8])] = [
      ("PEM", pair.spkiPEM), ("PKCS#1 PEM", pair.pkcs1PEM), ("SPKI", pair.spki),
      ("PKCS#1", pair.pkcs1), ("base64 of PEM", base64(pair.spkiPEM)),
      ("base64 of PKCS#1 PEM", base64(pair.pkcs1PEM)), ("base64 of SPKI", base64(pair.spki)),
      ("base64 of PKCS#1", base64(pair.pkcs1)),
      ("PEM with CRLF", pair.spkiPEM.flatMap { $0 == 0x0a ? [0x0d, 0x0a] : [$0] }),
      ("PEM among blanks", [UInt8]("\n \t\r\n".utf8) + pair.spkiPEM + [UInt8]("\n\n  ".utf8)),
      ("PEM behind text", [UInt8]("the key of 2026:\n".utf8) + pair.spkiPEM),
      ("base64 in lines", wrapped(base64(pair.spkiPEM), by: "\n")),
      ("base64 in CRLF lines", wrapped(base64(pair.spki), by: "\r\n")),
    ]
    let other = try await Pair(bits: 1024)
    for (name, bytes) in spellings {
      let key = try VerificationKey(bytes: bytes)
      #expect(key.bits == bits, "\(name)")
      #expect(key.spkiDER == pair.spki, "\(name)")
      #expect(key.isValid(signature: pair.signature, over: pair.message), "\(name)")
      #expect(!key.isValid(signature: pair.signature, over: pair.message + [0]), "\(name)")
      #expect(!key.isValid(signature: other.signature, over: other.message), "\(name)")
      if let text = String(validating: bytes, as: UTF8.self) {
        #expect(try VerificationKey(text) == key, "\(name)")
      }
    }
  }

  @Test("refuses a signature that is longer, shorter, empty, or has one bit changed")
  func strictSignature() async throws {
    let pair = try await Pair(bits: 1024)
    let key = try VerificationKey(bytes: pair.spki)
    #expect(key.isValid(signature: pair.signature, over: pair.message))
    #expect(!key.isValid(signature: [], over: pair.message))
    #expect(!key.isValid(signature: [0] + pair.signature, over: pair.message))
    #expect(!key.isValid(signature: pair.signature + [0], over: pair.message))
    #expect(!key.isValid(signature: pair.signature.dropLast(), over: pair.message))
    #expect(!key.isValid(signature: pair.signature, over: []))
    for index in pair.signature.indices {
      var changed = pair.signature
      changed[index] ^= 1
      #expect(!key.isValid(signature: changed, over: pair.message))
    }
  }

  @Test("verifies on many threads at a time")
  func threads() async throws {
    let pair = try await Pair(bits: 2048)
    let key = try VerificationKey(bytes: pair.spki)
    let valid = await withTaskGroup(of: Bool.self) { group in
      for index in 0..<400 {
        group.addTask {
          let message = index % 2 == 0 ? pair.message : pair.message + [1]
          return key.isValid(signature: pair.signature, over: message) == (index % 2 == 0)
        }
      }
      return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
    }
    #expect(valid == 400)
  }

  @Test("names what else was passed")
  func wrongThings() async throws {
    let openssl = try OpenSSLCommand()
    func made(_ arguments: String...) async throws -> [UInt8] {
      try await openssl.make("made", arguments)
    }
    func expect(
      _ error: VerificationKeyError, for bytes: [UInt8], _ name: String,
      sourceLocation: SourceLocation = #_sourceLocation
    ) {
      for spelling in [bytes, [UInt8](StrictBase64.encode(bytes).utf8)] {
        #expect(throws: error, "\(name)", sourceLocation: sourceLocation) {
          try VerificationKey(bytes: spelling)
        }
      }
    }
    let pair = try await Pair(bits: 1024)
    let key = ["-in", "prv.pem"]
    try openssl.write(pair.privatePEM, to: "prv.pem")
    let encrypted = ["-aes256", "-passout", "pass:x"]
    for (name, arguments) in [
      ("PKCS#8 PEM", ["pkey"] + key), ("PKCS#8", ["pkey", "-outform", "DER"] + key),
      ("PKCS#1 PEM", ["rsa", "-traditional"] + key),
      ("PKCS#1", ["rsa", "-traditional", "-outform", "DER"] + key),
      ("encrypted PKCS#8 PEM", ["pkey"] + key + encrypted),
      ("encrypted PKCS#8", ["pkcs8", "-topk8", "-outform", "DER", "-passout", "pass:x"] + key),
      ("encrypted PKCS#1 PEM", ["pkey", "-traditional"] + key + encrypted),
    ] {
      expect(.privateKey, for: try await openssl.make("made", arguments), name)
    }
    expect(.privateKey, for: pair.spkiPEM + pair.privatePEM, "a public key and a private one")
    let certificate = try await made("req", "-x509", "-key", "prv.pem", "-subj", "/CN=a")
    expect(.certificate, for: certificate, "certificate PEM")
    expect(
      .certificate, for: try #require(try PEMBlock.blocks(in: certificate).first).bytes,
      "certificate")
    expect(.severalBlocks(2), for: pair.spkiPEM + pair.spkiPEM, "two keys")
    expect(.trailingData, for: pair.spki + [0x0a], "trailing byte")
    expect(.trailingData, for: pair.pkcs1 + [0], "trailing byte")
    let block = PEMBlock(label: "X509 CRL", bytes: pair.spki)
    expect(.unexpectedBlock(label: "X509 CRL"), for: [UInt8](block.text.utf8), "another block")
  }

  @Test(
    "names the type of a key that is not RSA, or its size",
    arguments: [
      (["EC", "-pkeyopt", "ec_paramgen_curve:P-256"], .notRSA("EC")),
      (["RSA-PSS", "-pkeyopt", "rsa_keygen_bits:1024"], .notRSA("RSA-PSS")),
      (["ED25519"], .notRSA("Ed25519")), (["ED448"], .notRSA("Ed448")),
      (["X25519"], .notRSA("X25519")), (["X448"], .notRSA("X448")),
      (["RSA", "-pkeyopt", "rsa_keygen_bits:1023"], .tooSmall(bits: 1023)),
    ] as [([String], VerificationKeyError)])
  func types(algorithm: [String], error: VerificationKeyError) async throws {
    let openssl = try OpenSSLCommand()
    try await openssl.run(["genpkey", "-out", "prv.pem", "-algorithm"] + algorithm)
    for form in ["PEM", "DER"] {
      let key = try await openssl.make(
        "pub", ["pkey", "-in", "prv.pem", "-pubout", "-outform", form])
      #expect(throws: error) { try VerificationKey(bytes: key) }
    }
  }

  @Test(
    "names texts that are no key",
    arguments: [
      ("", .empty), (" \r\n\t", .empty), ("hello", .unknownEncoding),
      ("aGVsbG8=", .unknownEncoding),
      ("-----BEGIN PUBLIC KEY-----\nMIIB", .pem(.unterminated(label: "PUBLIC KEY"))),
      (
        "-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----",
        .pem(.notBase64(label: "PUBLIC KEY"))
      ),
      (
        "-----BEGIN PUBLIC KEY-----\n%%%%\n-----END PUBLIC KEY-----",
        .pem(.notBase64(label: "PUBLIC KEY"))
      ),
      ("MIIB", .malformed("it ends inside key at byte 0")),
      ("0", .malformed("it ends inside key at byte 0")),
    ] as [(String, VerificationKeyError)])
  func texts(text: String, error: VerificationKeyError) {
    #expect(throws: error) { try VerificationKey(text) }
    #expect(!error.description.isEmpty)
  }

  @Test(
    "refuses numbers under which a signature proves nothing, and every second spelling of a key")
  func numbers() throws {
    // 2^1023 + 1: odd and of 1024 bits. It is no RSA modulus, which reading a key cannot tell.
    let modulus: [UInt8] = [0, 0x80] + [UInt8](repeating: 0, count: 126) + [1]
    func key(_ modulus: [UInt8], _ exponent: [UInt8]) -> [UInt8] {
      sequence(element(0x02, modulus) + element(0x02, exponent))
    }
    #expect(try VerificationKey(bytes: key(modulus, [3])).bits == 1024)
    #expect(try VerificationKey(bytes: key(modulus, [1, 0, 1])).bits == 1024)
    let refused: [(String, [UInt8])] = [
      ("exponent 1", key(modulus, [1])), ("exponent 0", key(modulus, [0])),
      ("even exponent", key(modulus, [4])), ("negative exponent", key(modulus, [0x83])),
      ("huge exponent", key(modulus, [1] + [UInt8](repeating: 1, count: 8))),
      ("even modulus", key(modulus.dropLast() + [2], [3])),
      ("negative modulus", key([UInt8](modulus.dropFirst()), [3])),
      ("leading zero", key([0] + modulus, [3])), ("empty modulus", key([], [3])),
      (
        "three numbers and a null",
        sequence(
          element(0x02, modulus) + element(0x02, [3]) + [0x05, 0])
      ),
    ]
    for (name, bytes) in refused {
      #expect(throws: VerificationKeyError.self, "\(name)") { try VerificationKey(bytes: bytes) }
    }
    let largest = [0, 0x80] + [UInt8](repeating: 0, count: 1022) + [1]
    #expect(try VerificationKey(bytes: key(largest, [3])).bits == 8192)
    // Apple's systems refuse it, so every platform does.
    #expect(throws: VerificationKeyError.tooLarge(bits: 8200)) {
      try VerificationKey(bytes: key(largest + [1], [3]))
    }
  }

  @Test("private keys that Apple's systems would not verify with sign nothing")
  func signingKeyTooLarge() throws {
    func pem(bytes: Int) -> String {
      let modulus = [0, 0x80] + [UInt8](repeating: 0, count: bytes - 2) + [1]
      let numbers = [[0], modulus, [3]] + [[UInt8]](repeating: [1], count: 6)
      let base64 = StrictBase64.encode(sequence(numbers.flatMap { element(0x02, $0) }))
      var lines = base64[...]
      var text = "-----BEGIN RSA PRIVATE KEY-----\n"
      while !lines.isEmpty {
        text += lines.prefix(64) + "\n"
        lines = lines.dropFirst(64)
      }
      return text + "-----END RSA PRIVATE KEY-----\n"
    }
    let largest = VerificationKey.maximumBits / 8
    #expect(SigningKey.maximumBits == VerificationKey.maximumBits)
    #expect(throws: SigningKeyError.tooLarge(bits: 8 * largest + 8)) {
      try SigningKey(pem: pem(bytes: largest + 1))
    }
    #expect("\(SigningKeyError.tooLarge(bits: 8200))".contains("Apple"))
  }

  @Test("takes a SubjectPublicKeyInfo in one spelling only")
  func oneSPKI() async throws {
    let pair = try await Pair(bits: 1024)
    let oid: [UInt8] = [0x06, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1]
    func spki(_ algorithm: [UInt8], _ bits: [UInt8], _ behind: [UInt8] = []) -> [UInt8] {
      sequence(sequence(algorithm) + element(0x03, bits) + behind)
    }
    #expect(spki(oid + [0x05, 0], [0] + pair.pkcs1) == pair.spki)
    let refused: [(String, [UInt8])] = [
      ("bytes behind the key inside", spki(oid + [0x05, 0], [0] + pair.pkcs1 + [0])),
      ("bytes behind the key outside", spki(oid + [0x05, 0], [0] + pair.pkcs1, [0x05, 0])),
      ("unused bits", spki(oid + [0x05, 0], [1] + pair.pkcs1)),
      ("no bits", spki(oid + [0x05, 0], [])), ("no key", spki(oid + [0x05, 0], [0])),
      ("no NULL", spki(oid, [0] + pair.pkcs1)),
      ("two NULLs", spki(oid + [0x05, 0, 0x05, 0], [0] + pair.pkcs1)),
      ("other parameters", spki(oid + [0x30, 0], [0] + pair.pkcs1)),
      ("a key in a key", spki(oid + [0x05, 0], [0] + pair.spki)),
    ]
    for (name, bytes) in refused {
      #expect(throws: VerificationKeyError.self, "\(name)") { try VerificationKey(bytes: bytes) }
    }
  }

  @Test("no damaged key crashes, and none passes for the whole one")
  func damage() async throws {
    let pair = try await Pair(bits: 1024)
    let key = try VerificationKey(bytes: pair.spki)
    for bytes in [pair.spki, pair.pkcs1] {
      for end in bytes.indices {
        #expect(throws: VerificationKeyError.self) {
          try VerificationKey(bytes: Array(bytes[..<end]))
        }
      }
      for index in bytes.indices {
        for change in [UInt8(1), 0x80, 0xff] {
          var changed = bytes
          changed[index] ^= change
          guard let other = try? VerificationKey(bytes: changed) else { continue }
          #expect(other != key, "byte \(index)")
          #expect(!other.isValid(signature: pair.signature, over: pair.message), "byte \(index)")
        }
      }
    }
  }

  private func wrapped(_ text: [UInt8], by separator: String) -> [UInt8] {
    stride(from: 0, to: text.count, by: 76).flatMap { start in
      text[start..<min(start + 76, text.count)] + [UInt8](separator.utf8)
    }
  }

  private func sequence(_ contents: [UInt8]) -> [UInt8] { element(0x30, contents) }

  private func element(_ tag: UInt8, _ contents: [UInt8]) -> [UInt8] {
    switch contents.count {
    case ..<0x80: [tag, UInt8(contents.count)] + contents
    case ..<0x100: [tag, 0x81, UInt8(contents.count)] + contents
    default: [tag, 0x82, UInt8(contents.count >> 8), UInt8(contents.count & 0xff)] + contents
    }
  }
}
