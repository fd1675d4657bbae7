import Foundation
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@Suite("get, under a registry of format 2")
struct GetStatementTests {
  private let stage: GetStage

  init() throws {
    stage = try GetStage()
    try publish()
  }

  private func publish(denied: [SPKIPin] = []) throws {
    let key = try Keys.signing.get()
    let now = Int64(Date().timeIntervalSince1970)
    let document = RegistryDocument(
      registry: "registry.json",
      keys: [
        RegistryKey(
          pattern: try HostPattern("localhost"), pin: .success(try SPKIPin(base64: stage.pin)))
      ],
      terms: .init(
        number: .init(epoch: 0, version: 3), issued: now, expires: now + 90 * 86400,
        denied: denied))
    try Data(document.bytes(format1Key: key, onlineKeys: [key.trustKey]))
      .write(to: stage.directory.file("registry.json"))
  }

  @Test("believes the statement, under the name that the file has")
  func believed() async throws {
    let outcome = try await stage.get(stage.url(), ["--require-statement"])
    #expect(outcome.stdout == "hello\n", "\(outcome.stderr)")
  }

  @Test("says which version refused a denied key")
  func denied() async throws {
    try publish(denied: [try SPKIPin(base64: stage.pin)])
    let outcome = try await stage.get(stage.url())
    #expect(outcome.exitCode == 1)
    #expect(outcome.rule == "denied-key")
    #expect(outcome.stderr.contains("0.3"), "\(outcome.stderr)")
    #expect(stage.server.counts.applicationBytesReceived == 0)
    let verified = try await Tool.run([
      "verify", stage.registry, "--key", stage.directory.path("pub.pem"), "--json",
    ])
    let keys = try verified.json.objectValue?["keys"]?.arrayValue ?? []
    #expect(keys.first?.objectValue?["state"]?.stringValue == "denied")
    #expect(keys.first?.objectValue?["counts"] == .bool(false))
    let problems = try verified.json.objectValue?["problems"]?.arrayValue
    #expect(problems == [.string("localhost has no key that counts; clients refuse it")])
  }

  @Test("makes no request under another registry's statement, nor without one that is required")
  func refused() async throws {
    let other = try await stage.get(stage.url(), ["--registry-name", "other.json"])
    #expect(other.exitCode == 1)
    #expect(other.stderr.contains("hint: --registry-name"), "\(other.stderr)")
    try stage.publish([Keys.entry("localhost", stage.pin)])
    let stripped = try await stage.get(stage.url(), ["--require-statement"])
    #expect(stripped.exitCode == 1)
    #expect(stripped.stderr.contains("no statement"), "\(stripped.stderr)")
    #expect(stage.server.counts.connections == 0)
  }
}
