import CanonicalJSON
import Foundation
import RegistryCore
import RegistryServer
import RegistryStores
import TestSupport

/// Failures of the database's server and of the network to it.
extension ReplicasDrill {
  /// The database server stops and comes back seconds later.
  func restartDatabase(byKilling isKilled: Bool) async throws {
    let (before, requests) = (ContinuousClock.now, stage.book.requests)
    let database = stage.network.database
    if isKilled { try await database.kill() } else { try await database.stop() }
    try await Task.sleep(for: .seconds(options.isQuick ? 1 : 5))
    try await database.launch()
    let back = ContinuousClock.now
    let (next, resumed) = try await leader(after: before)
    let change = try await change(after: back, by: everybody)
    let away = back - before
    report.note(
      "database \(isKilled ? "killed" : "restarted"), away for \(away.tenths) s: \(next) watches"
        + " \((resumed - away).tenths) s after its return, a new key is published everywhere after"
        + " \(change.tenths) s; \(stage.book.requests - requests) answers meanwhile")
    _ = try await settledLeader()
  }

  /// No replica reaches the database.
  func cutAll() async throws {
    let (start, requests) = (ContinuousClock.now, stage.book.requests)
    for number in everybody { try await stage.network.cut(number, .both) }
    try await Task.sleep(for: .seconds(options.cut))
    let during = stage.rotator.all.filter { $0.time > start }
    let leaders = stage.logs.leaders.leaders
    if options.cut > 10, stage.network.isNoticedByDatabase, !leaders.isEmpty {
      report.fault("\(leaders) lead without a database")
    }
    for number in everybody { try await stage.network.restore(number) }
    let back = ContinuousClock.now
    _ = try await settledLeader()
    let resumed = ContinuousClock.now - back
    let change = try await change(after: back, by: everybody)
    try await published(during)
    report.note(
      "network to the database cut for \(options.cut) s: watching again after \(resumed.tenths) s, a"
        + " new key is published everywhere after \(change.tenths) s, the \(during.count) keys that"
        + " rotated during the cut after \((ContinuousClock.now - back).tenths) s;"
        + " \(stage.book.requests - requests) answers meanwhile")
  }

  /// The leader does not reach the database, or does not get its answers.
  func cutLeader(_ direction: CutDirection) async throws {
    let victim = try await settledLeader()
    let others = everybody.filter { $0 != victim }
    let start = ContinuousClock.now
    try await stage.network.cut(victim, direction)
    let (next, failover) = try await leader(after: start)
    checkFailover(failover, "leader cut off")
    let given = stage.logs.leaders.ends.last { $0.replica == victim && $0.time > start }
    let knew = given.map { ($0.time - start).tenths + " s" } ?? "never"
    let change = try await change(after: start + failover, by: others)
    try await Task.sleep(
      for: max(.zero, .seconds(min(options.cut, direction == .both ? 3600 : 20)) - (.now - start)))
    let during = stage.rotator.all.filter { $0.time > start }
    try await stage.network.restore(victim)
    let back = ContinuousClock.now
    try await published(during)
    report.note(
      "leader \(victim) \(direction == .both ? "cut off" : "does not hear the database"): it knew"
        + " after \(knew), \(next) watches after \(failover.tenths) s, a new key is published"
        + " \(change.tenths) s later; back, it serves all \(during.count) keys of that time after"
        + " \((ContinuousClock.now - back).tenths) s")
    try await checkMetrics()
  }

  /// Short cuts of random replicas, one after the other: for any time-out, some cuts are shorter, some longer,
  /// and some end at just that moment.
  func flap() async throws {
    let (start, requests) = (ContinuousClock.now, stage.book.requests)
    var cuts = 0
    while .now - start < .seconds(options.cut) {
      let victim = everybody.randomElement() ?? 0
      let direction = stage.network.hasOneWayCuts && Bool.random() ? CutDirection.answers : .both
      try await stage.network.cut(victim, direction)
      try await Task.sleep(for: .milliseconds(.random(in: 100...9000)))
      try await stage.network.restore(victim)
      try await Task.sleep(for: .milliseconds(.random(in: 0...2000)))
      cuts += 1
    }
    let (back, during) = (ContinuousClock.now, stage.rotator.all.filter { $0.time > start })
    _ = try await settledLeader()
    try await published(during)
    report.note(
      "\(cuts) cuts of up to 9 s: all \(during.count) keys of that time are served everywhere"
        + " \((ContinuousClock.now - back).tenths) s after the last;"
        + " \(stage.book.requests - requests) answers meanwhile")
    try await checkMetrics()
  }

  private func published(_ rotations: [KeyRotator.Rotation]) async throws {
    try await until("every key that rotated during the trouble is published everywhere") {
      rotations.allSatisfy { rotation in
        everybody.allSatisfy { stage.book.isPublished(rotation.key, rotation.file, by: $0) }
      }
    }
  }
}

/// The end of the drill and its results.
extension ReplicasDrill {
  /// Stops every replica while it answers, then counts.
  func end() async throws {
    await stage.rotator.stop()
    try? await until("every key is published everywhere") {
      everybody.allSatisfy { stage.rotator.isPublished(by: $0) }
    }
    for number in everybody where !stage.rotator.isPublished(by: number) {
      report.fault("replica \(number) does not publish every key in the end")
    }
    let complete = try await endReplicas()
    try await count(complete)
  }

