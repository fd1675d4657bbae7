import SslPinningPlatform

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

  private let reportChains = MetricFamily(
    "ssl_pinning_report_chains_total",
    help: "Counted failure reports about listed hosts, by what the reported chain is worth",
    labels: ["chain"]
  ) { Counter() }
  private let reportRecord = MetricFamily(
    "ssl_pinning_reports_record_bytes", help: "Bytes of the record of the failure reports"
  ) { Gauge() }
  private let reportGroupsDropped = MetricFamily(
    "ssl_pinning_reports_dropped_groups",
    help: "Groups of failure reports that had to leave the record for want of room"
  ) { Gauge() }
  private let readableReports = MetricFamily(
    "ssl_pinning_reports_readable",
    help: "0 while the record of the failure reports is a newer program's, else 1"
  ) { Gauge() }
  private let reportRecordsSetAside = MetricFamily(
    "ssl_pinning_reports_set_aside_total",
    help: "Records of the failure reports that nothing could read"
  ) { Counter() }

  private let reloads = MetricFamily(
    "ssl_pinning_configuration_reload_success",
    help: "0 where the configuration that was read last was refused, else 1"
  ) { Gauge() }
  private let reloadTimes = MetricFamily(
    "ssl_pinning_configuration_reload_timestamp_seconds",
    help: "When the configuration in force was read, in Unix time"
  ) { Gauge() }

  private let clockBelief = MetricFamily(
    "ssl_pinning_clock_believed", help: "1 while the server goes by the machine's clock, else 0"
  ) { Gauge() }
  private let clockSync = MetricFamily(
    "ssl_pinning_clock_synchronized",
    help: "1 while the kernel calls the machine's clock synchronised"
  ) { Gauge() }
  private let clockOffsets = MetricFamily(
    "ssl_pinning_clock_offset_seconds",
    help: "How far the machine's clock is ahead of the time that the server goes by"
  ) { Gauge() }

  let clockBelieved: Gauge
  let clockSynchronized: Gauge
  let clockOffset: Gauge
  let leader: Gauge
  let reloadSuccess: Gauge
  let reloadTime: Gauge
  let reportBytes: Gauge
  let reportsDropped: Gauge
  let reportsReadable: Gauge
  let reportsSetAside: Counter
  let pending: Gauge
  /// The kinds of alerts that were ever told: one that is over is told as 0.
  private let kinds = Locked<Set<String>>([])
  /// By the raw value of the path's class, so that a request probes nothing up.
  private let requestCells: [Histogram]

  init(version: String, started: Int64) {
    (clockBelieved, clockOffset) = (clockBelief.cell(), clockOffsets.cell())
    clockSynchronized = clockSync.cell()
    clockBelieved.set(1)
    leader = leaders.cell()
    pending = approvals.cell()
    reloadSuccess = reloads.cell()
    reloadTime = reloadTimes.cell()
    reloadSuccess.set(1)
    reloadTime.set(Double(started))
    reportBytes = reportRecord.cell()
    reportsDropped = reportGroupsDropped.cell()
    reportsReadable = readableReports.cell()
    reportsSetAside = reportRecordsSetAside.cell()
    reportsReadable.set(1)
    for standing in ChainStanding.allCases { _ = reportChains.cell(standing.rawValue) }
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
      build, start, reloads, reloadTimes, leaders, approvals, open, requests, requestDuration,
      storeDuration, storeErrors,
      reports, reportChains, reportRecord, reportGroupsDropped, readableReports,
      reportRecordsSetAside, clockBelief, clockSync, clockOffsets,
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

  func reported(chain: ChainStanding) { reportChains.cell(chain.rawValue).increment() }

  func alerts(_ counts: [String: Int]) {
    let all = kinds.withLock { kinds in
      kinds.formUnion(counts.keys)
      return kinds
    }
    for kind in all { open.cell(kind).set(Double(counts[kind] ?? 0)) }
  }
}
