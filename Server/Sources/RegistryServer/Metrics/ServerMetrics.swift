import RegistryCore
import SslPinningPlatform
import SslPinningRules

/// Everything the server counts and measures. Each thing that happens has one method here, and
/// `docs/metrics.md` says what each metric means.
///
/// - Cheap enough for every request: ``answered(_:code:taking:)`` is three relaxed additions. The
///   others take one look-up under a lock.
/// - Bounded: labels are of few fixed values, or names of the configuration up to a limit. Nothing that
///   a stranger sends becomes a label.
final class ServerMetrics: Sendable {
  /// The most documents, endpoints, and keys of endpoints that have series of their own.
  static let mostFiles = 50_000
  static let mostEndpoints = 50_000
  static let mostKeys = 100_000

  let endpoints = EndpointMetrics()
  let documents = DocumentMetrics()
  let vantages = VantageMetrics()
  let service: ServiceMetrics
  private let refused = MetricFamily(
    "ssl_pinning_series_refused_total",
    help: "Writes to series beyond the limit of a metric; they are told nowhere",
    labels: ["metric"]
  ) { Counter() }
  private let unlogged = MetricFamily(
    "ssl_pinning_log_dropped_total", help: "Lines of the log that nobody took in time"
  ) { Counter() }
  private let size = Locked(16 * 1024)
  /// Endpoints that are probed only where somebody asks, by file and id.
  private let paused = Locked<[String: Set<String>]>([:])
  private let droppedLines: @Sendable () -> Int

  /// Metrics of a server that has just started.
  ///
  /// - Parameters:
  ///   - started: when, in Unix seconds.
  ///   - droppedLines: how many lines of the log were dropped so far.
  init(
    version: String, started: Int64, droppedLines: @escaping @Sendable () -> Int = { 0 }
  ) {
    service = ServiceMetrics(version: version, started: started)
    self.droppedLines = droppedLines
  }

  /// All metrics as Prometheus reads them, ordered by name and labels; the body of an answer with
  /// ``ExpositionWriter/contentType``. Costs milliseconds where there are thousands of endpoints.
  ///
  /// - Parameter now: Unix seconds.
  func exposition(at now: Int64) -> [UInt8] {
    for (metric, count) in endpoints.refusals + documents.refusals where count > 0 {
      refused.cell(metric).raise(to: count)
    }
    unlogged.cell().raise(to: UInt64(droppedLines()))
    var writer = ExpositionWriter(at: now, reserving: size.withLock { $0 } + 4096)
    for metric in all { metric.write(to: &writer) }
    size.withLock { $0 = writer.bytes.count }
    return writer.bytes
  }

  private var all: [any ExposedMetric] {
    let parts = endpoints.all + documents.all + vantages.all + service.all + ProcessMetric.all
    return (parts + [refused, unlogged]).sorted { $0.name < $1.name }
  }

  /// What is watched and published from now on: documents get their series, and series of documents
  /// and endpoints that are in it no more end.
  func configured(_ configuration: [DocumentConfiguration]) {
    documents.configured(configuration)
    endpoints.configured(configuration)
  }

  /// What is watched from now on, and from where: the series of endpoints that were taken out or
  /// paused, and of vantage points that are gone, end. A probe a paused endpoint, which somebody asked
  /// for, counts but leaves no series: nobody probes again, and the series would say so for ever.
  ///
  /// - Parameters:
  ///   - watched: the endpoints that are watched, by file.
  ///   - paused: those that are paused, by file.
  ///   - interval: the longest time between two probes of one that is watched, in milliseconds.
  func watches(
    _ watched: [String: Set<String>], paused: [String: Set<String>], from vantages: [String],
    interval: Int64 = 0
  ) {
    endpoints.longestInterval.set(Double(interval) / 1000)
    self.paused.withLock { $0 = paused }
    endpoints.keep(only: Set(watched.values.joined()))
    documents.keep(only: watched, of: Set(watched.keys).union(paused.keys))
    self.vantages.configured(vantages)
  }

