import RegistryCore
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// What probes endpoints showed.
final class EndpointMetrics: Sendable {
  /// Seconds that are left, as in the documents that the reference servers publish: dashboards that divide
  /// it by 86 400 keep working.
  private let expire = MetricFamily(
    "ssl_pinning_expire",
    help: "Seconds until the certificate expires in which an endpoint showed the key",
    labels: ["endpoint", "fqdn", "key"], limit: ServerMetrics.mostKeys
  ) { CountdownGauge() }
  private let expires = MetricFamily(
    "ssl_pinning_key_expires_timestamp_seconds",
    help: "When the certificate expires in which an endpoint showed the key, in Unix time",
    labels: ["endpoint", "fqdn", "key"], limit: ServerMetrics.mostKeys
  ) { Gauge() }
  private let ends = MetricFamily(
    "ssl_pinning_certificate_ends_timestamp_seconds",
    help: "When the first certificate ends of those that an endpoint showed last, in Unix time",
    labels: ["endpoint"], limit: ServerMetrics.mostEndpoints
  ) { Gauge() }
  private let lastProbe = MetricFamily(
    "ssl_pinning_last_probe_timestamp_seconds",
    help: "When an endpoint was last probed, whatever came of it, in Unix time",
    labels: ["endpoint", "fqdn"], limit: ServerMetrics.mostEndpoints
  ) { Gauge() }
  private let lastSuccess = MetricFamily(
    "ssl_pinning_last_success_timestamp_seconds",
    help: "When an endpoint last proved a key, in Unix time",
    labels: ["endpoint", "fqdn"], limit: ServerMetrics.mostEndpoints
  ) { Gauge() }
  private let intervals = MetricFamily(
    "ssl_pinning_probe_interval_seconds",
    help: "The longest time between two probes of an endpoint that is probed on time"
  ) { Gauge() }
  private let duration = MetricFamily(
    "ssl_pinning_probe_duration_seconds", help: "How long probes took"
  ) {
    Histogram(
      bounds: HistogramBounds(milliseconds: [5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000])
    )
  }
  private let probes: Histogram
  let longestInterval: Gauge
  private let failures = MetricFamily(
    "ssl_pinning_probe_failures_total", help: "Probes that showed no key that can be believed",
    labels: ["cause"]
  ) { Counter() }
  /// An endpoint's series, so that a probe need not find them by their labels.
  private struct Series: Sendable {
    let fqdn: String
    var lastProbe: Gauge?
    var lastSuccess: Gauge?
    var ends: Gauge?
    var keys: [SPKIPin: (expire: CountdownGauge, expires: Gauge)] = [:]
  }

  /// By the endpoint's id: one name may have several ports.
  private struct Known: Sendable {
    private(set) var series: [String: Series] = [:]
    /// The ids of each name, so that a document that is published touches its own endpoints alone.
    private(set) var ids: [String: Set<String>] = [:]

    mutating func set(_ id: String, _ new: Series) {
      series[id] = new
      ids[new.fqdn, default: []].insert(id)
    }

    mutating func remove(_ id: String) {
      guard let fqdn = series.removeValue(forKey: id)?.fqdn else { return }
      ids[fqdn]?.remove(id)
      if ids[fqdn]?.isEmpty == true { ids[fqdn] = nil }
    }
  }

  private let known = Locked(Known())

  init() {
    probes = duration.cell()
    longestInterval = intervals.cell()
    // Told as 0 from the beginning, so that the first failure is a rise.
    for cause in ProbeFailureCause.allCases { _ = failures.cell(cause.rawValue) }
  }

  var all: [any ExposedMetric] {
    [expire, expires, ends, lastProbe, lastSuccess, intervals, duration, failures]
  }

  /// How many writes each metric refused.
  var refusals: [(String, UInt64)] {
    [
      (expire.name, expire.refused.value), (expires.name, expires.refused.value),
      (ends.name, ends.refused.value), (lastProbe.name, lastProbe.refused.value),
      (lastSuccess.name, lastSuccess.refused.value),
    ]
  }

  func configured(_ documents: [DocumentConfiguration]) {
    keep(only: Set(documents.flatMap { $0.endpoints.map(\.id) }))
  }

