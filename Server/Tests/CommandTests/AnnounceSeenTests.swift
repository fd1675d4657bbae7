import FaultLab
import Foundation
import TestSupport
import Testing

@Suite("announce of a key that was shown before", .timeLimit(.minutes(3)))
struct AnnounceSeenTests {
  @Test(
    "a key that is listed because probes saw it is announced: else it would leave the lists once it is not shown"
  )
  func seenBefore() async throws {
    let stage = try await AnnounceStage()
    let directory = stage.stage.directory
    try await stage.stopServer()
    let text = try String(contentsOfFile: directory.path("config.yaml"), encoding: .utf8)
    try directory.write(
      text.replacing("tls: {", with: "tls: {dump_interval: 1s, confirmation_interval: 200ms, "),
      to: "config.yaml")
    try await stage.startServer()
    try stage.stage.server.replaceIdentity(stage.next)
    for _ in 0..<600 {
      if try await stage.document().contains(try stage.pin) { break }
      // why: the server looks at its endpoint in its own time, in another process.
      try await Task.sleep(nanoseconds: 50_000_000)
    }
    try #require(try await stage.document().contains(try stage.pin))
    func history() async throws -> String {
      try await Tool.run(
        "admin", "history", "--file", "all.json", "--json", "--config-path", directory.path()
      ).stdout
    }
    #expect(try await !history().contains("key_staged"))
    let outcome = try await stage.announce()
    #expect(outcome.exitCode == 0 && stage.jobs.isEmpty, "\(outcome.stderr)")
    #expect(try await history().contains("key_staged"))
    // Once is enough: it exists by then, and is on the list.
    #expect(try await stage.announce().exitCode == 0)
    try await stage.stopServer()
  }
}
