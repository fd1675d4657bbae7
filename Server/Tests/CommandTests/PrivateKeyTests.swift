import Foundation
import TLSTools
import TestSupport
import Testing

@Suite("Private keys of the tool's users")
struct PrivateKeyTests {
  private static let key = Result { try TrustSigningKey.generate(.ed25519) }

  /// The key as PEM, as the base64 in it, and in one line.
  private func texts(_ directory: TemporaryDirectory) throws -> [String] {
    try Self.key.get().write(to: directory.file("prv.pem"))
    let pem = try String(contentsOf: directory.file("prv.pem"), encoding: .utf8)
    let inner = pem.split(separator: "\n").dropFirst().dropLast().joined()
    return [pem, inner, pem.replacing("\n", with: ""), Data(pem.utf8).base64EncodedString()]
  }

  @Test("are not quoted where the text stands in the place of a file")
  func quoted() async throws {
    let directory = try TemporaryDirectory()
    try directory.write("{}", to: "p.json")
    let document = directory.path("p.json")
    let all = try texts(directory)
    for text in all {
      for words in [
        ["sign", "--key", text, document], ["sign", "--online-key", text, document],
        ["sign", "--key=\(text)", document], ["sign", document, text],
        ["sign", "--key", "x", text],
        ["keys", "sign-set", document, "--sign-with", text], ["verify", "--key", text, document],
        ["verify", "--key", "x", text],
      ] {
        let outcome = try await Tool.run(words)
        let said = outcome.stderr + outcome.stdout
        #expect(outcome.exitCode != 0 && !said.isEmpty)
        #expect(!said.contains(all[1].prefix(40)), "\(said)")
        #expect(!said.contains(all[3].prefix(100)), "\(said)")
      }
    }
    let told = try await Tool.run(["sign", "--key", all[0], document])
    #expect(told.exitCode == 2 && told.stderr.contains("hint: put it into a file"))
  }

  @Test("are not replaced by a result")
  func replaced() async throws {
    let stage = try Format2Stage()
    try await stage.makeSet()
    for (line, name) in [
      ("sign --key prv.pem payload.json", "prv.pem"),
      ("keys sign-set sets.json --sign-with root0.pem", "root0.pem"),
    ] {
      let before = try Data(contentsOf: stage.directory.file(name))
      let outcome = try await stage.run("\(line) --out", also: [stage.path(name)])
      #expect(outcome.exitCode == 2 && outcome.stdout.isEmpty)
      #expect(outcome.stderr.contains("holds a private key, and is not replaced"))
      #expect(try Data(contentsOf: stage.directory.file(name)) == before)
    }
  }

  @Test("are not replaced in DER or PKCS #12 either, which other files in DER are")
  func replacedBinary() async throws {
    let directory = try TemporaryDirectory()
    let authority = try CertificateAuthority.makeRoot(name: "Root")
    let pem = try authority.key.pem
    let der = try #require(
      Data(base64Encoded: pem.split(separator: "\n").dropFirst().dropLast().joined()))
    let p12 = try PKCS12(certificates: authority.chain, key: authority.key)
      .der(password: "horse", name: "a", protection: .current)
    try directory.write(
      #"{"keys":[{"domainName":"a.example","key":"\#(Format2Stage.pin)"}]}"#, to: "payload.json")
    for (bytes, isKept) in [
      ([UInt8](der), true), (p12, true), (authority.root.der, false),
      (try authority.key.publicKeyDER, false),
    ] {
      try directory.write(bytes, to: "out")
      let outcome = try await Tool.run(
        "export", "--to", "nspinneddomains", directory.path("payload.json"), "--out",
        directory.path("out"))
      #expect(outcome.exitCode == (isKept ? 2 : 0), "\(outcome.stderr)")
      let after = [UInt8](try Data(contentsOf: directory.file("out")))
      #expect((after == bytes) == isKept)
    }
  }
}
