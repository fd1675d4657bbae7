import Foundation
import TLSTools
import TestSupport
import Testing

@Suite("Private certificate authority")
struct PrivateCATests {
  @Test(
    "OpenSSL's own verifier accepts root, two intermediates and leaf, and wants the whole path",
    arguments: [
      PrivateKey.Algorithm.p256, .rsa(bits: 2048), .rsa(bits: 3072), .rsa(bits: 4096),
    ])
  func verifies(algorithm: PrivateKey.Algorithm) async throws {
    let root = try CertificateAuthority.makeRoot(name: "Test Root", algorithm: algorithm)
    let upper = try root.issueIntermediate(name: "Upper", pathLength: 1)
    let lower = try upper.issueIntermediate(name: "Lower", pathLength: 0)
    let identity = try lower.issue(
      names: ["www.example.com", "*.example.com", "127.0.0.1", "::1"], algorithm: algorithm)
    #expect(identity.intermediates == [lower.certificate, upper.certificate])

    let directory = try TemporaryDirectory()
    let rootFile = try directory.write(root.certificate.pem, to: "root.pem").path
    let chainFile = try directory.write(
      identity.intermediates.map(\.pem).joined(), to: "chain.pem"
    ).path
    let leafFile = try directory.write(identity.leaf.pem, to: "leaf.pem").path
    let verify = ["verify", "-x509_strict", "-purpose", "sslserver", "-CAfile", rootFile]
    let whole = try await ChildProcess.run(
      "openssl",
      verify + ["-untrusted", chainFile, "-verify_hostname", "a.example.com", leafFile])
    #expect(whole.exitCode == 0, "\(whole.stderr)")
    let address = try await ChildProcess.run(
      "openssl", verify + ["-untrusted", chainFile, "-verify_ip", "::1", leafFile])
    #expect(address.exitCode == 0, "\(address.stderr)")
    let wrongName = try await ChildProcess.run(
      "openssl", verify + ["-untrusted", chainFile, "-verify_hostname", "example.org", leafFile])
    #expect(wrongName.exitCode != 0)
    let gap = try await ChildProcess.run("openssl", verify + [leafFile])
    #expect(gap.exitCode != 0)
  }

  @Test("a path longer than the authority allows is refused")
  func pathLength() async throws {
    let root = try CertificateAuthority.makeRoot(name: "Root")
    let upper = try root.issueIntermediate(name: "Upper", pathLength: 0)
    let lower = try upper.issueIntermediate(name: "Lower")
    let identity = try lower.issue(names: ["a.test"])
    let directory = try TemporaryDirectory()
    let outcome = try await ChildProcess.run(
      "openssl",
      [
        "verify", "-CAfile", try directory.write(root.certificate.pem, to: "root").path,
        "-untrusted",
        try directory.write(identity.intermediates.map(\.pem).joined(), to: "chain").path,
        try directory.write(identity.leaf.pem, to: "leaf").path,
      ])
    #expect(outcome.exitCode != 0)
    #expect(outcome.stderr.contains("path length"))
  }

  @Test("the extensions say what they should, and the serial is random and positive")
  func extensions() async throws {
    let root = try CertificateAuthority.makeRoot(name: "Root")
    let identity = try root.issue(names: ["www.example.com", "10.0.0.1"])
    let text = try await ChildProcess.run(
      "openssl", ["x509", "-noout", "-text"], input: Array(identity.leaf.pem.utf8)
    ).stdout
    for expected in [
      "X509v3 Basic Constraints: critical\n                CA:FALSE",
      "X509v3 Key Usage: critical\n                Digital Signature",
      "TLS Web Server Authentication", "X509v3 Subject Key Identifier",
      "X509v3 Authority Key Identifier", "DNS:www.example.com, IP Address:10.0.0.1",
      "Version: 3",
    ] {
      #expect(text.contains(expected), "\(expected) is missing in \(text)")
    }
    #expect(!text.contains("(Negative)"))
    #expect(try root.issue(names: ["www.example.com"], key: identity.key).leaf != identity.leaf)
  }

  @Test("certificates of the past and the future carry the very seconds asked for")
  func chosenValidity() throws {
    let root = try CertificateAuthority.makeRoot(name: "Root")
    for validity in [
      Validity(notBefore: 0, notAfter: 1), Validity(notBefore: 946_684_800, notAfter: 978_307_200),
      Validity(notBefore: 4_102_444_800, notAfter: 253_402_300_799),
    ] {
      let identity = try root.issue(names: ["a.test"], validity: validity)
      #expect(identity.leaf.validity == validity)
    }
  }