  /// Ends the series of all other endpoints.
  func keep(only ids: Set<String>) {
    known.withLock { known in
      for (id, series) in known.series where !ids.contains(id) {
        lastProbe.remove(id, series.fqdn)
        lastSuccess.remove(id, series.fqdn)
        ends.remove(id)
        end(series.keys.keys, of: id, series.fqdn)
        known.remove(id)
      }
    }
  }

  /// Counts a probe.
  func count(_ failure: ProbeFailureCause?, taking time: Duration) {
    probes.observe(time)
    if let failure { failures.cell(failure.rawValue).increment() }
  }

  func probed(
    _ endpoint: WatchedEndpoint, failure: ProbeFailureCause?, leaves: [SeenCertificate],
    at now: Int64
  ) {
    known.withLock { known in
      let id = endpoint.id
      var series = known.series[id] ?? Series(fqdn: "\(endpoint.fqdn)")
      var isNew = false
      // What found no room is asked for again: there may be some by now.
      if !lastProbe.hasSeries(series.lastProbe) {
        series.lastProbe = lastProbe.cell(id, series.fqdn)
        isNew = true
      }
      series.lastProbe?.set(Double(now))
      if failure == nil {
        if !lastSuccess.hasSeries(series.lastSuccess) {
          series.lastSuccess = lastSuccess.cell(id, series.fqdn)
          isNew = true
        }
        series.lastSuccess?.set(Double(now))
      }
      if let end = leaves.compactMap(\.expiry).min() {
        if !ends.hasSeries(series.ends) {
          series.ends = ends.cell(id)
          isNew = true
        }
        series.ends?.set(Double(end))
      }
      // A certificate of which no more than the key is known has no date to tell.
      for leaf in leaves where leaf.notAfter > 0 {
        let kept = series.keys[leaf.pin]
        let hasSeries = expire.hasSeries(kept?.expire) && expires.hasSeries(kept?.expires)
        let key = hasSeries ? kept : cells(of: leaf.pin, at: id, series.fqdn)
        key?.expire.set(until: leaf.notAfter)
        key?.expires.set(Double(leaf.notAfter))
        guard !hasSeries else { continue }
        series.keys[leaf.pin] = key
        isNew = true
      }
      if isNew { known.set(id, series) }
    }
  }

  private func cells(
    of pin: SPKIPin, at id: String, _ fqdn: String
  ) -> (expire: CountdownGauge, expires: Gauge) {
    (expire.cell(id, fqdn, pin.base64), expires.cell(id, fqdn, pin.base64))
  }

  /// Ends the series of keys that are listed no more; one that an endpoint still shows is told again
  /// with its next probe.
  func published(_ pins: [HostName: Set<SPKIPin>]) {
    known.withLock { known in
      for (host, listed) in pins {
        for id in known.ids["\(host)"] ?? [] {
          guard var series = known.series[id] else { continue }
          let gone = series.keys.keys.filter { !listed.contains($0) }
          guard !gone.isEmpty else { continue }
          for pin in gone { series.keys[pin] = nil }
          known.set(id, series)
          end(gone, of: id, series.fqdn)
        }
      }
    }
  }

  /// Ends the series of endpoints and keys.
  func forgetProbes() { keep(only: []) }

  private func end(_ pins: some Sequence<SPKIPin>, of id: String, _ fqdn: String) {
    for pin in pins {
      expire.remove(id, fqdn, pin.base64)
      expires.remove(id, fqdn, pin.base64)
    }
  }
}

/// Which vantage points answer, and why probes failed from where.
final class VantageMetrics: Sendable {
  /// A vantage point that fell silent, or answers again.
  struct Change: Sendable, Equatable {
    let vantage: String
    /// Why it is silent; `nil`: it answers.
    let reason: String?
  }

  private let up = MetricFamily(
    "ssl_pinning_vantage_up", help: "1 while a vantage point itself answers, else 0",
    labels: ["vantage"], limit: 1000
  ) { Gauge() }
  private let failures = MetricFamily(
    "ssl_pinning_vantage_probe_failures_total",
    help: "Probes of one address from one vantage point that showed no key that can be believed",
    labels: ["vantage", "cause"], limit: 10_000
  ) { Counter() }
  /// A vantage point that does not answer.
  struct Silence: Sendable {
    var reason: String
    /// In Unix seconds.
    let since: Int64
    /// When it last answered in a probe that counts, if it has not been silent again.
    fileprivate var answered: Int64?

