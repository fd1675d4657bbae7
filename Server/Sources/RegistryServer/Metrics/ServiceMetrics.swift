import Foundation
import RegistryCore
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
  private let stuck = MetricFamily(
    "ssl_pinning_watching_stuck",
    help: "1 while this server leads and its watching does not go on, else 0"
  ) { Gauge() }
  private let listenerEnds = MetricFamily(
    "ssl_pinning_listener_certificate_ends_timestamp_seconds",
    help: "When the certificate ends that this server shows to its callers, in Unix time"
  ) { Gauge() }
  private let absences = MetricFamily(
    "ssl_pinning_store_awaited",
    help: "1 while the store has not answered since the start, else 0"
  ) { Gauge() }
  private let proposals = MetricFamily(
    "ssl_pinning_proposals", help: "Changes that wait for a second person"
  ) { Gauge() }
  private let approvals = MetricFamily(
    "ssl_pinning_pending_approvals", help: "Changes that wait for a person"
  ) { Gauge() }
  private let open = MetricFamily(
    "ssl_pinning_alerts", help: "Open alerts of this server", labels: ["kind"], limit: 100
  ) { Gauge() }
  private let refusing = MetricFamily(
    "ssl_pinning_refusing", help: "Open alerts by which pinned apps are refused now",
    labels: ["kind"], limit: 100
  ) { Gauge() }
  private let copies = MetricFamily(
    "ssl_pinning_copies_unwritten",
    help: "Copies in publish.dir that could not be written, by whether apps that read them lack"
      + " what was decided",
    labels: ["lacking"]
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
  private let reportClasses = MetricFamily(
    "ssl_pinning_reports_by_class",
    help: "Failure reports of the last day about listed hosts, by what they amount to",
    labels: ["class"]
  ) { Gauge() }
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

  private let notifications = MetricFamily(
    "ssl_pinning_notifications_total",
    help: "Deliveries of notifications by receiver, and changes that were given up",
    labels: ["receiver", "outcome"]
  ) { Counter() }
  private let waitingNotifications = MetricFamily(
    "ssl_pinning_notifications_waiting", help: "Changes that a receiver has not taken yet",
    labels: ["receiver"]
  ) { Gauge() }

  private let tokenEnds = MetricFamily(
    "ssl_pinning_token_ends_timestamp_seconds",
    help: "When the first of the administrators' tokens ends that are in use and were made to last"
  ) { Gauge() }

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
  let watchingStuck: Gauge
  let reloadSuccess: Gauge
  let reloadTime: Gauge
  let reportBytes: Gauge
  let reportsDropped: Gauge
  let reportsReadable: Gauge
  let reportsSetAside: Counter
  let pending: Gauge
  let storeAwaited: Gauge
  let proposed: Gauge
  /// The kinds of alerts that were ever told: one that is over is told as 0.
  private let kinds = Locked<Set<String>>([])
  /// By the raw value of the path's class, so that a request looks nothing up.
  private let requestCells: [Histogram]

  init(version: String, started: Int64) {
    (clockBelieved, clockOffset) = (clockBelief.cell(), clockOffsets.cell())
    clockSynchronized = clockSync.cell()
    clockBelieved.set(1)
    (leader, watchingStuck) = (leaders.cell(), stuck.cell())
    pending = approvals.cell()
    (storeAwaited, proposed) = (absences.cell(), proposals.cell())
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
    reports([:])
    unwritten([])
    tokens(endAt: nil)
    listener(endsAt: nil)
  }

  var all: [any ExposedMetric] {
    [
      build, start, listenerEnds, reloads, reloadTimes, leaders, stuck, approvals, proposals, open,
      refusing, copies, requests,
      requestDuration, absences, storeDuration, storeErrors,
      reports, reportChains, reportClasses, reportRecord, reportGroupsDropped, readableReports,
      reportRecordsSetAside, clockBelief, clockSync, clockOffsets, notifications,
      waitingNotifications, tokenEnds,
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

  /// The reports of the last day, told apart.
  func reports(_ counts: [ReportClass: Int64]) {
    for kind in ReportClass.allCases {
      reportClasses.cell(kind.rawValue).set(Double(counts[kind] ?? 0))
    }
  }

  /// When the first token ends of those that are in use and were made to last, in Unix seconds; `nil` if there is none.
  func tokens(endAt end: Int64?) {
    if let end { tokenEnds.cell().set(Double(end)) } else { tokenEnds.remove() }
  }

  /// When the certificate ends that callers are shown, in Unix seconds; `nil` if there is none.
  func listener(endsAt end: Int64?) {
    if let end { listenerEnds.cell().set(Double(end)) } else { listenerEnds.remove() }
  }

  /// How many reported chains led to an authority.
  var verifiedReports: UInt64 { reportChains.cell(ChainStanding.verified.rawValue).value }

  func reported(chain: ChainStanding) { reportChains.cell(chain.rawValue).increment() }

  /// So many changes wait for a receiver. Its counters begin with 0, or the first loss were no rise.
  func notifies(_ receiver: String, waiting: Int) {
    for outcome in NotificationOutcome.allCases {
      _ = notifications.cell(receiver, outcome.rawValue)
    }
    waitingNotifications.cell(receiver).set(Double(waiting))
  }

  /// A receiver took a delivery or did not.
  func notified(_ receiver: String, _ outcome: NotificationOutcome, count: Int = 1) {
    notifications.cell(receiver, outcome.rawValue).increment(by: UInt64(count))
  }

  /// The copies of documents that could not be written.
  func unwritten(_ conditions: [Condition]) {
    let lacking = conditions.count(where: \.isRefusing)
    copies.cell("yes").set(Double(lacking))
    copies.cell("no").set(Double(conditions.count - lacking))
  }

  func alerts(_ counts: [String: Int], refusing counted: [String: Int]) {
    let all = kinds.withLock { kinds in
      kinds.formUnion(counts.keys)
      return kinds
    }
    for kind in all {
      open.cell(kind).set(Double(counts[kind] ?? 0))
      refusing.cell(kind).set(Double(counted[kind] ?? 0))
    }
  }
}

/// What the process takes of its machine, by the names that Prometheus' own libraries have. Read at the
/// scrape; what a system does not tell is left out.
struct ProcessMetric: ExposedMetric {
  let name: String
  private let help: String
  private let type: MetricType
  private let read: @Sendable () -> Double?

  static let all: [ProcessMetric] = [
    ProcessMetric(
      name: "process_resident_memory_bytes", help: "Memory of the process that is in use",
      type: .gauge
    ) {
      words("/proc/self/statm").dropFirst().first.flatMap { Double($0) }
        .map { $0 * Double(sysconf(Int32(_SC_PAGESIZE))) }
    },
    ProcessMetric(
      name: "process_open_fds", help: "Open descriptors of the process", type: .gauge
    ) {
      // One of them is the directory's own while it is read.
      (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd"))
        .map { Double(max(0, $0.count - 1)) }
    },
    ProcessMetric(
      name: "process_max_fds", help: "The most descriptors that the process may open", type: .gauge
    ) {
      let line = text("/proc/self/limits")?.split(separator: "\n").first {
        $0.hasPrefix("Max open files")
      }
      return line?.split(separator: " ").dropFirst(3).first.flatMap { Double($0) }
    },
    ProcessMetric(
      name: "process_cpu_seconds_total", help: "Processor time of the process", type: .counter
    ) {
      // Fields 14 and 15 of proc(5); the name before them may contain anything.
      guard let fields = statFields, fields.count > 12, let user = Double(fields[11]),
        let system = Double(fields[12])
      else { return nil }
      return (user + system) / Double(sysconf(Int32(_SC_CLK_TCK)))
    },
    ProcessMetric(name: "process_threads", help: "Threads of the process", type: .gauge) {
      statFields.flatMap { $0.count > 17 ? Double($0[17]) : nil }
    },
  ]

  func write(to writer: inout ExpositionWriter) {
    guard let value = read() else { return }
    let metric = Array(name.utf8)
    writer.begin(metric, help: help, type: type)
    writer.sample(SeriesName(metric: metric, labels: []), value)
  }

  /// The fields of `/proc/self/stat` from the third on.
  private static var statFields: [Substring]? {
    guard let stat = text("/proc/self/stat"), let end = stat.lastIndex(of: ")") else { return nil }
    return stat[stat.index(after: end)...].split(separator: " ")
  }

  private static func words(_ path: String) -> [Substring] {
    text(path)?.split(separator: " ") ?? []
  }

  private static func text(_ path: String) -> String? {
    FileManager.default.contents(atPath: path).map { String(decoding: $0, as: UTF8.self) }
  }
}

/// What kind of path a request was for. Few and fixed: a path itself is the requester's to choose, and
/// must not become a label.
enum PathClass: Int, CaseIterable, Sendable {
  /// A published document.
  case document
  /// `/livez`, `/readyz`, `/startupz`.
  case probe
  /// `/metrics`.
  case metrics
  /// A failure report of an app.
  case report
  /// The console's own pages and files.
  case console
  /// What the console and tools ask with a token.
  case admin
  /// A path that nothing is served at, and requests that were refused before their path was read.
  case other

  /// The value of the label `path_class`.
  var label: String { "\(self)" }
}

/// What a chain that an app reported is worth. The higher one counts where both are true.
enum ChainStanding: String, Sendable, CaseIterable, Comparable {
  /// Whoever sent the report may have made it up.
  case unverified
  /// Its leaf's key is published for the host, or was seen there by this server.
  case seen
  /// Its path leads to an anchor of this server and it has the host's name: somebody got it from an
  /// authority.
  case verified

  static func < (left: Self, right: Self) -> Bool { left.rank < right.rank }

  private var rank: Int {
    switch self {
    case .unverified: 0
    case .seen: 1
    case .verified: 2
    }
  }
}

/// What became of notifications; the label `outcome`.
enum NotificationOutcome: String, CaseIterable, Sendable {
  /// A delivery was taken.
  case delivered
  /// A delivery was not taken, and is tried again.
  case failed
  /// A change was given up.
  case lost
}

/// What became of a failure report that was sent here; the label `outcome`.
enum ReportOutcome: String, CaseIterable, Sendable {
  /// It is counted.
  case accepted
  /// The same report was counted before: its sender did not get our answer.
  case repeated
  /// It is counted apart, because no document lists its host.
  case unlisted
  /// It cannot be read.
  case refused
  /// Its address had sent too many.
  case limited
}
