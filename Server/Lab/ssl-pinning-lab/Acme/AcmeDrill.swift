import CanonicalJSON
import Foundation
import RegistryServer
import SslPinning
import SslPinningPlatform
import TestSupport

/// Certificates of an ACME server are renewed with new keys again and again while apps call every name each second.
///
/// - The real programs: pebble, an ACME client, nginx, `ssl-pinning up`, `announce`, and the hook that is installed.
/// - In one of the renewals the registry is killed in the middle, one machine's reload fails, and nginx is restarted for
///   another reason: what is not on the lists is not served, and once all is back the reloads follow by themselves.
/// - Nobody is asked: the history has no key that was held, or that was published before it was announced.
final class AcmeDrill: Sendable {
  private let options: AcmeOptions
  private let stage: AcmeStage
  private let report: ReplicasReport

  private init(_ options: AcmeOptions, _ stage: AcmeStage, _ report: ReplicasReport) {
    (self.options, self.stage, self.report) = (options, stage, report)
  }

  /// - Returns: whether everything held.
  static func run(
    _ options: AcmeOptions, say: @escaping @Sendable (String) -> Void
  ) async throws -> Bool {
    let report = ReplicasReport(say: say)
    let stage = try await AcmeStage(options)
    report.note(
      "acme: \(options.machines) machines with \(options.names) names each, \(options.client.rawValue), pebble, nginx;"
        + " apps call each name every second in two ways")
    let drill = AcmeDrill(options, stage, report)
    let crowd = AcmeCrowd(try await stage.startApp(), calling: stage.machines)
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { await crowd.run() }
      group.addTask { try await drill.keepTime() }
      defer { group.cancelAll() }
      defer { crowd.end() }
      try await drill.renewals(crowd)
    }
    try await drill.conclude(crowd)
    try await stage.stop()
    return report.isPassed
  }

  /// Goes on with announcements like the timer that is installed, and every second.
  private func keepTime() async throws {
    while !Task.isCancelled {
      try await forEachMachine { _ = try await $0.resume() }
      try? await Task.sleep(for: .seconds(1))
    }
  }

  private func renewals(_ crowd: AcmeCrowd) async throws {
    for renewal in 1...options.renewals {
      let (start, before) = (ContinuousClock.now, stage.served)
      var remark = ""
      if renewal == options.troubled {
        remark = try await trouble(crowd)
      } else {
        try await forEachMachine { try await $0.renew() }
      }
      try await until("all new keys are in use") {
        zip(stage.served, before).allSatisfy { $0 != $1 } && stage.waiting == 0
      }
      let taken = ContinuousClock.now - start
      // Each key has been seen at its server before the next one comes.
      try await until("all new keys are seen") { try await stage.staged() == 0 }
      await crowd.meet(try await stage.startApp())
      report.note(
        "renewal \(renewal): \(stage.served.count) new keys in use after \(taken.tenths) s;"
          + " \(crowd.requests) requests, \(crowd.refused.count) refused\(remark)")
    }
  }

  /// A renewal in which everything fails that may, one after another.
  ///
  /// - Returns: what happened.
  private func trouble(_ crowd: AcmeCrowd) async throws -> String {
    let served = stage.served
    try stage.machines[0].breakReload(true)
    async let renewed: Void = forEachMachine { try await $0.renew() }
    try await until("an announcement is begun") { stage.waiting > 0 }
    try await stage.killRegistry()
    let begun = stage.waiting
    try await renewed
    try show(stage.waiting > 0, "nothing waits for the registry")
    try await forEachMachine { try await $0.restart() }
    let requests = crowd.requests
    try await until("apps go on") { crowd.requests > requests + 6 * served.count }
    let kept = zip(stage.served, served).count { $0 == $1 }
    try show(kept > 0, "all keys were in use before the registry died")
    try await stage.startRegistry()
    let back = ContinuousClock.now
    try await until("a reload fails") { stage.machines[0].failures > 0 }
    try stage.machines[0].breakReload(false)
    try await until("nothing waits any more") { stage.waiting == 0 }
    return
      "; the registry was killed after \(begun) had begun, nginx restarted, \(kept) old keys kept on; \(stage.machines[0].failures)"
      + " reloads failed; all in use \((ContinuousClock.now - back).tenths) s after it was back"
  }

  private func conclude(_ crowd: AcmeCrowd) async throws {
    let history = try await stage.history()
    func count(_ event: String) -> Int { history.count { $0 == event } }
    let total = stage.served.count * options.renewals
    for problem in (crowd.refused + crowd.failed).prefix(10) { report.fault(problem) }
    if count("key_activated") != total {
      report.fault("\(count("key_activated")) announced keys were seen in use, not \(total)")
    }
    if count("key_published") != stage.served.count {
      report.fault("\(count("key_published") - stage.served.count) keys were published unannounced")
    }
    let alerts = try await stage.administrator.alerts()
    if !alerts.isEmpty { report.fault("alerts: \(alerts)") }
    let held = count("key_held")
    if held > 0 { report.fault("\(held) keys waited for a person") }
    report.note(
      "drill acme: \(total) renewals with new keys, \(crowd.requests) requests, \(crowd.refused.count) refused,"
        + " \(held) waits for a person; \(crowd.absent) met an nginx that was being restarted")
  }

  private func forEachMachine(
    _ body: @escaping @Sendable (AcmeMachine) async throws -> Void
  ) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for machine in stage.machines { group.addTask { try await body(machine) } }
      try await group.waitForAll()
    }
  }

  /// Waits until a condition holds.
  ///
  /// - Parameter limit: in seconds; far more than it takes.
  private func until(
    _ what: String, within limit: Double = 240, _ holds: () async throws -> Bool
  ) async throws {
    let deadline = ContinuousClock.now + .seconds(limit)
    while try await !holds() {
      try Task.checkCancellation()
      try show(.now < deadline, "\(what): not within \(Int(limit)) s")
      try await Task.sleep(for: .milliseconds(100))
    }
  }
}

