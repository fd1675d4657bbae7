import Pinning
import PinningPlatform

/// What looks at endpoints showed.
final class EndpointMetrics: Sendable {
  /// Seconds that are left, as in the documents that the field's servers publish: dashboards that divide
  /// it by 86 400 keep working.
  private let expire = MetricFamily(
    "ssl_pinning_expire",
    help: "Seconds until the certificate expires in which an endpoint showed the key",
    labels: ["fqdn", "key"], limit: ServerMetrics.mostKeys
  ) { CountdownGauge() }
  private let expires = MetricFamily(
    "ssl_pinning_key_expires_timestamp_seconds",
    help: "When the certificate expires in which an endpoint showed the key, in Unix time",
    labels: ["fqdn", "key"], limit: ServerMetrics.mostKeys
  ) { Gauge() }
  private let lastLook = MetricFamily(
    "ssl_pinning_last_look_timestamp_seconds",
    help: "When an endpoint was last looked at, whatever came of it, in Unix time",
    labels: ["fqdn"], limit: ServerMetrics.mostEndpoints
  ) { Gauge() }
  private let lastSuccess = MetricFamily(
    "ssl_pinning_last_success_timestamp_seconds",
    help: "When an endpoint last proved a key, in Unix time",
    labels: ["fqdn"], limit: ServerMetrics.mostEndpoints
  ) { Gauge() }
  private let duration = MetricFamily(
    "ssl_pinning_look_duration_seconds", help: "How long looks took"
  ) {
    Histogram(
      bounds: HistogramBounds(milliseconds: [5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000])
    )
  }
  private let failures = MetricFamily(
    "ssl_pinning_look_failures_total", help: "Looks that showed no key that can be believed",
    labels: ["cause"]
  ) { Counter() }
  /// The pins that have series, for each endpoint's name.
  private let known = Locked<[HostName: Set<SPKIPin>]>([:])

  init() {
    // Told as 0 from the beginning, so that the first failure is a rise.
    for cause in LookFailureCause.allCases { _ = failures.cell(cause.rawValue) }
  }

  var all: [any ExposedMetric] { [expire, expires, lastLook, lastSuccess, duration, failures] }

  /// How many writes each metric refused.
  var refusals: [(String, UInt64)] {
    [
      (expire.name, expire.refused.value), (expires.name, expires.refused.value),
      (lastLook.name, lastLook.refused.value), (lastSuccess.name, lastSuccess.refused.value),
    ]
  }

  func configured(_ documents: [DocumentConfiguration]) {
    let names = Set(documents.flatMap { $0.endpoints.map(\.fqdn) })
    let labels = names.map { ["\($0)"] }
    lastLook.keep(only: labels)
    lastSuccess.keep(only: labels)
    let gone = known.withLock { known in
      let gone = known.filter { !names.contains($0.key) }
      for name in gone.keys { known[name] = nil }
      return gone
    }
    for (name, pins) in gone { end(pins, of: name) }
  }

  func looked(
    _ endpoint: WatchedEndpoint, taking time: Duration, failure: LookFailureCause?,
    leaves: [SeenCertificate], at now: Int64
  ) {
    let fqdn = "\(endpoint.fqdn)"
    duration.cell().observe(time)
    lastLook.cell(fqdn).set(Double(now))
    if let failure { failures.cell(failure.rawValue).increment() }
    if failure == nil { lastSuccess.cell(fqdn).set(Double(now)) }
    // A certificate of which no more than the key is known has no date to tell.
    for leaf in leaves where leaf.notAfter > 0 {
      _ = known.withLock { $0[endpoint.fqdn, default: []].insert(leaf.pin) }
      let key = leaf.pin.base64
      expire.cell(fqdn, key).set(until: leaf.notAfter)
      expires.cell(fqdn, key).set(Double(leaf.notAfter))
    }
  }

  /// Ends the series of keys that are listed no more; one that an endpoint still shows is told again
  /// with its next look.
  func published(_ pins: [HostName: Set<SPKIPin>]) {
    for (name, listed) in pins {
      let gone = known.withLock { known in
        let gone = known[name, default: []].subtracting(listed)
        known[name]?.subtract(gone)
        return gone
      }
      end(gone, of: name)
    }
  }

  /// Ends the series of endpoints and keys.
  func forgetLooks() { configured([]) }

  private func end(_ pins: Set<SPKIPin>, of name: HostName) {
    for pin in pins {
      expire.remove("\(name)", pin.base64)
      expires.remove("\(name)", pin.base64)
    }
  }
}