    /// What is to be said of it. One that answers counts again at once; that it keeps on is not sure yet.
    var message: String {
      answered == nil
        ? "confirms nothing: \(reason)"
        : "answers again, and fell silent more than once within the hour: \(reason)"
    }
  }

  private let silent = Locked(SilentVantages())

  /// A vantage point that answers, and has seen none of the endpoints since then that this server saw.
  private struct Blindness: Sendable {
    let since: Int64
    var probes = 0
  }

  private let blind = Locked<[String: Blindness]>([:])

  /// From when on it is as good as silent: so many probes, in so many seconds. One endpoint that cannot be seen from there
  /// says nothing of the others.
  private static let (blindProbes, blindSeconds): (Int, Int64) = (3, 300)

  var all: [any ExposedMetric] { [up, failures] }

  /// The vantage points that do not answer, and those that fell silent again and have not answered for long enough.
  var silences: [String: Silence] { silent.withLock { $0.silences } }

  /// Ends the series of vantage points that are configured no more.
  func configured(_ vantages: [String]) {
    let causes = ProbeFailureCause.allCases.map(\.rawValue)
    up.keep(only: vantages.map { [$0] })
    failures.keep(
      only: ([ProbeObservation.direct] + vantages).flatMap { name in causes.map { [name, $0] } })
    silent.withLock { $0.keep(only: vantages) }
    blind.withLock { $0 = $0.filter { vantages.contains($0.key) } }
  }

  /// Enters a probe.
  ///
  /// - Returns: the vantage points of which something else is known now.
  func probed(_ probe: ProbeResult, at now: Int64) -> [Change] {
    var changes: [Change] = []
    let isSeenFromHere = probe.observations.contains {
      $0.vantage == ProbeObservation.direct && $0.outcome.hasProved
    }
    for observation in probe.observations {
      if let cause = observation.failureCause {
        failures.cell(observation.vantage, cause.rawValue).increment()
      }
      // A question of its own for each kind of key would have one kind unsay what another one said.
      guard observation.vantage != ProbeObservation.direct, observation.keyType.isEmpty,
        let reason = blindness(of: observation, isSeenFromHere: isSeenFromHere, at: now)
          ?? observation.silence
      else {
        continue
      }
      up.cell(observation.vantage).set(reason == .answers ? 1 : 0)
      let isNew = silent.withLock { silent in
        if let text = reason.text {
          silent.note(text, of: observation.vantage, at: now)
        } else {
          silent.answer(of: observation.vantage, at: now)
        }
      }
      guard isNew else { continue }
      changes.append(Change(vantage: observation.vantage, reason: reason.text))
    }
    return changes
  }

  /// Why a point that answers, or may, is no use: nothing of what this server sees is seen from there.
  private func blindness(
    of observation: ProbeObservation, isSeenFromHere: Bool, at now: Int64
  ) -> ProbeObservation.Silence? {
    guard case .unreachable(let reason) = observation.outcome else {
      blind.withLock { $0[observation.vantage] = nil }
      return nil
    }
    guard observation.cause != .vantage else { return nil }
    let found = blind.withLock { blind in
      var own = blind[observation.vantage] ?? Blindness(since: now)
      if isSeenFromHere { own.probes += 1 }
      blind[observation.vantage] = own
      return own
    }
    guard found.probes >= Self.blindProbes, now - found.since >= Self.blindSeconds else {
      return nil
    }
    return .silent("it sees none of the endpoints that this server sees: \(reason)")
  }

  /// Forgets what probes showed: another server probes now.
  func forgetProbes() {
    up.keep(only: [])
    silent.withLock { $0 = SilentVantages() }
    blind.withLock { $0 = [:] }
  }
}

/// Which vantage points are silent, and when that is over: see ``ReturningAlerts``. One that answers and is silent in turn
/// would be told of without end.
private struct SilentVantages {
  private(set) var silences: [String: VantageMetrics.Silence] = [:]
  private var returning = ReturningAlerts()

