/// `/metrics`, in Prometheus' text format.
struct MetricsPage: Sendable {
  let metrics: ServerMetrics
  let keepers: @Sendable () -> [DocumentKeeper]
  let clock: any ServerClock

  func answer() -> HTTPAnswer {
    .later {
      var alerts: [String: Int] = [:]
      var held = 0
      for keeper in keepers() {
        let snapshot = await keeper.snapshot
        let state = snapshot.state
        for alert in state.alerts.values.joined() { alerts[alert.kind.rawValue, default: 0] += 1 }
        // Of others nothing can be approved.
        held += snapshot.endpoints.reduce(0) { $0 + (state.ledgers[$1.id]?.held.count ?? 0) }
      }
      metrics.alerts(alerts)
      metrics.pendingApprovals(held)
      return HTTPResponse(
        status: 200,
        headers: [("Content-Type", ExpositionWriter.contentType), ("Cache-Control", "no-store")],
        body: metrics.exposition(at: clock.now()))
    }
  }
}
