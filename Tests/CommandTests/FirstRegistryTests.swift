import Foundation
import TestSupport
import Testing

/// The tutorial, run as somebody pastes it: its ports are free on a machine of its own.
@Suite(
  "docs/first-registry.md",
  .enabled("this system lets the tests make no namespaces (unshare)") {
    await PrivateMachine.isPermitted.value
  })
struct FirstRegistryTests {
  @Test("works line by line, from nothing through a rotation to the archive")
  func lines() async throws {
    let page = Vectors.root.deletingLastPathComponent().appending(path: "docs/first-registry.md")
    let blocks = try String(contentsOf: page, encoding: .utf8)
      .components(separatedBy: "```sh\n").dropFirst()
      .map { $0.components(separatedBy: "```\n")[0] }
    #expect(blocks.count > 5)
    let directory = try TemporaryDirectory()
    try directory.write(
      "set -euo pipefail\n\(blocks.joined())tar -tf registry.tar\n", to: "page.sh")
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
    #expect(end.exitCode == 0, "\(end.stdout)\(end.stderr)")
    for line in [
      "{\"reasons\":[],\"status\":\"ready\"}", "format 1   valid", "is published ahead of its use",
      "is denied", "key set    1", "tls/online/localhost.json-1.pem",
    ] {
      #expect(end.stdout.contains(line), "\(end.stdout)")
    }
    let answer = try String(contentsOf: directory.file("registry/page.html"), encoding: .utf8)
    #expect(answer.contains("-cert next.pem"))
    #expect(try await machine.stop())
  }
}
