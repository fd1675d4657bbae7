import Foundation
import RegistryServer
import SslPinningPlatform
import TestSupport

/// Several real servers on one PostgreSQL. One is killed, the database is restarted and killed, the
/// network to it is cut, and keys rotate the whole time.
///
/// - Serving never stops: every request to a replica that lives is answered, with a document that a
///   client believes after those it believed before.
/// - Watching resumes: after each trouble a rotation that began later is published by all replicas.
/// - Nothing is published twice or lost: one number has one document, the history publishes every key
///   that was shown once, and the documents have all of them in the end.
/// - Never do two replicas say at once that they lead.
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
    // Of its own: a drill that was cancelled cleans up as any other.
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

  /// Waits until something holds.
  ///
  /// - Parameter limit: far beyond what it takes; in seconds.
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

  /// Waits until a rotation that began after a moment is published by every one of these replicas.
  ///
  /// - Returns: how long that took, from the moment on.
  func change(after start: ContinuousClock.Instant, by replicas: [Int]) async throws -> Duration {
    try await until("a new key after the trouble is published") {
      stage.rotator.all.contains { rotation in
        rotation.time > start
          && replicas.allSatisfy { stage.book.isPublished(rotation.key, rotation.file, by: $0) }
      }
    }
    return .now - start
  }

  /// Waits until somebody leads who began to after a moment.
  ///
  /// - Returns: who, and how long after the moment.
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

  /// Holds a fail-over to its bound, where there is one.
  func checkFailover(_ duration: Duration, _ what: String) {
    guard !options.isQuick, duration > .seconds(10) else { return }
    report.fault("\(what): another replica led after \(duration.tenths) s, not within 10")
  }
}

/// `drill replicas`: several servers on one database, while servers, database and network fail.
enum ReplicasCommand {
  /// - Returns: the exit status: 1 where serving stopped, or anything was published twice or lost.
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

/// How much of the drill there is.
struct ReplicasOptions: Sendable, Equatable {
  /// How many replicas share the database.
  var replicas = 2
  /// For how many seconds the network is cut.
  var cut = 60
  /// Fewer changes, and no bound on time: for tests, beside other tests.
  var isQuick = false
  /// Not even tries to make a network namespace.
  var hasForwarders = false

  static let usage =
    "hint: drill replicas [--cut SECONDS] [--replicas 2|3] [--quick] [--forwarders]"

  /// - Returns: `nil` for what it does not know.
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

/// A line for each phase, and what must not be.
final class ReplicasReport: Sendable {
  private let say: @Sendable (String) -> Void
  private let faults = Locked<[String]>([])

  init(say: @escaping @Sendable (String) -> Void) { self.say = say }

  func note(_ line: String) { say(line) }

  /// Says what is wrong, and lets the drill go on.
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
