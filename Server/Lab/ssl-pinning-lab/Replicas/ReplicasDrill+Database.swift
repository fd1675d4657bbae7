/// What happens to the database's server and to the network before it.
extension ReplicasDrill {
  /// The server ends and comes back, seconds later.
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

  /// Nobody reaches the database.
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

  /// The one that watches does not reach the database, or does not hear its answers.
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
    try checkMetrics()
  }

  /// Short cuts, of anybody's way, one after the other: whatever a time-out is, some are shorter, some
  /// longer, and some end just then.
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
    try checkMetrics()
  }

  private func published(_ rotations: [KeyRotator.Rotation]) async throws {
    try await until("every key that rotated during the trouble is published everywhere") {
      rotations.allSatisfy { rotation in
        everybody.allSatisfy { stage.book.isPublished(rotation.key, rotation.file, by: $0) }
      }
    }
  }
}