  @Test(
    "refuses validities that cannot be",
    arguments: [
      Validity(notBefore: 2, notAfter: 1), Validity(notBefore: 0, notAfter: .max),
      Validity(notBefore: .min, notAfter: 0),
    ])
  func impossibleValidity(validity: Validity) throws {
    let root = try CertificateAuthority.makeRoot(name: "Root")
    #expect(
      throws:
        CertificateError.validity(notBefore: validity.notBefore, notAfter: validity.notAfter)
    ) {
      try root.issue(names: ["a.test"], validity: validity)
    }
  }

  @Test(
    "reads names as DNS names or addresses",
    arguments: [
      ("WWW.Example.com", SubjectName.dns("www.example.com")), ("*.a.test", .dns("*.a.test")),
      ("localhost", .dns("localhost")), ("xn--bcher-kva.example", .dns("xn--bcher-kva.example")),
      ("127.0.0.1", .ipv4("127.0.0.1")), ("0:0::1", .ipv6("::1")), ("[::1]", .ipv6("::1")),
      ("::ffff:1.2.3.4", .ipv6("::ffff:1.2.3.4")), ("a_b.test", .dns("a_b.test")),
    ])
  func names(text: String, expected: SubjectName) throws {
    #expect(try SubjectName(text) == expected)
  }

  @Test(
    "refuses what is no name, above all what would smuggle in another",
    arguments: [
      "", ".", "a..b", "a.", "a b", "bücher.example", "a,DNS:evil.test", "a.*.test", "w*.test", "*",
      "127.1", "1.2.3.4.5", "300.1.1.1", "a\u{0}.test", "@section", "[127.0.0.1",
      String(repeating: "a", count: 64) + ".test",
    ])
  func notNames(text: String) throws {
    #expect(throws: CertificateError.invalidName(text)) { try SubjectName(text) }
  }

  @Test("a server certificate needs a name, and a long one goes without a common name")
  func nameLimits() async throws {
    let root = try CertificateAuthority.makeRoot(name: "Root")
    #expect(throws: CertificateError.noNames) { try root.issue(names: []) }
    let long = Array(repeating: "abcdefghij", count: 8).joined(separator: ".") + ".test"
    let identity = try root.issue(names: [long])
    #expect(identity.leaf.subject == "")
    let text = try await ChildProcess.run(
      "openssl", ["x509", "-noout", "-text"], input: Array(identity.leaf.pem.utf8)
    ).stdout
    #expect(text.contains("X509v3 Subject Alternative Name: critical\n                DNS:\(long)"))
  }

  @Test("renewing keeps the key and so the public key bytes; a new key changes them")
  func renewal() throws {
    let root = try CertificateAuthority.makeRoot(name: "Root")
    let first = try root.issue(names: ["a.test"])
    let renewed = try root.issue(names: ["a.test"], key: first.key)
    #expect(renewed.leaf != first.leaf)
    #expect(try renewed.leafSPKI == first.leafSPKI)
    #expect(try root.issue(names: ["a.test"]).leafSPKI != first.leafSPKI)
  }

  @Test("a self-signed identity verifies against itself and against nothing else")
  func selfSigned() async throws {
    let identity = try ServerIdentity.selfSigned(names: ["a.test"])
    #expect(identity.leaf.subject == identity.leaf.issuer)
    #expect(identity.intermediates.isEmpty)
    let directory = try TemporaryDirectory()
    let leaf = try directory.write(identity.leaf.pem, to: "leaf").path
    let other = try directory.write(
      ServerIdentity.selfSigned(names: ["a.test"]).leaf.pem, to: "other"
    ).path
    #expect(
      try await ChildProcess.run("openssl", ["verify", "-CAfile", leaf, leaf]).exitCode == 0)
    #expect(
      try await ChildProcess.run("openssl", ["verify", "-CAfile", other, leaf]).exitCode != 0)
  }

  @Test("certificates and authorities come back from PEM, and a foreign key is refused")
  func readingBack() throws {
    let root = try CertificateAuthority.makeRoot(name: "Root")
    let below = try root.issueIntermediate(name: "Below")
    let identity = try below.issue(names: ["a.test"])
    let read = try Certificate.certificates(inPEM: "hello\n" + identity.certificateChainPEM)
    #expect(read == [identity.leaf, below.certificate])
    let key = try PrivateKey(pem: identity.keyPEM)
    #expect(try ServerIdentity(certificates: read, key: key).leaf == identity.leaf)
    #expect(throws: CertificateError.self) {
      try ServerIdentity(certificates: read, key: below.key)
    }
    let again = try CertificateAuthority(chain: below.chain, key: below.key)
    #expect(again.root == root.certificate)
    #expect(throws: CertificateError.self) {
      try CertificateAuthority(chain: below.chain, key: root.key)
    }
  }

  @Test("certificates that are not whole are refused")
  func truncation() throws {
    let leaf = try ServerIdentity.selfSigned(names: ["a.test"]).leaf
    #expect(throws: CertificateError.noPEM(of: "CERTIFICATE")) {
      try Certificate.certificates(inPEM: "")
    }
    #expect(throws: CertificateError.self) {
      try Certificate.certificates(inPEM: leaf.pem + String(leaf.pem.dropLast(60)))
    }
    #expect(throws: CertificateError.self) { try Certificate(der: []) }
    #expect(throws: CertificateError.self) { try Certificate(der: leaf.der.dropLast()) }
    #expect(throws: CertificateError.self) { try Certificate(der: leaf.der + [0]) }
    #expect(try Certificate(der: leaf.der) == leaf)
  }
}