  /// Seconds between two answers that count. All endpoints are seen through one point, so hundreds of probes may be good
  /// between two that are not.
  private static let pause: Int64 = 30

  /// A probe showed that it is silent.
  ///
  /// - Returns: whether it is news.
  mutating func note(_ reason: String, of vantage: String, at now: Int64) -> Bool {
    let before = silences[vantage]
    silences[vantage] = VantageMetrics.Silence(reason: reason, since: before?.since ?? now)
    if before == nil {
      returning.begin(vantage, at: now)
    } else {
      _ = returning.enter(vantage, isSeen: true, at: now)
    }
    return before == nil
  }

  /// A probe showed that it answers.
  ///
  /// - Returns: whether it is news: its silence is over.
  mutating func answer(of vantage: String, at now: Int64) -> Bool {
    guard let silence = silences[vantage],
      silence.answered.map({ abs(now - $0) >= Self.pause }) ?? true
    else { return false }
    guard returning.enter(vantage, isSeen: false, at: now) else {
      silences[vantage]?.answered = now
      return false
    }
    silences[vantage] = nil
    return true
  }

  mutating func keep(only vantages: [String]) {
    silences = silences.filter { vantages.contains($0.key) }
  }
}

extension ProbeObservation.Outcome {
  fileprivate var hasProved: Bool { if case .accepted = self { true } else { false } }
}

extension ProbeObservation {
  fileprivate enum Silence: Equatable {
    case answers
    case silent(String)

    var text: String? { if case .silent(let reason) = self { reason } else { nil } }
  }

  /// Whether the vantage point itself answered; `nil` if that is not known.
  fileprivate var silence: Silence? {
    switch (outcome, cause) {
    case (.accepted, _), (.refused, _): .answers
    case (.unreachable(let reason), .vantage): .silent(reason)
    case (.unreachable, .timeout), (.unreachable, .other), (.unreachable, nil): nil
    case (.unreachable, _): .answers
    }
  }
}

extension ProbeResult {
  /// Why the probe as a whole showed no key that can be believed; `nil` where it did.
  ///
  /// - An address that does not answer beside one that proves a key is no failure of the endpoint.
  /// - One that shows a chain that proves nothing beside one that proves a key is: somebody may stand
  ///   before one vantage point, or one of several servers was forgotten.
  /// - Of several causes a chain counts before a connection that did not come about, and then the first.
  var failure: ProbeFailureCause? {
    var refusal: ProbeFailureCause?
    var silence: ProbeFailureCause?
    for observation in observations {
      switch observation.outcome {
      case .accepted: continue
      case .refused: refusal = refusal ?? observation.failureCause
      case .unreachable: silence = silence ?? observation.failureCause
      }
    }
    if leaves.isEmpty { return refusal ?? silence ?? .other }
    return refusal == nil ? nil : .disagreement
  }
}

extension ProbeObservation {
  /// Why it proves no key; `nil` where it does.
  var failureCause: ProbeFailureCause? {
    switch outcome {
    case .accepted: nil
    case .refused: cause ?? .chain
    case .unreachable: cause ?? .other
    }
  }
}

extension ProbeFailureCause {
  /// The cause of a probe's failure.
  init(_ error: ProbeError) {
    switch error {
    case .dns: self = .dns
    case .refused: self = .refused
    case .unreachable, .proxy: self = .unreachable
    case .timeout: self = .timeout
    case .notTLS, .handshake: self = .handshake
    case .invalidTarget, .cancelled, .local: self = .other
    }
  }
}

/// Measures how long probes take.
struct MeasuredProber: ResolvingProber {
  let base: any EndpointProber

  func probe(_ endpoint: WatchedEndpoint) async -> ProbeResult {
    await probe(endpoint, for: endpoint.id)
  }

  func probe(_ endpoint: WatchedEndpoint, for target: String) async -> ProbeResult {
    let begun = MonotonicReading.now()
    var probe = await base.probe(endpoint, for: target)
    probe.duration = MonotonicReading.now() - begun
    return probe
  }

  func whenFoundLate(_ tell: @escaping @Sendable (_ host: String) -> Void) {
    (base as? any ResolvingProber)?.whenFoundLate(tell)
  }
}
