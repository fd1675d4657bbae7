import CanonicalJSON
import SslPinningRules
import Testing

@testable import RegistryCore
@testable import RegistryServer

@Suite("Which vantage points answer, and what ends with an endpoint")
struct VantageMetricsTests {
  private static let now: Int64 = 1_780_000_000
  private let metrics = ServerMetrics(version: "1", started: Self.now)

  private func observation(
    _ vantage: String, _ cause: ProbeFailureCause?
  ) -> ProbeObservation {
    ProbeObservation(
      vantage: vantage,
      outcome: cause == nil
        ? .accepted(SeenChain(leaf: SeenCertificate(pin: pin(1)))) : .unreachable(reason: "gone"),
      cause: cause)
  }

  /// - Parameter here: why this server itself sees nothing; `nil` if it does.
  private func probed(
    _ cause: ProbeFailureCause?, here: ProbeFailureCause? = nil, after seconds: Int64 = 0
  ) -> [VantageMetrics.Change] {
    metrics.vantages.probed(
      ProbeResult(observations: [observation("direct", here), observation("oslo", cause)]),
      at: Self.now + seconds)
  }

  private var isUp: Double? {
    get throws {
      try PrometheusPage(metrics.exposition(at: Self.now))
        .samples["ssl_pinning_vantage_up{vantage=\"oslo\"}"]
    }
  }

  @Test(
    "a silent one is 0 at once and told once; so is its return; other failures say nothing of it")
  func silence() throws {
    metrics.vantages.configured(["oslo"])
    #expect(probed(.timeout).isEmpty)
    #expect(try isUp == nil)
    #expect(probed(nil).isEmpty)
    #expect(try isUp == 1)
    #expect(probed(.vantage) == [.init(vantage: "oslo", reason: "gone")])
    #expect(probed(.vantage).isEmpty)
    #expect(probed(.timeout).isEmpty)
    #expect(try isUp == 0)
    #expect(probed(.refused) == [.init(vantage: "oslo", reason: nil)])
    #expect(try isUp == 1)
    #expect(probed(nil).isEmpty)
    let page = try PrometheusPage(metrics.exposition(at: Self.now))
    let failures = "ssl_pinning_vantage_probe_failures_total{vantage=\"oslo\",cause="
    #expect(page.samples[failures + "\"vantage\"}"] == 2)
    #expect(page.samples[failures + "\"timeout\"}"] == 2)
    #expect(page.samples[failures + "\"refused\"}"] == 1)
    metrics.vantages.configured([])
    #expect(try isUp == nil)
  }

