import Foundation
import TestSupport
import Testing

@Suite("demo")
struct DemoTests {
  @Test("proves every claim, ends with 0, and leaves nothing behind")
  func once() async throws {
    try await withTemporaryDirectory { directory in
      let outcome = try await Self.start(["demo", "--once"], in: directory).wait(seconds: 120)
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
      let demo = try Self.start(["demo"], in: directory)
      try await demo.waitForOutput(containing: "Still up", seconds: 120)
      #expect(demo.isRunning)
      let ended = try await demo.terminate(signal: signal, seconds: 30)
      #expect(ended.exitCode == 0)
      #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path()).isEmpty)
    }
  }

  @Test("leaves nothing behind, whenever it is told to end", arguments: ["proving", "staying up"])
  func cleansUp(moment: String) async throws {
    try await withTemporaryDirectory { directory in
      let demo = try Self.start(["demo"], in: directory)
      if moment == "staying up" {
        try await demo.waitForOutput(containing: "what the registry says")
        #expect(try Self.left(in: directory.path()).count == 1)
      } else {
        for _ in 0..<600 where try Self.left(in: directory.path()).isEmpty {
          // why: the directory comes to be in another process, in its own time.
          try await Task.sleep(nanoseconds: 10_000_000)
        }
      }
      _ = try await demo.terminate(seconds: 30)
      #expect(try Self.left(in: directory.path()) == [])
    }
  }

  @Test("prints commands that work as they stand, in any directory")
  func hints() async throws {
    try await withTemporaryDirectory { directory in
      let demo = try Self.start(["demo"], in: directory)
      try await demo.waitForOutput(containing: "what the registry says")
      try await demo.waitForOutput(containing: "/pub.pem http://")
      let line = try #require(
        demo.stdout.split(separator: "\n").first { $0.contains(" verify --key ") })
      let outcome = try await ChildProcess.run(
        "/bin/sh", ["-c", String(line)], directory: directory.url)
      #expect(outcome.exitCode == 0, "\(outcome.stderr)")
      #expect(outcome.stdout.contains("shop.localhost"))
      #expect(try await demo.terminate(seconds: 30).exitCode == 0)
    }
  }

  @Test("serves the playground beside its proofs, and leaves nothing of it behind")
  func playground() async throws {
    try await withTemporaryDirectory { directory in
      let demo = try Self.start(["demo"], in: directory)
      try await demo.waitForOutput(containing: "# the playground:", seconds: 120)
      try await demo.waitForOutput(containing: "/\n\n")
      let line = try #require(
        demo.stdout.split(separator: "\n").last { $0.hasPrefix("  http://127") })
      let answer = try await ChildProcess.run(
        "curl", ["-sS", "--noproxy", "*", line.trimmingCharacters(in: .whitespaces)])
      #expect(answer.stdout.contains("<title>Pinning playground</title>"), "\(answer.stderr)")
      #expect(try await demo.terminate(seconds: 60).exitCode == 0)
      #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path()).isEmpty)
    }
  }

  /// The demo, with `directory` as the machine's temporary one.
  private static func start(
    _ arguments: [String], in directory: TemporaryDirectory
  ) throws -> ChildProcess {
    let proxies = ["http_proxy", "https_proxy", "all_proxy", "no_proxy"].flatMap {
      [$0, $0.uppercased()]
    }
    var environment = Dictionary(uniqueKeysWithValues: proxies.map { ($0, "") })
    environment["TMPDIR"] = directory.path()
    return try ChildProcess(
      BuiltProgram.path("ssl-pinning-lab"), arguments, environment: environment)
  }

  private static func left(in path: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: path)
      .filter { $0.hasPrefix("ssl-pinning-demo") }
  }
}
