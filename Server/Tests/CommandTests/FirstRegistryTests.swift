import Foundation
import TestSupport
import Testing

/// The pages that are to be pasted, run as somebody pastes them: their ports are free on a machine of its own.
@Suite(
  "docs/first-registry.md, docs/root-keys.md, docs/own-ca.md, docs/keys-in-hardware.md, docs/doctor.md, docs/vantage.md and docs/operations.md",
  .enabled("this system lets the tests make no namespaces (unshare)") {
    await PrivateMachine.isPermitted.value
  })
struct FirstRegistryTests {
  /// What stands in the blocks for a shell, up to a heading.
  private static func lines(of name: String, before heading: String? = nil) throws -> [String] {
    let page = Vectors.package.appending(path: "docs/\(name)")
    var text = try String(contentsOf: page, encoding: .utf8)
    if let heading { text = text.components(separatedBy: "\n## \(heading)\n")[0] }
    return text.components(separatedBy: "```sh\n").dropFirst()
      .map { $0.components(separatedBy: "```\n")[0] }
  }

  private static func run(
    _ lines: [String], in directory: TemporaryDirectory
  ) async throws -> ChildProcess.Outcome {
    try directory.write("set -euo pipefail\n\(lines.joined())", to: "page.sh")
    let machine = try await PrivateMachine.start(in: directory, folders: [], script: "")
    let tools = URL(filePath: try Tool.path()).deletingLastPathComponent()
    let environment = [
      "PATH": tools.path(percentEncoded: false) + ":"
        + (ProcessInfo.processInfo.environment["PATH"] ?? ""),
      // The page waits for looks, which come within a minute.
      "SSL_PINNING_TLS_DUMP_INTERVAL": "5s",
    ]
    let end = try await machine.run(
      "bash", ["page.sh"], environment: Tool.noProxies.merging(environment) { _, new in new })
    #expect(try await machine.stop())
    return end
  }

  @Test("works line by line, from nothing through a rotation to the archive")
  func firstRegistry() async throws {
    let blocks = try Self.lines(of: "first-registry.md")
    #expect(blocks.count > 5)
    let directory = try TemporaryDirectory()
    let end = try await Self.run(blocks + ["tar -tf registry.tar\n"], in: directory)
    #expect(end.exitCode == 0, "\(end.stdout)\(end.stderr)")
    for line in [
      "{\"reasons\":[],\"status\":\"ready\"}", "format 1   valid", "is published ahead of its use",
      "is denied", "key set    1", "tls/online/localhost.json-1.pem",
    ] {
      #expect(end.stdout.contains(line), "\(end.stdout)")
    }
    let answer = try String(contentsOf: directory.file("registry/page.html"), encoding: .utf8)
    #expect(answer.contains("-cert next.pem"))
  }

  @Test(
    "root keys sign who may sign the list, line by line, and an app with those keys believes it")
  func rootKeys() async throws {
    let before = try Self.lines(of: "first-registry.md", before: "A rotation")
    let ceremony = try Self.lines(of: "root-keys.md")
    #expect(ceremony.count == 5)
    let stop = "kill $REGISTRY $SITE\nwait\n"
    let end = try await Self.run(before + ceremony + [stop], in: TemporaryDirectory())
    #expect(end.exitCode == 0, "\(end.stdout)\(end.stderr)")
    for line in ["key set 1 of localhost.json: online key", "key set    1", "format     2\n"] {
      #expect(end.stdout.contains(line), "\(end.stdout)")
    }
  }

  @Test("a store is backed up, lost, restored and moved, line by line, and keeps what was denied")
  func operations() async throws {
    let before = try Self.lines(of: "first-registry.md", before: "A rotation")
    let blocks = try Self.lines(of: "operations.md")
    #expect(blocks.count == 5)
    let end = try await Self.run(before + blocks, in: TemporaryDirectory())
    #expect(end.exitCode == 0, "\(end.stdout)\(end.stderr)")
    #expect(end.stdout.contains("refused: it is older"))
    #expect(end.stderr.contains("publish.dir has a newer localhost.json"), "\(end.stderr)")
    #expect(end.stdout.components(separatedBy: "\"denied\":[").count - 1 == 3, "\(end.stdout)")
    for line in ["no console at server.listen\n", "not by herself\n"] {
      #expect(end.stdout.contains(line), "\(end.stdout)")
    }
  }

  @Test("an authority of one's own serves, renews and rotates, and apps are served all the time")
  func ownAuthority() async throws {
    let blocks = try Self.lines(of: "own-ca.md")
    #expect(blocks.count == 8)
    let end = try await Self.run(blocks, in: TemporaryDirectory())
    #expect(end.exitCode == 0, "\(end.stdout)\(end.stderr)")
    #expect(end.stdout.components(separatedBy: "served\n").count - 1 == 4, "\(end.stdout)")
    #expect(end.stdout.contains("next pin    "))
  }

  @Test("the key of a registry moves into a module, line by line, and an online key is made in it")
  func keysInHardware() async throws {
    let before = try Self.lines(of: "first-registry.md", before: "A rotation")
    let blocks = try Self.lines(of: "keys-in-hardware.md")
    #expect(blocks.count == 3)
    let end = try await Self.run(before + blocks, in: TemporaryDirectory())
    #expect(end.exitCode == 0, "\(end.stdout)\(end.stderr)")
    for line in ["is denied", "key set 1 of localhost.json: online key", "key set    1"] {
      #expect(end.stdout.contains(line), "\(end.stdout)")
    }
  }

  @Test("three vantage points join a registry, line by line, and a key of a new CA needs no person")
  func vantagePoints() async throws {
    let blocks = try Self.lines(of: "vantage.md")
    #expect(blocks.count == 5)
    let end = try await Self.run(blocks, in: TemporaryDirectory())
    #expect(end.exitCode == 0, "\(end.stdout)\(end.stderr)")
    for line in [
      "  --host localhost:8443", "listening on https://127.0.0.1:7603",
      "{\"reasons\":[],\"status\":\"ready\"}",
      "ssl_pinning_vantage_up{vantage=\"fra\"} 0", "ssl_pinning_vantage_up{vantage=\"osl\"} 1",
      "ssl_pinning_vantage_up{vantage=\"syd\"} 1",
    ] {
      #expect(end.stdout.contains(line), "\(line): \(end.stdout)\(end.stderr)")
    }
    #expect(end.stderr.components(separatedBy: "1 of 1 endpoints").count - 1 == 3, "\(end.stderr)")
  }

  @Test("what doctor says of a project stands on its page")
  func doctor() async throws {
    let end = try await Self.run(try Self.lines(of: "doctor.md"), in: TemporaryDirectory())
    #expect(end.exitCode == 0, "\(end.stdout)\(end.stderr)")
    #expect(end.stdout.components(separatedBy: "exit code 1\n").count - 1 == 3, "\(end.stdout)")
    let page = try String(
      contentsOf: Vectors.package.appending(path: "docs/doctor.md"), encoding: .utf8)
    let shown = page.components(separatedBy: "\n## ")[0].components(separatedBy: "\n")
      .filter { $0.hasPrefix("    ") && $0 != "    " }.map { $0.dropFirst(4) }
    #expect(shown.count > 8)
    for line in shown {
      // What is left out of a long line stands as an ellipsis.
      let parts = line.components(separatedBy: "…")
      #expect(
        end.stdout.components(separatedBy: "\n").contains { said in
          said.hasPrefix(parts[0]) && parts.dropFirst().allSatisfy { said.contains($0) }
        }, "\(line)")
    }
  }
}
