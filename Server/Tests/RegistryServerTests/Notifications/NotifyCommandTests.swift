import CanonicalJSON
import Foundation
import RegistryCore
import SslPinningPlatform
import TestSupport
import Testing

@testable import HTTPServing
@testable import RegistryServer

@Suite("A command is told", .timeLimit(.minutes(3))) struct NotifyCommandTests {
  /// A program of the test's own.
  private static func program(
    _ script: String, in directory: TemporaryDirectory
  ) throws -> [String] {
    try directory.write("#!/bin/bash\ncd \"$(dirname \"$0\")\"\n\(script)\n", to: "told")
    try FileManager.default.setAttributes(
      [.posixPermissions: 0o755], ofItemAtPath: directory.path("told"))
    return [directory.path("told"), "an argument with $HOME; and `more`"]
  }

  private static func message(_ count: Int = 1) -> NotificationMessage {
    let changes = (0..<count).map {
      ConditionChange(
        .begun,
        Condition(
          .alert(.vantageSilent), subject: "point\($0)", since: 1,
          message: String(repeating: "x", count: 99)), at: 2)
    }
    return NotificationMessage(changes, from: "pins", at: 3)
  }

  @Test("on standard input, with its arguments as they stand")
  func told() async throws {
    let directory = try TemporaryDirectory()
    let receiver = CommandReceiver(
      try Self.program(
        "cat >input; echo \"$#:$1\" >arguments; yes | head -c 200000", in: directory
      ))
    // More than a pipe holds.
    let message = Self.message(1000)
    #expect(await receiver.deliver(message, at: 3) == .delivered)
    #expect(try Data(contentsOf: directory.file("input")) == Data(message.bytes))
    #expect(
      try String(contentsOf: directory.file("arguments"), encoding: .utf8)
        == "1:an argument with $HOME; and `more`\n")
  }

  @Test(
    "and has failed if it ends otherwise, or not at all",
    arguments: [
      ("echo no mail today >&2; exit 3", "the command ended with 3, and said \"no mail today\""),
      ("kill -9 $$", "the command was ended by signal 9"),
    ])
  func failed(_ script: String, _ reason: String) async throws {
    let directory = try TemporaryDirectory()
    let receiver = CommandReceiver(try Self.program(script, in: directory))
    #expect(
      await receiver.deliver(Self.message(), at: 3) == .failed(reason: reason, refusal: .content))
    let missing = CommandReceiver([directory.path("missing")])
    guard case .failed(let reason, nil, nil) = await missing.deliver(Self.message(), at: 3) else {
      Issue.record("a program that is not there was told")
      return
    }
    #expect(reason.contains("did not start: no such file"), "\(reason)")
  }

  @Test("whatever it started is gone when its time is up")
  func late() async throws {
    let directory = try TemporaryDirectory()
    let receiver = CommandReceiver(
      try Self.program("sleep 300 & echo $! >pid; wait", in: directory), timeout: 5000)
    guard case .failed(let reason, nil, nil) = await receiver.deliver(Self.message(), at: 3)
    else {
      Issue.record("a program that hangs was told")
      return
    }
    #expect(reason.contains("did not end within 5000 ms"), "\(reason)")
    let pid = try String(contentsOf: directory.file("pid"), encoding: .utf8)
    let child = try #require(Int32(pid.trimmingCharacters(in: .whitespacesAndNewlines)))
    #expect(await eventually { kill(child, 0) != 0 || Self.isZombie(child) })
  }

  private static func isZombie(_ pid: Int32) -> Bool {
    let text = (try? String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8)) ?? ") Z"
    return text.contains(") Z")
  }

  @Test("beside the webhook's rules: again what it did not take, in the same order")
  func again() async throws {
    let directory = try TemporaryDirectory()
    let program = try Self.program(
      "[ -e failed ] || { touch failed; exit 1; }; cat >>input; echo >>input", in: directory)
    let words = program.map { "\"\($0)\"" }.joined(separator: ", ")
    let server = try ScriptedService(
      keys: "[{fqdn: www.example.com, approval: manual}]", storage: "{type: memory}",
      more: "notify: {command: [\(words)]}")
    server.observer.show(.accepted(pin(1)), at: "www.example.com")
    try await server.start()
    await server.service.probe("www.example.com")
    server.observer.show(.accepted(pin(2)), at: "www.example.com")
    for _ in 0..<3 { await server.service.probe("www.example.com") }
    #expect(
      await eventually {
        (try? String(contentsOf: directory.file("input"), encoding: .utf8))?
          .contains("\"kind\":\"key-held\"") == true
      })
    #expect(await eventually { !server.log.events("notifications_delivered").isEmpty })
    #expect(server.log.events("notifications_not_delivered").count == 1)
    await server.service.stop()
  }

  @Test("and a list without a program is refused")
  func refused() {
    let error = #expect(throws: ConfigurationError.self) {
      try configuration("keys: [{fqdn: a.example}]\nnotify: {command: [\"\"]}")
    }
    #expect(error.map { "\($0)" }?.contains("notify.command") == true)
  }
}
