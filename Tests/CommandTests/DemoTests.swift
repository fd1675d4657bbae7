import Foundation
import TestSupport
import Testing

@Suite("demo")
struct DemoTests {
  @Test("proves every claim, ends with 0, and leaves nothing behind")
  func once() async throws {
    try await withTemporaryDirectory { directory in
      let outcome = try await Tool.run(
        ["demo", "--once"], environment: ["TMPDIR": directory.path()], seconds: 120)
      #expect(outcome.exitCode == 0, "\(outcome.stdout)")
      #expect(outcome.stdout.contains("claims proved"))
      #expect(!outcome.stdout.contains("✘"))
      #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path()).isEmpty)
    }
  }

  @Test(
    "stays up without --once, and ends with 0 when it is told to", arguments: [SIGINT, SIGTERM])
  func staysUp(signal: Int32) async throws {
    try await withTemporaryDirectory { directory in
      let demo = try Tool.start(["demo"], environment: ["TMPDIR": directory.path()])
      try await demo.waitForOutput(containing: "Still up", seconds: 120)
      #expect(demo.isRunning)
      let ended = try await demo.terminate(signal: signal, seconds: 30)
      #expect(ended.exitCode == 0)
      #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path()).isEmpty)
    }
  }
}