  /// - Returns: how many answers in progress were completed.
  private func endReplicas() async throws -> Int {
    var complete = 0
    for replica in stage.replicas {
      stage.readers[replica.number].aim(at: nil)
      // Slow readers: the answer does not fit into the kernel's buffers.
      let waiting = try (0..<8).map { _ in
        let connection = try PlainConnection(port: replica.port, window: 2048)
        try connection.send("/api/v1/\(ReplicaStage.steadyFile)")
        return connection
      }
      try await Task.sleep(for: .milliseconds(100))
      async let status = replica.end(SIGTERM)
      for connection in waiting {
        do throws(PlainFailure) {
          let answer = try connection.receive()
          if answer.status == 200 { complete += 1 } else { report.fault("\(answer.status)") }
        } catch { report.fault("an answer under way at SIGTERM: \(error)") }
      }
      let code = try await status
      if code != 0 { report.fault("replica \(replica.number) ended with \(code)") }
    }
    return complete
  }

  /// The end of a connection reaches both of its ends at the same moment; which of two processes acts first is
  /// up to the system.
  private static let momentary = Duration.milliseconds(500)

  private func count(_ complete: Int) async throws {
    let (book, keysByEndpoint) = (stage.book, stage.book.keysByEndpoint)
    for failure in book.failures.prefix(10) { report.fault(failure) }
    let overlaps = stage.logs.leaders.overlaps.filter { $0 > Self.momentary }
    for overlap in overlaps { report.fault("two led at once for \(overlap.inMilliseconds) ms") }
    let backwards = keysByEndpoint.map(\.backwards).reduce(0, +)
    let conflicts = keysByEndpoint.map(\.twice).reduce(0, +)
    let dropped = keysByEndpoint.map(\.dropped).reduce(0, +)
    let audits = try await audit()
    let twice = audits.flatMap(\.twice)
    let lost = audits.flatMap(\.lost)
    let invented = audits.flatMap(\.invented)
    if backwards + conflicts + dropped > 0 {
      report.fault(
        "\(backwards) answers older than before, \(conflicts) numbers with two documents,"
          + " \(dropped) documents that lack earlier keys")
    }
    for key in twice { report.fault("the history publishes \(key) twice") }
    for entry in audits.flatMap(\.repeated) {
      report.fault("the history has \(entry.event) of \(entry.endpoint) twice, to the letter")
    }
    for key in lost { report.fault("the history does not publish \(key)") }
    for key in invented { report.fault("nobody showed \(key)") }
    let keys = stage.rotator.shown.values.map(\.count).reduce(0, +)
    report.note(
      "\(book.requests) requests, \(book.failures.count) failures, \(complete) answers completed after"
        + " SIGTERM, \(keysByEndpoint.map(\.versions).reduce(0, +)) versions, \(keys) keys,"
        + " \(conflicts + twice.count) published twice, \(lost.count) lost, \(overlaps.count) times two"
        + " leaders")
    if let longest = stage.logs.leaders.overlaps.max(), overlaps.isEmpty {
      report.note("as a connection ended, two led for \(longest.inMilliseconds) ms at most")
    }
  }

  /// The audit of each document's history in the database.
  private func audit() async throws -> [HistoryAudit] {
    let store = try PostgresStore(dsn: stage.network.operatorDSN, isInsecure: true)
    var audits: [HistoryAudit] = []
    for (file, shown) in stage.rotator.shown {
      let stored = try await store.history(of: file, before: nil, limit: .max)
      let entries = stored.compactMap { entry in
        (try? JSONValue(parsing: entry.bytes)).flatMap { HistoryEntry($0) }
      }
      if entries.count != stored.count || Int64(stored.count) != stored.first?.number ?? 0 {
        report.fault("the history of \(file) has gaps, or what is no entry")
      }
      audits.append(HistoryAudit(entries, shown: shown))
    }
    await store.close()
    return audits
  }
}

/// Failures of the replicas themselves.
extension ReplicasDrill {
  /// All replicas run: one leads, all serve what it publishes.
  func begin() async throws {
    for number in everybody { try await stage.launch(number) }
    try await until("every replica publishes every endpoint") {
      everybody.allSatisfy { stage.rotator.isPublished(by: $0) }
    }
    stage.rotator.start(every: .seconds(1))
    let count = options.isQuick ? 3 : 15
    var (leader, start, isSteady) = (0, ContinuousClock.now, false)
    // On a machine that is busy, another one may begin to lead while this looks: then it looks again.
    for _ in 0..<3 {
      leader = try await settledLeader()
      start = .now
      let probes = try stage.replicas.map(self.probes)
      try await until("\(count) changes are seen everywhere") {
        delays(since: start).count >= count
      }
      let probers = try everybody.filter { try self.probes(of: stage.replicas[$0]) > probes[$0] }
      let led = stage.logs.leaders.led(since: start)
      isSteady = led == [leader]
      guard isSteady else { continue }
      if probers != [leader] { report.fault("\(probers) probe endpoints, and \(leader) leads") }
      break
    }
    if !isSteady { report.fault("no replica leads for as long as \(count) changes take") }
    let taken = delays(since: start).sorted()
    let median = taken[taken.count / 2]
    report.note(
      "start: replica \(leader) watches, \(options.replicas) serve; \(taken.count) changes seen by"
        + " the other(s) after \(median.inMilliseconds) ms (median),"
        + " \(taken.last?.inMilliseconds ?? 0) ms (longest)")
    try await checkMetrics()
  }

  /// Kills the leader with `kill -9`.
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
    try await checkMetrics()
  }

  /// Checks that logs and metrics agree on the leader, once there is one.
  func checkMetrics() async throws {
    // On a machine that is busy, another one may begin to lead at any moment.
    try await until("metrics and logs say that the same one leads", within: 10) {
      let leaders = try stage.replicas.filter { try metric("ssl_pinning_leader", of: $0) == 1 }
      return leaders.count == 1 && leaders.map(\.number) == stage.logs.leaders.leaders
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
