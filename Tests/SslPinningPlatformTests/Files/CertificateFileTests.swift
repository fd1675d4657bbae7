import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@Suite("Certificate files")
struct CertificateFileTests {
  private let authority: CertificateAuthority
  private let leaf: Certificate

  init() throws {
    authority = try CertificateAuthority.makeRoot(name: "File root")
    leaf = try authority.issue(names: ["localhost"]).leaf
  }

  @Test("are DER, or PEM with any number of certificates, byte for byte")
  func formats() throws {
    #expect(try CertificateFile.certificates(in: leaf.der) == [leaf.der])
    let text = "subject=someone\n" + leaf.pem + "\n" + authority.root.pem
    #expect(
      try CertificateFile.certificates(in: Array(text.utf8)) == [leaf.der, authority.root.der])
  }

  @Test("with something broken in them give nothing at all")
  func broken() throws {
    let key = try PrivateKey.generate(.p256).pem
    func error(_ bytes: [UInt8]) -> CertificateFileError? {
      #expect(throws: CertificateFileError.self) { try CertificateFile.certificates(in: bytes) }
    }
    #expect(error([]) == .noCertificate)
    #expect(error(Array("hello".utf8)) == .noCertificate)
    #expect(error(Array(key.utf8)) == .noCertificate)
    for bytes in [leaf.der + [0], Array(leaf.der.dropLast())] {
      guard case .brokenCertificate = error(bytes) else {
        Issue.record("taken for a certificate")
        continue
      }
    }
    let cut = Array((leaf.pem + authority.root.pem).utf8).dropLast(40)
    #expect(error(Array(cut)) == .brokenPEM(.unterminated(label: "CERTIFICATE")))
    // A public key in DER is no certificate, though it begins like one.
    let pem = PEMBlock(label: "CERTIFICATE", bytes: [0x30, 0x00]).text
    guard case .brokenCertificate = error(Array((leaf.pem + pem).utf8)) else {
      Issue.record("taken for a certificate")
      return
    }
  }

  @Test("are bounded, and say why they cannot be read")
  func files() throws {
    let directory = try TemporaryDirectory()
    let file = try directory.write(leaf.der, to: "a.cer")
    #expect(try CertificateFile.read(file) == [leaf.der])
    let limit = CertificateFile.maximumBytes
    try directory.write([UInt8](repeating: 0x30, count: limit + 1), to: "a.cer")
    #expect(throws: CertificateFileError.tooLarge(limit: limit)) {
      try CertificateFile.read(file)
    }
    #expect(throws: CertificateFileError.self) {
      try CertificateFile.read(directory.file("none.cer"))
    }
  }

  @Test("have the fingerprint that openssl prints")
  func fingerprint() async throws {
    let end = try await ChildProcess.run(
      "openssl", ["x509", "-inform", "DER", "-noout", "-fingerprint", "-sha256"], input: leaf.der)
    let printed = try #require(
      end.exitCode == 0 ? end.stdout : nil)
    let hex = try #require(printed.split(separator: "=").last).filter(\.isHexDigit).lowercased()
    #expect(try CertificateFingerprint(certificateDER: leaf.der).description == hex)
    #expect(throws: CertificateSyntaxError.self) {
      try CertificateFingerprint(certificateDER: leaf.der + [0])
    }
  }

  @Test("of a validated path are told in the path's order")
  func path() throws {
    let middle = try authority.issueIntermediate(name: "File intermediate")
    let identity = try middle.issue(names: ["localhost"])
    let chain = [identity.leaf.der] + identity.intermediates.map(\.der)
    let evidence = try ChainValidator(trust: .anchors([authority.root.der]))
      .evidence(presented: chain, host: HostName("localhost"))
    let expected = try (chain + [authority.root.der]).map {
      try CertificateFingerprint(certificateDER: $0)
    }
    #expect(try evidence.validation.get().certificates == expected)
  }
}
