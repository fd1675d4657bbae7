import Foundation
import RegistryServer

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
      if let problem = stage.rotator.problem { throw Inconclusive("no key was changed: \(problem)") }
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