  /// A probe an endpoint is over. Probes that repeat a probe count too.
  ///
  /// - Parameters:
  ///   - failure: why it showed no key that can be believed; `nil` where it did.
  ///   - leaves: the leaf certificates that it proved.
  ///   - now: Unix seconds.
  func probed(
    at endpoint: WatchedEndpoint, in file: String, taking duration: Duration,
    failure: ProbeFailureCause?, leaves: [SeenCertificate] = [], at now: Int64
  ) {
    endpoints.count(failure, taking: duration)
    let isPaused = paused.withLock { $0[file]?.contains(endpoint.id) ?? false }
    guard !isPaused else { return }
    endpoints.probed(endpoint, failure: failure, leaves: leaves, at: now)
    documents.probed(endpoint, in: file, failure: failure, at: now)
  }

  /// A probe an endpoint is over; see ``ProbeResult/failure``.
  func probed(
    at endpoint: WatchedEndpoint, in file: String, taking duration: Duration, _ probe: ProbeResult,
    at now: Int64
  ) {
    probed(
      at: endpoint, in: file, taking: duration, failure: probe.failure, leaves: probe.leaves,
      at: now)
  }

  /// A document is in force.
  func published(_ document: DocumentFacts) {
    documents.published(document)
    endpoints.published(document.pins)
  }

  /// What a probe led to.
  func published(_ events: [KeyEvent]) { documents.published(events) }

  /// A request was answered.
  func answered(_ path: PathClass, code: Int, taking duration: Duration) {
    service.answered(path, code: code, taking: duration)
  }

  /// A call to the store is over.
  func stored(_ operation: StoreOperation, taking duration: Duration, failed: Bool) {
    service.stored(operation, taking: duration, failed: failed)
  }

  /// A failure report was taken in, or refused.
  func reported(_ outcome: ReportOutcome) { service.reported(outcome) }

  /// A failure report about a listed host was counted.
  func reported(chain: ChainStanding) { service.reported(chain: chain) }

  /// So many bytes the record of the reports has, and so many groups were dropped from it so far.
  func reportsKept(bytes: Int, droppedGroups: Int64) {
    service.reportBytes.set(Double(bytes))
    service.reportsDropped.set(Double(droppedGroups))
  }

  /// Whether the record of the reports can be read, so that they are stored.
  func reportsReadable(_ isReadable: Bool) { service.reportsReadable.set(isReadable ? 1 : 0) }

  /// A record of the reports that nothing can read was set aside.
  func reportsSetAside() { service.reportsSetAside.increment() }

  /// A configuration was read while the server ran, and is in force or was refused.
  ///
  /// - Parameter isSigned: whether all documents can be signed under what was read.
  func reloaded(isInForce: Bool, isSigned: Bool = true, at now: Int64) {
    service.reloadSuccess.set(isInForce && isSigned ? 1 : 0)
    if isInForce { service.reloadTime.set(Double(now)) }
  }

  /// Whether this server holds the store's leadership.
  ///
  /// Who loses it probes no more: what its probes showed ends, or its last failures would alert for ever.
  func leads(_ isLeader: Bool) {
    let didLead = service.leader.value == 1
    service.leader.set(isLeader ? 1 : 0)
    guard didLead, !isLeader else { return }
    endpoints.forgetProbes()
    documents.forgetProbes()
    vantages.forgetProbes()
  }

  /// Whether the watching is stuck, while this server leads.
  func watching(isStuck: Bool) { service.watchingStuck.set(isStuck ? 1 : 0) }

  /// Whether the server goes by the machine's clock, and how far that is ahead of the time it goes by.
  func clock(_ standing: ClockStanding) {
    service.clockBelieved.set(standing.doubtedSince == nil ? 1 : 0)
    service.clockSynchronized.set(standing.isSynchronized ? 1 : 0)
    service.clockOffset.set(Double(standing.wall - standing.time))
  }

  /// Whether the server waits for its store since it started.
  func awaitsStore(_ isAwaited: Bool) { service.storeAwaited.set(isAwaited ? 1 : 0) }

  /// So many changes wait for a second person.
  func proposals(_ count: Int) { service.proposed.set(Double(count)) }

  /// So many changes wait for a person.
  func pendingApprovals(_ count: Int) { service.pending.set(Double(count)) }

  /// The alerts that are open, by kind; kinds that were told before and are not in it have none.
  ///
  /// - Parameter refusing: those of them by which apps are refused now.
  func alerts(_ counts: [String: Int], refusing: [String: Int] = [:]) {
    service.alerts(counts, refusing: refusing)
  }
}

extension Counter {
  /// Makes the counter tell a count that is kept elsewhere; it never falls.
  fileprivate func raise(to count: UInt64) {
    let current = value
    if count > current { increment(by: count - current) }
  }
}
