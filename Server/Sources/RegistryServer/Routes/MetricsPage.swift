import HTTPServing
import SslPinningPlatform

/// `/metrics`, in Prometheus' text format.
///
/// A page of thousands of endpoints costs tens of milliseconds, and anybody may ask: so it is made once a second,
/// and whoever asks meanwhile gets the same bytes.
struct MetricsPage: Sendable {
  let metrics: ServerMetrics
  private let keepers: @Sendable () -> [DocumentKeeper]
  private let clock: SteadyClock
  private let ticks: @Sendable () -> Int64
  private let newest = Locked<(made: Int64, page: Task<[UInt8], Never>)?>(nil)

  /// - Parameter ticks: milliseconds of a clock that is never set.
  init(
    metrics: ServerMetrics, keepers: @escaping @Sendable () -> [DocumentKeeper],
    clock: SteadyClock, ticks: @escaping @Sendable () -> Int64 = MonotonicReading.milliseconds
  ) {
    (self.metrics, self.keepers, self.clock, self.ticks) = (metrics, keepers, clock, ticks)
  }

  func answer() -> HTTPReply {
    .later {
      let now = ticks()
      let page = newest.withLock { newest in
        if let newest, now - newest.made < 1000 { return newest.page }
        let page = Task { await make() }
        newest = (now, page)
        return page
      }
      return HTTPResponse(
        status: 200,
        headers: [("Content-Type", ExpositionWriter.contentType), ("Cache-Control", "no-store")],
        body: await page.value)
    }
  }

  private func make() async -> [UInt8] {
    var alerts: [String: Int] = [:]
    var held = 0
    for keeper in keepers() {
      let snapshot = await keeper.snapshot
      let state = snapshot.state
      for alert in state.alerts.values.joined() { alerts[alert.kind.rawValue, default: 0] += 1 }
      // Of others nothing can be approved.
      held += snapshot.endpoints.reduce(0) { $0 + (state.ledgers[$1.id]?.held.count ?? 0) }
    }
    let standing = clock.standing
    if standing.doubtedSince != nil { alerts[ServerAlert.Kind.clock.rawValue] = 1 }
    metrics.clock(standing)
    metrics.alerts(alerts)
    metrics.pendingApprovals(held)
    return metrics.exposition(at: standing.time)
  }
}
