import Foundation

/// What happens to replicas themselves.
extension ReplicasDrill {
  /// Everybody up: one watches, all serve what it finds.
  func begin() async throws {
    for number in everybody { try await stage.launch(number) }
    let leader = try await settledLeader()
    try await until("every replica publishes every endpoint") {
      everybody.allSatisfy { stage.rotator.isPublished(by: $0) }
    }
    let (start, probes) = (ContinuousClock.now, try stage.replicas.map(self.probes))
    stage.rotator.start(every: .seconds(1))
    let count = options.isQuick ? 3 : 15
    try await until("\(count) changes are seen everywhere") {
      delays(since: start).count >= count
    }
    let probers = try everybody.filter { try self.probes(of: stage.replicas[$0]) > probes[$0] }
    if probers != [leader] { report.fault("\(probers) probe endpoints, and \(leader) leads") }
    let taken = delays(since: start).sorted()
    let median = taken[taken.count / 2]
    report.note(
      "start: replica \(leader) watches, \(options.replicas) serve; \(taken.count) changes seen by"
        + " the other(s) after \(median.inMilliseconds) ms (median),"
        + " \(taken.last?.inMilliseconds ?? 0) ms (longest)")
    try checkMetrics()
  }

  /// `kill -9` for the one that watches.
  func killLeader() async throws {
    let victim = try await settledLeader()
    let start = ContinuousClock.now
    try await stage.kill(victim)
    let others = everybody.filter { $0 != victim }
    let (next, failover) = try await leader(after: start)
    let change = try await change(after: start, by: others)
    checkFailover(failover, "leader killed")
    try await stage.launch(victim)
    let back = ContinuousClock.now
    let again = try await self.change(after: back, by: everybody)
    report.note(
      "leader \(victim) killed: \(next) watches after \(failover.tenths) s, a new key is published"
        + " after \(change.tenths) s; started again, it serves the next after \(again.tenths) s")
    try checkMetrics()
  }

  /// The logs and the metrics must agree on who leads.
  func checkMetrics() throws {
    let leaders = try stage.replicas.filter { try metric("ssl_pinning_leader", of: $0) == 1 }
      .map(\.number)
    if leaders.count != 1 || leaders != stage.logs.leaders.leaders {
      report.fault("metrics say that \(leaders) lead, logs \(stage.logs.leaders.leaders)")
    }
  }

  private func probes(of replica: Replica) throws -> Double {
    try metric("ssl_pinning_probe_duration_seconds_count", of: replica)
  }

  private func metric(_ name: String, of replica: Replica) throws -> Double {
    let page = try PlainConnection(port: replica.port).get("/metrics").body
    let line = String(decoding: page, as: UTF8.self).split(separator: "\n")
      .first { $0.hasPrefix(name + " ") }
    guard let value = line?.split(separator: " ").last.flatMap({ Double($0) }) else {
      throw Inconclusive("replica \(replica.number) has no \(name)")
    }
    return value
  }

  private func delays(since start: ContinuousClock.Instant) -> [Duration] {
    stage.book.keysByEndpoint.flatMap { $0.delays(among: options.replicas, since: start) }
  }
}
