import Foundation
import RegistryServer
import SslPinningPlatform
import TestSupport

/// Several real servers on one PostgreSQL. One is killed, the database is restarted and killed, the
/// network to it is cut, and keys rotate the whole time.
///
/// - Serving never stops: every request to a live replica is answered, with a document that a client accepts
///   after the earlier ones.
/// - Monitoring resumes: after each failure, all replicas publish a rotation that began later.
/// - Nothing is published twice or lost: a version number has one document, every key that was shown is in
///   the history once, and the documents have all of them in the end.
/// - Two replicas never claim at the same time to lead.
final class ReplicasDrill: Sendable {
  let options: ReplicasOptions
  let stage: ReplicaStage
  let report: ReplicasReport

  init(_ options: ReplicasOptions, _ stage: ReplicaStage, _ report: ReplicasReport) {
    (self.options, self.stage, self.report) = (options, stage, report)
  }

  /// - Returns: whether everything held.
  static func run(
    _ options: ReplicasOptions, program: String, say: @escaping @Sendable (String) -> Void
  ) async throws -> Bool {
    let report = ReplicasReport(say: say)
    let stage = try await ReplicaStage.prepare(options, program: program)
    report.note("replicas: \(options.replicas) on one PostgreSQL; \(stage.network.explanation)")
    let result: Result<Void, any Error>
    do { result = .success(try await ReplicasDrill(options, stage, report).runPhases()) } catch {
      result = .failure(error)
    }
    if case .failure = result {
      for replica in stage.replicas { say("replica \(replica.number):\n\(replica.lastWords)") }
    }
    // In its own task, so that a cancelled drill cleans up like any other.
    try await Task { try await stage.stop() }.value
    try result.get()
    return report.isPassed
  }

  private func runPhases() async throws {
    try await begin()
    try await killLeader()
    try await restartDatabase(byKilling: false)
    try await restartDatabase(byKilling: true)
    try await cutAll()
    if stage.network.isNoticedByDatabase {
      if !options.isQuick { try await cutLeader(.both) }
      if stage.network.hasOneWayCuts { try await cutLeader(.answers) }
    } else {
      report.note("leader cut off alone: not drilled, its forwarder would keep its lock for it")
    }
    if !options.isQuick { try await flap() }
    try await end()
  }

  // MARK: - What phases wait for

  /// Waits until a condition holds.
  ///
  /// - Parameter limit: in seconds; far more than it takes.
  func until(
    _ what: String, within limit: Double = 60, _ holds: () throws -> Bool
  ) async throws {
    let deadline = ContinuousClock.now + .seconds(limit)
    while try !holds() {
      try Task.checkCancellation()
      if let problem = stage.rotator.problem {
        throw Inconclusive("no key was changed: \(problem)")
      }
      try show(.now < deadline, "\(what): not within \(Int(limit)) s")
      try await Task.sleep(for: .milliseconds(5))
    }
  }

  /// Waits until all of these replicas publish a rotation that began after `start`.
  ///
  /// - Returns: how long that took from `start`.
  func change(after start: ContinuousClock.Instant, by replicas: [Int]) async throws -> Duration {
    try await until("a new key after the trouble is published") {
      stage.rotator.all.contains { rotation in
        rotation.time > start
          && replicas.allSatisfy { stage.book.isPublished(rotation.key, rotation.file, by: $0) }
      }
    }
    return .now - start
  }

  /// Waits until a replica begins to lead after `start`.
  ///
  /// - Returns: the replica, and how long after `start`.
  func leader(after start: ContinuousClock.Instant) async throws -> (replica: Int, Duration) {
    try await until("somebody leads") { stage.logs.leaders.beginning(after: start) != nil }
    guard let found = stage.logs.leaders.beginning(after: start) else { throw CancellationError() }
    return (found.replica, found.time - start)
  }

  /// Waits until one replica leads alone.
  func settledLeader() async throws -> Int {
    try await until("one replica leads") { stage.logs.leaders.leader != nil }
    return stage.logs.leaders.leader ?? 0
  }

  var everybody: [Int] { stage.replicas.map(\.number) }

  /// Checks a fail-over against its bound, if there is one.
  func checkFailover(_ duration: Duration, _ what: String) {
    guard !options.isQuick, duration > .seconds(10) else { return }
    report.fault("\(what): another replica led after \(duration.tenths) s, not within 10")
  }
}

/// `drill replicas`: several servers on one database, while servers, database and network fail.
enum ReplicasCommand {
  /// - Returns: the exit status: 1 if serving stopped, or anything was published twice or lost.
  static func run(_ arguments: [String], say: @escaping @Sendable (String) -> Void) async -> Int32 {
    guard let options = ReplicasOptions(arguments) else {
      say(ReplicasOptions.usage)
      return 2
    }
    let program: String
    do { program = try BuiltProgram.path("ssl-pinning") } catch {
      say("\(error)")
      return 2
    }
    let signal = await TerminationSignal()
    let drill = Task { try await ReplicasDrill.run(options, program: program, say: say) }
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

/// The options of the drill.
struct ReplicasOptions: Sendable, Equatable {
  /// How many replicas share the database.
  var replicas = 2
  /// For how many seconds the network is cut.
  var cut = 60
  /// Fewer changes and no bounds on time, for tests that run beside others.
  var isQuick = false
  /// Uses forwarders without trying to make a network namespace.
  var hasForwarders = false

  static let usage =
    "hint: drill replicas [--cut SECONDS] [--replicas 2|3] [--quick] [--forwarders]"

  /// - Returns: `nil` for unknown arguments.
  init?(_ arguments: [String]) {
    var cut: Int?
    var rest = arguments[...]
    while let name = rest.popFirst() {
      switch name {
      case "--quick": isQuick = true
      case "--forwarders": hasForwarders = true
      case "--cut":
        guard let seconds = rest.popFirst().flatMap({ Int($0) }), (1...3600).contains(seconds)
        else { return nil }
        cut = seconds
      case "--replicas":
        guard let count = rest.popFirst().flatMap({ Int($0) }), (2...3).contains(count) else {
          return nil
        }
        replicas = count
      default: return nil
      }
    }
    self.cut = cut ?? (isQuick ? 3 : 60)
  }
}

/// Prints a line for each phase, and collects faults.
final class ReplicasReport: Sendable {
  private let say: @Sendable (String) -> Void
  private let faults = Locked<[String]>([])

  init(say: @escaping @Sendable (String) -> Void) { self.say = say }

  func note(_ line: String) { say(line) }

  /// Reports a fault and lets the drill go on.
  func fault(_ line: String) {
    faults.withLock { $0.append(line) }
    say("WRONG: \(line)")
  }

  var isPassed: Bool { faults.withLock { $0.isEmpty } }
}

extension Duration {
  /// In seconds, with one decimal.
  var tenths: String { (self / .seconds(1)).inTenths }

  /// In whole milliseconds.
  var inMilliseconds: Int { Int((self / .milliseconds(1)).rounded()) }
}
