import PinningPlatform

/// What the server itself did: requests, store, reports, leadership.
final class ServiceMetrics: Sendable {
  private let build = MetricFamily(
    "ssl_pinning_build_info", help: "1, with the version of this server", labels: ["version"]
  ) { Gauge() }
  private let start = MetricFamily(
    "process_start_time_seconds", help: "When this server started, in Unix time"
  ) { Gauge() }
  private let leaders = MetricFamily(
    "ssl_pinning_leader", help: "1 while this server leads those on its store, else 0"
  ) { Gauge() }
  private let approvals = MetricFamily(
    "ssl_pinning_pending_approvals", help: "Changes that wait for a person"
  ) { Gauge() }
  private let open = MetricFamily(
    "ssl_pinning_alerts", help: "Open alerts of this server", labels: ["kind"], limit: 100
  ) { Gauge() }
  private let requests = CodeCounters("ssl_pinning_http_requests_total", help: "Answered requests")
  private let requestDuration = MetricFamily(
    "ssl_pinning_http_request_duration_seconds",
    help: "How long it took from a request to its answer, without sending it",
    labels: ["path_class"]
  ) {
    Histogram(bounds: HistogramBounds(milliseconds: [0.05, 0.1, 0.25, 0.5, 1, 5, 25, 100, 500]))
  }
  private let storeDuration = MetricFamily(
    "ssl_pinning_store_duration_seconds", help: "How long calls to the store took",
    labels: ["operation"]
  ) {
    Histogram(
      bounds: HistogramBounds(milliseconds: [0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 1000, 5000]))
  }
  private let storeErrors = MetricFamily(
    "ssl_pinning_store_errors_total", help: "Calls to the store that failed",
    labels: ["operation"]
  ) { Counter() }
  private let reports = MetricFamily(
    "ssl_pinning_reports_total", help: "Failure reports of apps, by what became of them",
    labels: ["outcome"]
  ) { Counter() }

  let leader: Gauge
  let pending: Gauge
  /// The kinds of alerts that were ever told: one that is over is told as 0.
  private let kinds = Locked<Set<String>>([])
  /// By the raw value of the path's class, so that a request looks nothing up.
  private let requestCells: [Histogram]

  init(version: String, started: Int64) {
    leader = leaders.cell()
    pending = approvals.cell()
    requestCells = PathClass.allCases.map { [requestDuration] in requestDuration.cell($0.label) }
    build.cell(version).set(1)
    start.cell().set(Double(started))
    for operation in StoreOperation.allCases {
      _ = storeDuration.cell(operation.rawValue)
      _ = storeErrors.cell(operation.rawValue)
    }
    for outcome in ReportOutcome.allCases { _ = reports.cell(outcome.rawValue) }
  }

  var all: [any ExposedMetric] {
    [
      build, start, leaders, approvals, open, requests, requestDuration, storeDuration, storeErrors,
      reports,
    ]
  }

  func answered(_ path: PathClass, code: Int, taking duration: Duration) {
    requests.count(path, code: code)
    requestCells[path.rawValue].observe(duration)
  }

  func stored(_ operation: StoreOperation, taking duration: Duration, failed: Bool) {
    storeDuration.cell(operation.rawValue).observe(duration)
    if failed { storeErrors.cell(operation.rawValue).increment() }
  }

  func reported(_ outcome: ReportOutcome) { reports.cell(outcome.rawValue).increment() }

  func alerts(_ counts: [String: Int]) {
    let all = kinds.withLock { kinds in
      kinds.formUnion(counts.keys)
      return kinds
    }
    for kind in all { open.cell(kind).set(Double(counts[kind] ?? 0)) }
  }
}
