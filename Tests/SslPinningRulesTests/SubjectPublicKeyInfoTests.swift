import SslPinningPlatform
import SslPinningRules
import TestSupport
import Testing

@Suite("Keys sliced out of certificates")
struct SubjectPublicKeyInfoTests {
  /// A certificate made by the openssl program and what that program says its key is.
  struct Made {
    let certificate: [UInt8]
    let spki: [UInt8]

    init(_ key: [String], _ options: [String] = []) async throws {
      let openssl = try OpenSSLCommand()
      try await openssl.run(["genpkey", "-out", "key.pem", "-algorithm"] + key)
      spki = try await openssl.make(
        "key.der", ["pkey", "-in", "key.pem", "-pubout", "-outform", "DER"])
      let csr = ["req", "-new", "-key", "key.pem", "-subj", "/CN=a", "-out", "csr.pem"]
      try await openssl.run(csr)
      certificate = try await openssl.make(
        "certificate.der",
        ["x509", "-req", "-in", "csr.pem", "-signkey", "key.pem", "-outform", "DER"] + options)
    }
  }

  static let p256 = ["EC", "-pkeyopt", "ec_paramgen_curve:P-256"]

  @Test(
    "finds the key of every algorithm as the bytes stand",
    arguments: [
      ["RSA", "-pkeyopt", "rsa_keygen_bits:1024"],
      ["RSA", "-pkeyopt", "rsa_keygen_bits:3072"],
      ["RSA-PSS", "-pkeyopt", "rsa_keygen_bits:1024"],
      [
        "RSA-PSS", "-pkeyopt", "rsa_keygen_bits:1024", "-pkeyopt", "rsa_pss_keygen_md:sha256",
        "-pkeyopt", "rsa_pss_keygen_mgf1_md:sha256", "-pkeyopt", "rsa_pss_keygen_saltlen:32",
      ],
      p256, ["EC", "-pkeyopt", "ec_paramgen_curve:P-384"],
      ["EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-pkeyopt", "ec_param_enc:explicit"],
      ["ED25519"], ["ED448"],
    ])
  func algorithms(key: [String]) async throws {
    let made = try await Made(key)
    #expect(try Array(SubjectPublicKeyInfo.bytes(inCertificate: made.certificate)) == made.spki)
    #expect(
      try SPKIPin(certificateDER: made.certificate)
        == SPKIPin(subjectPublicKeyInfoDER: made.spki))
  }

  @Test(
    "finds the key behind every serial number",
    arguments: [
      "0", "1", "127", "128", "255", "0x8000000000000000", "-1", "-128",
      "0x7fffffffffffffffffffffffffffffffffffffff", "0xffffffffffffffffffffffffffffffffffffffff",
      "-0xffffffffffffffffffffffffffffffffffffffff",
      "0x0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef01",
    ])
  func serials(serial: String) async throws {
    let made = try await Made(Self.p256, ["-set_serial", serial])
    #expect(try Array(SubjectPublicKeyInfo.bytes(inCertificate: made.certificate)) == made.spki)
  }

  @Test("finds the key in a certificate of version 1, which has no version field")
  func version1() async throws {
    let first = try await Made(Self.p256)
    var body = DERReader(first.certificate[...])
    var fields = DERReader(try body.element(tag: .sequence, what: "certificate").contents)
    let tbs = DERReader(try fields.element(tag: .sequence, what: "tbsCertificate").contents)
    #expect(tbs.nextTag == .integer)
    #expect(try Array(SubjectPublicKeyInfo.bytes(inCertificate: first.certificate)) == first.spki)
  }

  @Test("finds the key where a serial or a name is empty, and behind ones of any length")
  func oddFields() throws {
    let key = sequence(sequence([0x06, 1, 42]) + [0x03, 2, 0, 7])
    for version in [[], [0xa0, 3, 2, 1, 2]] as [[UInt8]] {
      for serial in [[], [0], [0xff], [UInt8](repeating: 0, count: 300)] as [[UInt8]] {
        for name in [[], [UInt8](repeating: 5, count: 70_000)] as [[UInt8]] {
          let tbs = version + element(0x02, serial) + sequence([]) + sequence(name) + sequence([])
          let certificate = sequence(
            sequence(tbs + sequence(name) + key + [0xa3, 0]) + sequence([]) + [0x03, 1, 0])
          #expect(try Array(SubjectPublicKeyInfo.bytes(inCertificate: certificate)) == key)
        }
      }
    }
  }

  @Test("refuses lengths that DER does not allow, and whatever stands behind a certificate")
  func lengths() async throws {
    let good = try await Made(Self.p256).certificate
    let header = Array(good.prefix(4))
    try #require(header[0] == 0x30 && header[1] == 0x82)
    let body = Array(good.dropFirst(4))
    let refused: [(String, [UInt8])] = [
      ("indefinite", [0x30, 0x80] + body + [0, 0]), ("reserved", [0x30, 0xff] + body),
      ("three bytes where two do", [0x30, 0x83, 0] + header[2...] + body),
      ("five bytes", [0x30, 0x85, 0, 0, 0] + header[2...] + body),
      ("beyond the end", [0x30, 0x84, 0xff, 0xff, 0xff, 0xff] + body),
      ("long form of a short length", [0x30, 0x81, 0x05] + body.prefix(5)),
      ("trailing", good + [0]), ("twice", good + good), ("no bytes", []), ("a tag", [0x30]),
      ("another tag", [0x31] + good.dropFirst()), ("PEM", [UInt8]("-----BEGIN".utf8)),
    ]
    #expect((try? SubjectPublicKeyInfo.bytes(inCertificate: good)) != nil)
    for (name, bytes) in refused {
      #expect(throws: CertificateSyntaxError.self, "\(name)") {
        try SubjectPublicKeyInfo.bytes(inCertificate: bytes)
      }
    }
  }

  @Test("no truncation and no changed byte crashes, and only changes of the key change it")
  func damage() async throws {
    let made = try await Made(Self.p256)
    let certificate = made.certificate
    for end in certificate.indices {
      #expect(throws: CertificateSyntaxError.self) {
        try SubjectPublicKeyInfo.bytes(inCertificate: Array(certificate[..<end]))
      }
    }
    let whole = try SubjectPublicKeyInfo.bytes(inCertificate: certificate)
    let keyRange = whole.startIndex..<whole.endIndex
    for index in certificate.indices {
      for value in UInt8.min...UInt8.max where value != certificate[index] {
        var changed = certificate
        changed[index] = value
        do {
          let key = try SubjectPublicKeyInfo.bytes(inCertificate: changed)
          if keyRange.contains(index) {
            #expect(Array(key) != made.spki, "byte \(index)")
          }
        } catch {
          #expect(!error.description.isEmpty)
        }
      }
    }
  }

  private func sequence(_ contents: [UInt8]) -> [UInt8] { element(0x30, contents) }

  private func element(_ tag: UInt8, _ contents: [UInt8]) -> [UInt8] {
    let count = contents.count
    switch count {
    case ..<0x80: return [tag, UInt8(count)] + contents
    case ..<0x100: return [tag, 0x81, UInt8(count)] + contents
    case ..<0x10000: return [tag, 0x82, UInt8(count >> 8), UInt8(count & 0xff)] + contents
    default:
      return [tag, 0x83, UInt8(count >> 16), UInt8(count >> 8 & 0xff), UInt8(count & 0xff)]
        + contents
    }
  }
}