  @Test(
    "one that falls silent again within the hour is told as back after five good probes in a row, then ten"
  )
  func flapping() throws {
    metrics.vantages.configured(["oslo"])
    let (silent, back) = (
      VantageMetrics.Change(vantage: "oslo", reason: "gone"),
      VantageMetrics.Change(vantage: "oslo", reason: nil)
    )
    var now: Int64 = 0
    func probed(_ cause: ProbeFailureCause?, after seconds: Int64) -> [VantageMetrics.Change] {
      now += seconds
      return self.probed(cause, after: now)
    }
    #expect(probed(.vantage, after: 0) == [silent])
    #expect(probed(nil, after: 2) == [back])
    #expect(probed(.vantage, after: 2) == [silent])
    for _ in 0..<20 {
      #expect(probed(nil, after: 2).isEmpty)
      // The metric hides nothing.
      #expect(try isUp == 1)
      #expect(probed(.vantage, after: 2).isEmpty)
      #expect(try isUp == 0)
    }
    #expect(metrics.vantages.silences["oslo"]?.since == Self.now + 4)
    // Good probes of many endpoints at once are one.
    for _ in 0..<4 {
      #expect(probed(nil, after: 30).isEmpty)
      for _ in 0..<20 { #expect(probed(nil, after: 0).isEmpty) }
    }
    #expect(probed(nil, after: 29).isEmpty)
    #expect(probed(nil, after: 1) == [back])
    #expect(metrics.vantages.silences.isEmpty)
    #expect(probed(.vantage, after: 60) == [silent])
    for _ in 0..<9 { #expect(probed(nil, after: 60).isEmpty) }
    #expect(probed(nil, after: 60) == [back])
    // An hour without.
    #expect(probed(.vantage, after: 3601) == [silent])
    #expect(probed(nil, after: 2) == [back])
  }

  @Test(
    "one that answers and sees nothing that this server sees is as good as silent after five minutes"
  )
  func blindness() throws {
    metrics.vantages.configured(["oslo"])
    for seconds in stride(from: Int64(0), to: 300, by: 60) {
      #expect(probed(.refused, after: seconds).isEmpty)
    }
    // Another endpoint is seen from there.
    #expect(probed(nil, after: 299).isEmpty)
    for seconds in [300, 360, 599] as [Int64] { #expect(probed(.refused, after: seconds).isEmpty) }
    let reason = "it sees none of the endpoints that this server sees: gone"
    #expect(probed(.refused, after: 600) == [.init(vantage: "oslo", reason: reason)])
    #expect(try isUp == 0)
    #expect(probed(nil, after: 601) == [.init(vantage: "oslo", reason: nil)])
    // Nothing comes of the endpoint through its tunnels: no word of the point, until it sees nothing at all.
    for seconds in [602, 700, 901] as [Int64] { #expect(probed(.timeout, after: seconds).isEmpty) }
    #expect(probed(.timeout, after: 902) == [.init(vantage: "oslo", reason: reason)])
    #expect(probed(nil, after: 903).isEmpty)
    #expect(try isUp == 1)
    // Nor does this server see them: that says nothing of the point.
    for seconds in [1000, 1200, 1400] as [Int64] {
      #expect(probed(.refused, here: .refused, after: seconds).isEmpty)
    }
    #expect(try isUp == 1)
    let back = VantageMetrics.Change(vantage: "oslo", reason: nil)
    #expect(probed(.refused, here: .refused, after: 1600) == [back])
  }

  @Test("ports of one name are told apart; what is taken out or paused leaves with all its series")
  func leaving() throws {
    let name = try HostName("a.example")
    let (good, dead) = (
      WatchedEndpoint(fqdn: name), WatchedEndpoint(fqdn: name, port: 9443)
    )
    let ids: Set<String> = [good.id, dead.id]
    metrics.watches(["a.json": ids], paused: [:], from: [])
    let probe = { (endpoint: WatchedEndpoint, failure: ProbeFailureCause?) in
      metrics.probed(
        at: endpoint, in: "a.json", taking: .zero, failure: failure,
        leaves: failure == nil ? [SeenCertificate(pin: pin(1), notAfter: Self.now + 9)] : [],
        at: Self.now)
    }
    probe(good, nil)
    probe(dead, nil)
    probe(dead, .refused)
    let series = { (metrics: ServerMetrics) in
      try PrometheusPage(metrics.exposition(at: Self.now)).order.filter { $0.contains(":9443") }
    }
    #expect(try series(metrics).count == 5)
    metrics.watches(["a.json": [good.id]], paused: ["a.json": [dead.id]], from: [])
    #expect(try series(metrics).isEmpty)
    // Somebody asks for a probe a paused endpoint: it counts, and leaves nothing behind.
    probe(dead, .refused)
    #expect(try series(metrics).isEmpty)
    let page = try PrometheusPage(metrics.exposition(at: Self.now + 121))
    #expect(page.samples["ssl_pinning_probe_failures_total{cause=\"refused\"}"] == 2)
    #expect(page.samples["ssl_pinning_errors{file=\"a.json\"}"] == 0)
    #expect(
      page.samples[
        "ssl_pinning_last_probe_timestamp_seconds{endpoint=\"a.example:443\",fqdn=\"a.example\"}"]
        == Double(Self.now))
  }

  @Test("the process tells what it takes of its machine")
  func process() throws {
    let page = try PrometheusPage(metrics.exposition(at: Self.now))
    for name in [
      "process_resident_memory_bytes", "process_open_fds", "process_max_fds", "process_threads",
    ] {
      #expect(try #require(page.samples[name]) >= 1, "\(name)")
      #expect(page.types[name] == "gauge")
    }
    #expect(try #require(page.samples["process_cpu_seconds_total"]) >= 0)
    #expect(page.types["process_cpu_seconds_total"] == "counter")
  }
}

@Suite("A vantage point that is silent is an alert of the overview") struct VantageOverviewTests {
  @Test("with its reason and since when, and none once it answers")
  func silence() async throws {
    let service = try await AdministeredService.running()
    func overview(_ cause: ProbeFailureCause?) async throws -> AdministeredService.Answer {
      let seen = ProbeObservation.Outcome.accepted(SeenChain(leaf: SeenCertificate(pin: pin(1))))
      service.scripted.observer.show(
        ProbeResult(observations: [
          ProbeObservation(vantage: ProbeObservation.direct, outcome: seen),
          ProbeObservation(
            vantage: "oslo", outcome: cause == nil ? seen : .unreachable(reason: "it ended"),
            cause: cause),
        ]), at: "www.example.com")
      await service.scripted.service.probe("www.example.com")
      return try await service.call("GET", "/overview")
    }
    let silent = try await overview(.vantage)
    #expect(silent["alertsTotal"] == 1)
    #expect(silent["alerts", "0", "file"] == "")
    #expect(silent["alerts", "0", "kind"] == "vantage-silent")
    #expect(
      silent["alerts", "0", "message"] == "the vantage point oslo confirms nothing: it ended")
    // A line of the log at once, and no second one while it lasts.
    #expect(try await overview(.vantage)["alertsTotal"] == 1)
    let lines = service.scripted.log.events("vantage_silent")
    #expect(lines.count == 1)
    let line = try #require(lines.first)
    #expect(line["level"]?.stringValue == "warn")
    #expect(line["vantage"]?.stringValue == "oslo")
    #expect(line["reason"]?.stringValue == "it ended")
    #expect(try await overview(nil)["alertsTotal"] == 0)
    #expect(service.scripted.log.events("vantage_answers").count == 1)
    await service.stop()
  }
}