/// What the drill runs.
struct AcmeOptions: Sendable, Equatable {
  var machines = 4
  /// Names of each machine.
  var names = 5
  var renewals = 10
  var client = AcmeClient.certbot
  /// The hook that is installed.
  var hook = "packaging/announce-renewed"

  /// The renewal in which everything fails that may.
  var troubled: Int { (renewals + 1) / 2 + 1 }

  static let usage =
    "hint: drill acme [--machines N] [--names N] [--renewals 2…] [--client certbot|lego|dehydrated] [--hook FILE]"

  /// - Returns: `nil` for unknown arguments.
  init?(_ arguments: [String]) {
    var rest = arguments[...]
    while let flag = rest.popFirst() {
      guard let value = rest.popFirst() else { return nil }
      let number = Int(value).flatMap { (1...100).contains($0) ? $0 : nil }
      switch (flag, number) {
      case ("--machines", let number?): machines = number
      case ("--names", let number?): names = number
      case ("--renewals", let number?) where number > 1: renewals = number
      case ("--client", _):
        guard let client = AcmeClient(rawValue: value) else { return nil }
        self.client = client
      case ("--hook", _): hook = value
      default: return nil
      }
    }
  }
}

/// `drill acme`: renewals of an ACME client that nobody notices.
enum AcmeCommand {
  /// - Returns: the exit status: 1 if a request was refused, or somebody was asked.
  static func run(_ arguments: [String], say: @escaping @Sendable (String) -> Void) async -> Int32 {
    guard let options = AcmeOptions(arguments) else {
      say(AcmeOptions.usage)
      return 2
    }
    let signal = await TerminationSignal()
    let drill = Task { try await AcmeDrill.run(options, say: say) }
    let watch = Task {
      say("stopped by \(await signal.wait())")
      drill.cancel()
    }
    defer { withExtendedLifetime(watch) {} }
    do { return try await drill.value ? 0 : 1 } catch {
      say("could not be drilled: \(error)")
      return 1
    }
  }
}
