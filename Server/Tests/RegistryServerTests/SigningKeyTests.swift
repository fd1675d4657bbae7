import Foundation
import SslPinningPlatform
import TLSTools
import TestSupport
import Testing

@Suite("Signing keys") struct SigningKeyTests {
  @Test("sign what clients verify", arguments: [2048, 3072])
  func sign(_ bits: Int) throws {
    let key = try SigningKey.generate(bits: bits)
    #expect(key.bits == bits)
    let message = Array("message".utf8)
    let signature = try key.sign(message)
    #expect(signature.count == bits / 8)
    let verifier = try VerificationKey(key.publicKeyPEM)
    #expect(verifier.isValid(signature: signature, over: message))
    #expect(!verifier.isValid(signature: signature, over: message + [0]))
    #expect(verifier.spkiDER == key.publicKeyDER)
  }

  @Test("are read in both encodings, and written for their owner alone")
  func files() async throws {
    let directory = try TemporaryDirectory()
    let key = try testSigningKey.get()
    let file = directory.file("prv.pem")
    try key.write(to: file)
    let mode = try FileManager.default.attributesOfItem(atPath: directory.path("prv.pem"))
    #expect((mode[.posixPermissions] as? NSNumber)?.intValue == 0o600)
    #expect(try SigningKey(file: file).publicKeyDER == key.publicKeyDER)
    let converted = try await ChildProcess.run(
      "openssl", ["rsa", "-traditional", "-in", directory.path("prv.pem")])
    #expect(converted.stdout.contains("BEGIN RSA PRIVATE KEY"))
    #expect(try SigningKey(pem: converted.stdout).publicKeyDER == key.publicKeyDER)
    #expect(throws: SigningKeyError.self) { try key.write(to: file) }
  }

  @Test("tell what stands in the file instead")
  func others() async throws {
    let directory = try TemporaryDirectory()
    let key = try testSigningKey.get()
    try key.write(to: directory.file("prv.pem"))
    let path = directory.path("prv.pem")
    func openssl(_ arguments: String...) async throws -> String {
      try await ChildProcess.run("openssl", arguments).stdout
    }
    let encrypted = try await openssl("pkey", "-in", path, "-aes256", "-passout", "pass:x")
    #expect(throws: SigningKeyError.encrypted) { try SigningKey(pem: encrypted) }
    let old = try await openssl(
      "rsa", "-traditional", "-in", path, "-aes256", "-passout", "pass:x")
    #expect(throws: SigningKeyError.encrypted) { try SigningKey(pem: old) }
    #expect(throws: SigningKeyError.publicKey) { try SigningKey(pem: key.publicKeyPEM) }
    let authority = try CertificateAuthority.makeRoot(name: "Root")
    #expect(throws: SigningKeyError.certificate) { try SigningKey(pem: authority.root.pem) }
    #expect(throws: SigningKeyError.notRSA(algorithm: "EC")) {
      try SigningKey(pem: authority.key.pem)
    }
    let small = try await openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:512")
    #expect(throws: SigningKeyError.tooSmall(bits: 512)) { try SigningKey(pem: small) }
    let pss = try await openssl(
      "genpkey", "-algorithm", "RSA-PSS", "-pkeyopt", "rsa_keygen_bits:2048")
    #expect(throws: SigningKeyError.notRSA(algorithm: "RSA-PSS")) { try SigningKey(pem: pss) }
    #expect(throws: SigningKeyError.noKey) { try SigningKey(pem: "") }
    let whole = try await openssl("pkey", "-in", path)
    #expect(throws: SigningKeyError.self) { try SigningKey(pem: String(whole.dropLast(200))) }
    for place in [directory.url, directory.file("none"), URL(filePath: "/dev/zero")] {
      #expect(throws: SigningKeyError.self) { try SigningKey(file: place) }
    }
  }
}
