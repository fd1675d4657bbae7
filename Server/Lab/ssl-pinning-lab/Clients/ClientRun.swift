import FaultLab
import Foundation
import SslPinning
import SslPinningPlatform
import TLSTools

/// A client under test: this project's own in the process, or any command.
struct ClientUnderTest: Sendable {
  let name: String
  /// Sends a request to the stage's site.
  ///
  /// - Returns: what it printed, or `nil` if it was not served.
  let dial: @Sendable (ClientStage) async throws -> String?
  /// What it does by itself within an hour, before it sends another request.
  var learn: @Sendable (ClientStage) async throws -> Void = { _ in }

  /// The SDK, with the stage's root as its trust and its registry's key.
  static func own() -> ClientUnderTest {
    // One app for each stage; stages come one after the other. The last one is kept: its place in memory must not become the next one's.
    let current = Locked<(stage: ClientStage, app: App)?>(nil)
    @Sendable func app(on stage: ClientStage) async throws -> App {
      if let known = current.withLock({ $0 }), known.stage === stage { return known.app }
      let app = try await stage.environment.start {
        $0.trust = stage.environment.trust([stage.otherRoot])
      }
      current.withLock { $0 = (stage, app) }
      return app
    }
    return ClientUnderTest(
      name: "SslPinning",
      dial: { stage in
        // With each, also after one was refused: an attacker has to fail with all of them.
        var bodies: [String] = []
        let dialers = try await app(on: stage).dialers
        for dialer in dialers {
          if case .served(let text) = await dialer.dial(try stage.site.url()) {
            bodies.append(text)
          }
        }
        return bodies.count == dialers.count ? bodies.first : nil
      },
      // A registry that cannot be reached or believed leaves it with the list that it has.
      learn: { stage in _ = try? await app(on: stage).client.refresh() })
  }

  /// A command of a shell, in which `{url}` and its like stand for what it has to know.
  ///
  /// - The values come as variables, so that none of them is read by the shell: a value may stand in double quotes,
  ///   and not in single ones.
  static func command(_ text: String, name: String) -> ClientUnderTest {
    ClientUnderTest(name: name) { stage in
      var (line, environment) = (text, ProcessInfo.processInfo.environment)
      for (name, value) in stage.values {
        line = line.replacing("{\(name)}", with: "${LAB_\(name)}")
        environment["LAB_\(name)"] = value
      }
      return try await ShellCommand(line, environment: environment).output()
    }
  }
}

/// A command that has to end within a time, with all that it started.
private struct ShellCommand {
  private let process = Process()
  private let pipe = Pipe()

  init(_ line: String, environment: [String: String]) {
    // It ends the whole process group: a child of the shell would keep the pipe open.
    process.executableURL = URL(filePath: "/usr/bin/timeout")
    process.arguments = ["--kill-after=1", "30", "/bin/sh", "-c", line]
    process.environment = environment
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = pipe
    process.standardError = FileHandle.nullDevice
  }

  /// - Returns: standard output, or `nil` if the command failed or took too long.
  func output() async throws -> String? {
    let (process, pipe) = (process, pipe)
    try process.run()
    return await withCheckedContinuation { continuation in
      DispatchQueue.global().async {
        let data = (try? pipe.fileHandleForReading.readToEnd()) ?? Data()
        process.waitUntilExit()
        let isGood = process.terminationReason == .exit && process.terminationStatus == 0
        continuation.resume(returning: isGood ? String(decoding: data, as: UTF8.self) : nil)
      }
    }
  }
}

/// What came of a scenario for one client.
enum ClientVerdict: Equatable, Sendable {
  /// A change was not noticed, or an attacker got nothing.
  case held
  /// A change ended in a refusal.
  case lockedOut
  /// The attacker read so many bytes of requests.
  case letIn(bytes: Int)
  /// The client was not served before anything happened, or the stage failed.
  case inconclusive(String)

  var text: String {
    switch self {
    case .held: "ok"
    case .lockedOut: "LOCKED OUT"
    case .letIn: "LET IN"
    case .inconclusive(let reason): "? \(reason)"
    }
  }

  /// Plays a scenario.
  static func of(_ client: ClientUnderTest, in scenario: ClientScenario) async -> ClientVerdict {
    do {
      let stage = try ClientStage()
      // As it is in the client's world before: a refusal afterwards would prove nothing otherwise.
      guard try await client.dial(stage)?.contains(stage.site.body) == true else {
        return .inconclusive("not served by the real server")
      }
      // Nothing has happened to the site where a scenario lets time pass, or something that is no attack.
      let isLockedOut = Locked(false)
      let attacker = try await scenario.happen(stage) {
        try await client.learn(stage)
        let answer = try await client.dial(stage)
        if answer?.contains(stage.site.body) != true { isLockedOut.withLock { $0 = true } }
      }
      guard let attacker else {
        let answer = try await client.dial(stage)
        if isLockedOut.withLock({ $0 }) { return .lockedOut }
        return answer?.contains(stage.site.body) == true ? .held : .lockedOut
      }
      _ = try await client.dial(stage)
      _ = await attacker.waitUntilIdle()
      let bytes = attacker.counts.applicationBytesReceived
      let tried = attacker.counts.connections
      attacker.stop()
      guard tried > 0 else { return .inconclusive("the client never reached the attacker") }
      return bytes > 0 ? .letIn(bytes: bytes) : .held
    } catch { return .inconclusive("\(error)") }
  }
}

/// The verdicts of several clients, as a table.
struct ClientTable: Sendable {
  let clients: [String]
  private(set) var rows: [(scenario: ClientScenario, verdicts: [ClientVerdict])] = []

  init(_ clients: [String]) { self.clients = clients }

  mutating func add(_ scenario: ClientScenario, _ verdicts: [ClientVerdict]) {
    rows.append((scenario, verdicts))
  }

  /// Whether every client held everywhere.
  var isClean: Bool {
    !rows.isEmpty && rows.allSatisfy { row in row.verdicts.allSatisfy { $0 == .held } }
  }

  /// In Markdown, which is readable as it stands.
  var lines: [String] {
    let head = "| | \(clients.joined(separator: " | ")) |"
    let rule = "|---|" + String(repeating: "---|", count: clients.count)
    let body = rows.map { row in
      "| \(row.scenario.isAttack ? "attack" : "change"): \(row.scenario.name) | "
        + row.verdicts.map(\.text).joined(separator: " | ") + " |"
    }
    return [head, rule] + body + clients.indices.map(summary)
  }

  private func summary(of client: Int) -> String {
    let verdicts = rows.map { $0.verdicts[client] }
    let lockedOut = verdicts.count { $0 == .lockedOut }
    let letIn = verdicts.count { if case .letIn = $0 { true } else { false } }
    let unclear = verdicts.count { if case .inconclusive = $0 { true } else { false } }
    let rest = unclear == 0 ? "" : ", \(unclear) inconclusive"
    return "\(clients[client]): \(lockedOut) lock-outs, \(letIn) intrusions\(rest)"
  }
}
