import RegistryCore
import SslPinningRules

/// Finds out what holds, out of all that this server knows.
///
/// - What probes show is told by the server that leads. Another one knows it, too, and would tell it twice.
/// - What each server sees for itself, as a store that does not answer it or is not believed, that nobody leads, or a copy that it
///   cannot write, or its listener's certificate, is told by each.
actor ConditionSurvey {
  private let duty: Replication
  private let services: CoordinatorServices
  private let metrics: ServerMetrics
  private let tokens: SeenTokens
  private let clock: SteadyClock
  private let reports: any ReportsSource
  private var trend = RefusalTrend()
  private var hasTrendBegun = false
  private var reported: UInt64 = 0
  /// What ends soon, and what reports amount to: found once a minute, because it walks all of them.
  private var ends: (made: Int64, conditions: [Condition])?

  init(
    duty: Replication, services: CoordinatorServices, metrics: ServerMetrics, tokens: SeenTokens,
    clock: SteadyClock, reports: any ReportsSource
  ) {
    (self.duty, self.services, self.metrics) = (duty, services, metrics)
    (self.tokens, self.clock, self.reports) = (tokens, clock, reports)
  }

  /// What holds now.
  func conditions() async -> FoundConditions {
    let now = clock.now()
    let isLeading = duty.isLeading
    await beginTrend(at: now)
    // Of the probes of this server, which show nothing new meanwhile.
    if !isLeading { ends = nil }
    let found = await ofDocuments(at: now, isLeading)
    return FoundConditions(
      ofLeader: isLeading ? found.filter(\.isOfLeader) : nil,
      ofServer: found.filter { !$0.isOfLeader } + ofServer(at: now), at: now)
  }

  private func ofDocuments(at now: Int64, _ isLeading: Bool) async -> [Condition] {
    let isDue = isLeading && (ends.map { now < $0.made || now - $0.made >= 60 } ?? true)
    var (found, ending): ([Condition], [Condition]) = ([], [])
    for coordinator in duty.coordinators {
      found += await coordinator.standing.conditions
      guard isDue else { continue }
      let snapshot = await coordinator.snapshot
      let watched = Set(snapshot.endpoints.map(\.id).filter { !snapshot.state.isPaused($0) })
      ending += Condition.ends(
        of: snapshot.state, snapshot.lastProbes.filter { watched.contains($0.key) },
        expires: snapshot.published?.expires, keySetEnd: snapshot.published?.keySetExpires,
        in: snapshot.file, at: now)
    }
    if isDue { ends = (now, ending + (await reports.picture().conditions)) }
    let silent = metrics.vantages.silences.map { vantage, silence in
      Condition(
        .alert(.vantageSilent), subject: vantage, since: silence.since,
        message: "it \(silence.message)")
    }
    let left = services.health.leftDocuments(at: now).map { file, alert in
      Condition(
        .alert(alert.kind), file: file, since: alert.since, message: alert.message)
    }
    return found.withOneMassChange + (ends?.conditions ?? []) + silent + left
  }

  /// What was reported before this server began is in the store, for all servers on it.
  private func beginTrend(at now: Int64) async {
    guard !hasTrendBegun, services.health.awaitedStore == nil else { return }
    hasTrendBegun = true
    trend.begin(after: Int(clamping: await reports.picture().verified), at: now)
  }

  private func ofServer(at now: Int64) -> [Condition] {
    var found: [Condition] = []
    if let since = clock.standing.doubtedSince {
      found.append(
        Condition(
          .alert(.clock), since: since,
          message: "the machine's clock jumped, and the server goes on by its last time"
            + " and what passed since"))
    }
    if let store = services.health.awaitedStore {
      found.append(
        Condition(
          .storeAway, since: store.since,
          message: "it has not answered since the start, and nothing is decided: \(store.reason)"))
    }
    if let absence = services.health.leaderAbsence { found.append(absence) }
    let verified = metrics.service.verifiedReports
    trend.count(Int(clamping: verified - min(reported, verified)), at: now)
    reported = verified
    if let since = trend.risingSince {
      found.append(
        Condition(
          .refusalsRise, since: since,
          message: "apps reported \(trend.recent(at: now)) refused connections within half an hour"
            + " whose certificates an authority issued",
          isRefusing: true))
    }
    if let mark = services.health.unwrittenMark { found.append(mark) }
    if let end = services.health.listenerEnd { found.append(end) }
    return found + services.health.unwrittenCopies + tokens.ending(at: now)
  }
}

extension SeenTokens {
  /// Tokens that were made to last and were used here, without those that ended long ago.
  private func lasting(at now: Int64) -> [String: Administrator] {
    current.mapValues(\.administrator).filter { _, administrator in
      administrator.expires - administrator.issued >= 2 * Condition.tokenNotice
        && administrator.expires > now - Condition.tokenNotice
    }
  }

  /// When the first of them ends, in Unix seconds; `nil` if there is none.
  func nextEnd(at now: Int64) -> Int64? { lasting(at: now).values.map(\.expires).min() }

  /// Those of them that end soon: a job that renews with one will fail.
  func ending(at now: Int64) -> [Condition] {
    lasting(at: now).compactMap { id, administrator in
      guard administrator.expires - now < Condition.tokenNotice else { return nil }
      return Condition(
        .tokenEnds, subject: id, since: administrator.expires - Condition.tokenNotice,
        message:
          "the token of \(administrator.name) \(Condition.ending(administrator.expires, now))")
    }
  }
}
