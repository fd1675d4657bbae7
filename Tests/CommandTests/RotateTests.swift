import CanonicalJSON
import Foundation
import TestSupport
import Testing

@Suite("keys rotate")
struct RotateTests {
  private static let file = "www.example.com.json"

  /// A server's directory with the shipped key.
  private func stage() throws -> TemporaryDirectory {
    let directory = try TemporaryDirectory()
    try FileManager.default.createDirectory(
      at: directory.file("tls"), withIntermediateDirectories: true)
    try Keys.signing.get().write(to: directory.file("tls/prv.pem"))
    return directory
  }

  private func rotate(_ directory: TemporaryDirectory) async throws -> ChildProcess.Outcome {
    try await Tool.run([
      "keys", "rotate", "--registry-name", Self.file, "--dir", directory.path() + "/tls",
    ])
  }

  @Test("makes one key set after another, each with a key of its own, and overwrites nothing")
  func chain() async throws {
    let directory = try stage()
    for epoch in 1...3 {
      let outcome = try await rotate(directory)
      #expect(outcome.exitCode == 0, "\(outcome.stderr)")
      #expect(outcome.stdout.hasPrefix("key set \(epoch) of \(Self.file): online key "))
      #expect(!outcome.stderr.contains("warning"))
    }
    let chain = try JSONValue(
      parsing: [UInt8](Data(contentsOf: directory.file("tls/keysets/" + Self.file))))
    #expect(chain.arrayValue?.count == 3)
    let keys = try FileManager.default.contentsOfDirectory(
      atPath: directory.file("tls/online").path(percentEncoded: false))
    #expect(keys.sorted() == (1...3).map { "\(Self.file)-\($0).pem" })
  }

  @Test("says what is missing without the server's key, and wants the document's name")
  func usage() async throws {
    let directory = try TemporaryDirectory()
    let missing = try await rotate(directory)
    #expect(missing.exitCode == 3 && missing.stderr.contains("prv.pem"))
    let unnamed = try await Tool.run(["keys", "rotate"])
    #expect(unnamed.exitCode == 2 && unnamed.stderr.contains("--registry-name"))
  }
}
