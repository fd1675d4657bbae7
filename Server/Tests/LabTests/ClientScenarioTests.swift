import Foundation
import TestSupport
import Testing

@testable import ssl_pinning_lab

@Suite("lab")
struct ClientScenarioTests {
  private static func lab(_ arguments: String...) async throws -> ChildProcess.Outcome {
    try await ChildProcess.run(
      BuiltProgram.path("ssl-pinning-lab"), ["lab"] + arguments, seconds: 600)
  }

  private static let pinned = #"curl=curl -fsS --cacert {ca} --pinnedpubkey "{pins}" {url}"#

  @Test("the SDK is locked out of nothing and lets nobody in")
  func own() async throws {
    let outcome = try await Self.lab("run")
    #expect(outcome.exitCode == 0, "\(outcome.stdout)\(outcome.stderr)")
    #expect(outcome.stdout.hasSuffix("\nSslPinning: 0 lock-outs, 0 intrusions\n"))
    #expect(
      outcome.stdout.components(separatedBy: " | ok |").count - 1 == ClientScenario.all.count)
  }

  @Test(
    "tells what clients without a list do: one lets in who is trusted, one is locked out by rotations"
  )
  func others() async throws {
    let names = ["renewal", "unannounced-rotation", "trusted-ca", "self-signed", "stolen-backup"]
    let path = try BuiltProgram.path("ssl-pinning-lab")
    let outcome = try await ChildProcess.run(
      path,
      ["lab", "run", "--client", "plain=curl -fsS --cacert {ca} {url}", "--client", Self.pinned]
        + names, seconds: 120)
    #expect(outcome.exitCode == 1)
    for line in [
      "| | plain | curl |", "| change: renewal | ok | ok |",
      "| change: unannounced-rotation | ok | LOCKED OUT |",
      "| attack: trusted-ca | LET IN | ok |", "| attack: self-signed | ok | ok |",
      "| attack: stolen-backup | LET IN | LET IN |",
      "plain: 0 lock-outs, 2 intrusions", "curl: 1 lock-outs, 1 intrusions",
    ] {
      #expect(outcome.stdout.contains("\(line)\n"), "\(outcome.stdout)\(outcome.stderr)")
    }
  }

  @Test("says of a client that never works that nothing is known of it")
  func dead() async throws {
    let outcome = try await Self.lab("run", "--client", "none=false {url}", "renewal", "trusted-ca")
    #expect(outcome.exitCode == 1)
    #expect(outcome.stdout.contains("| ? not served by the real server |"))
    #expect(outcome.stdout.hasSuffix("none: 0 lock-outs, 0 intrusions, 2 inconclusive\n"))
  }

  @Test("refuses a client without a URL and a scenario that does not exist")
  func usage() async throws {
    for arguments in [["--client", "curl"], ["--client"], ["no-such"], ["--other"]] {
      let outcome = try await ChildProcess.run(
        BuiltProgram.path("ssl-pinning-lab"), ["lab", "run"] + arguments)
      #expect(outcome.exitCode == 2, "\(arguments)")
    }
  }

  @Test(
    "leaves the servers up, in the state that was asked for, for a client pointed there by hand")
  func up() async throws {
    let lab = try ChildProcess(
      BuiltProgram.path("ssl-pinning-lab"), ["lab", "up", "announced-rotation", "trusted-ca"])
    try await lab.waitForOutput(containing: "Ctrl-C")
    let lines = lab.stdout.split(separator: "\n").map(String.init)
    func values(_ name: String) -> [String] {
      lines.filter { $0.hasPrefix("  \(name): ") }.map { String($0.dropFirst(name.count + 4)) }
    }
    #expect(values("expected") == ["served", "refused"])
    let (urls, anchors, pins) = (values("url"), values("ca"), values("pins"))
    try #require(urls.count == 2 && anchors.count == 2 && pins.count == 2)
    for (index, code) in [(0, Int32(0)), (1, 90)] {
      let end = try await ChildProcess.run(
        "curl", ["-fsS", "--cacert", anchors[index], "--pinnedpubkey", pins[index], urls[index]])
      #expect(end.exitCode == code, "\(end.stderr)")
    }
    #expect(try await lab.terminate(signal: SIGINT).exitCode == 0)
    #expect(!FileManager.default.fileExists(atPath: anchors[0]))
  }
}
