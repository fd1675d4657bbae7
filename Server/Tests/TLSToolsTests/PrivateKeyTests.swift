import Foundation
import TLSTools
import TestSupport
import Testing

@Suite("Private keys")
struct PrivateKeyTests {
  @Test(
    "are PKCS#8 that OpenSSL reads, with the public half it derives",
    arguments: [
      (PrivateKey.Algorithm.p256, 256), (.rsa(bits: 2048), 2048), (.rsa(bits: 3072), 3072),
    ])
  func roundTrip(algorithm: PrivateKey.Algorithm, bits: Int) async throws {
    let key = try PrivateKey.generate(algorithm)
    #expect(key.bits == bits)
    let pem = try key.pem
    #expect(pem.hasPrefix("-----BEGIN PRIVATE KEY-----\n"))
    let derived = try await ChildProcess.run(
      "openssl", ["pkey", "-pubout"], input: Array(pem.utf8))
    #expect(derived.stdout == (try key.publicKeyPEM))
    let again = try PrivateKey(pem: pem)
    #expect(try again.publicKeyDER == key.publicKeyDER)
    #expect(try PrivateKey.generate(algorithm).publicKeyDER != key.publicKeyDER)
  }

  @Test("refuses sizes that are no RSA key", arguments: [0, -1, 512, 1023, 8193, Int.max])
  func sizes(bits: Int) {
    #expect(throws: CertificateError.keySize(bits)) { try PrivateKey.generate(.rsa(bits: bits)) }
  }

  @Test("refuses what is no key, and never asks for a pass phrase")
  func notKeys() async throws {
    let key = try PrivateKey.generate(.p256)
    #expect(throws: CertificateError.noPEM(of: "PRIVATE KEY")) { try PrivateKey(pem: "") }
    #expect(throws: CertificateError.noPEM(of: "PRIVATE KEY")) {
      try PrivateKey(pem: key.publicKeyPEM)
    }
    #expect(throws: CertificateError.self) { try PrivateKey(pem: String(key.pem.dropLast(80))) }
    let locked = try await ChildProcess.run(
      "openssl", ["pkey", "-aes128", "-passout", "pass:secret"], input: Array(key.pem.utf8))
    #expect(locked.stdout.contains("ENCRYPTED PRIVATE KEY"))
    #expect(throws: CertificateError.self) { try PrivateKey(pem: locked.stdout) }
  }

  @Test("are known by their form in DER, and nothing public is taken for one")
  func forms() async throws {
    let openssl = try OpenSSLCommand()
    try openssl.write(Array(try PrivateKey.generate(.rsa(bits: 2048)).pem.utf8), to: "rsa")
    try openssl.write(Array(try PrivateKey.generate(.p256).pem.utf8), to: "ec")
    try openssl.write(Array(try PrivateKey.generate(.ed25519).pem.utf8), to: "ed")
    for (isKey, line) in [
      (true, "pkey -in rsa"), (true, "pkey -in ec"), (true, "pkey -in ed"),
      (true, "rsa -in rsa -traditional"), (true, "ec -in ec"),
      (true, "pkcs8 -topk8 -in ec -passout pass:horse"),
      (true, "pkcs8 -topk8 -in rsa -passout pass:horse -v1 PBE-SHA1-3DES"),
      (false, "pkey -in rsa -pubout"), (false, "rsa -in rsa -RSAPublicKey_out"),
      (false, "ec -in ec -pubout"), (false, "req -new -key ec -subj /CN=a"),
      (false, "req -x509 -new -key ec -subj /CN=a"),
    ] {
      let words = line.split(separator: " ").map(String.init)
      let der = try await openssl.make("out", words + ["-outform", "DER"])
      #expect(PrivateKey.hasForm(of: der) == isKey, "\(line)")
    }
    for bytes in [[], [0x30], [0x30, 0], Array("{}".utf8), [0x30, 3, 2, 1, 3]] as [[UInt8]] {
      #expect(!PrivateKey.hasForm(of: bytes))
    }
  }

  @Test("a key file is the owner's alone, is never overwritten, and is replaced only when asked")
  func files() throws {
    let directory = try TemporaryDirectory()
    let identity = try ServerIdentity.selfSigned(names: ["a.test"])
    let files = try identity.write(to: directory.url, name: "server")
    #expect(try mode(files.key) == 0o600)
    #expect(try mode(files.certificates) & 0o600 == 0o600)
    #expect(try String(contentsOf: files.key, encoding: .utf8) == identity.keyPEM)
    #expect(
      try String(contentsOf: files.certificates, encoding: .utf8) == identity.certificateChainPEM)

    let next = try ServerIdentity.selfSigned(names: ["a.test"])
    #expect(throws: CertificateError.self) { try next.write(to: directory.url, name: "server") }
    #expect(try String(contentsOf: files.key, encoding: .utf8) == identity.keyPEM)
    _ = try next.write(to: directory.url, name: "server", replacing: true)
    #expect(try String(contentsOf: files.key, encoding: .utf8) == next.keyPEM)
    #expect(try mode(files.key) == 0o600)
    let left = try FileManager.default.contentsOfDirectory(atPath: directory.path()).sorted()
    #expect(left == ["server.key", "server.pem"])
  }

  @Test("a file that cannot be written says which and why")
  func noSuchDirectory() throws {
    let directory = try TemporaryDirectory()
    let file = directory.file("missing/server.key")
    let error = #expect(throws: CertificateError.self) {
      try PrivateKey.generate(.p256).write(to: file)
    }
    #expect(error?.description.contains("no such file or directory") == true)
    #expect(error?.description.contains("missing/server.key") == true)
  }

  private func mode(_ file: URL) throws -> Int {
    let attributes = try FileManager.default.attributesOfItem(atPath: file.path)
    return try #require(attributes[.posixPermissions] as? Int)
  }
}
