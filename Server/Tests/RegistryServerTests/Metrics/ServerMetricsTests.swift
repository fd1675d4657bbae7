import SslPinningRules
import TLSTools
import Testing

@testable import RegistryCore
@testable import RegistryServer

@Suite("What the server tells of itself")
struct ServerMetricsTests {
  private static let now: Int64 = 1_780_000_000

  private let metrics = ServerMetrics(version: "1.2.3", started: Self.now)
  private let documents: [DocumentConfiguration]
  private let endpoint: WatchedEndpoint

  init() throws {
    documents = try configuration("keys: [{fqdn: a.example}, {fqdn: b.example, file: b.json}]")
      .documents
    endpoint = try #require(documents.first?.endpoints.first)
    metrics.configured(documents)
  }

  private func page(after seconds: Int64 = 0) throws -> PrometheusPage {
    try PrometheusPage(metrics.exposition(at: Self.now + seconds))
  }

  private func probe(_ failure: ProbeFailureCause?, leaf: SPKIPin? = nil, until: Int64 = 0) {
    metrics.probed(
      at: endpoint, in: "a.example.json", taking: .milliseconds(30), failure: failure,
      leaves: leaf.map { [SeenCertificate(pin: $0, notAfter: until)] } ?? [], at: Self.now)
  }

  @Test("every metric stands once, in order, also before anything happened")
  func empty() throws {
    let page = try page()
    let names = String(decoding: metrics.exposition(at: Self.now), as: UTF8.self)
      .split(separator: "\n").filter { $0.hasPrefix("# TYPE") }.map {
        String($0.split(separator: " ")[2])
      }
    #expect(names == names.sorted())
    #expect(page.types["ssl_pinning_expire"] == "gauge")
    #expect(page.types["ssl_pinning_errors"] == "gauge")
    #expect(page.samples["ssl_pinning_errors{file=\"a.example.json\"}"] == 0)
    #expect(page.samples["ssl_pinning_build_info{version=\"1.2.3\"}"] == 1)
    for cause in ProbeFailureCause.allCases {
      #expect(page.samples["ssl_pinning_probe_failures_total{cause=\"\(cause)\"}"] == 0)
    }
  }

  @Test("keys are counted by whether somebody announced them, and withdrawn ones by themselves")
  func publishedKeys() throws {
    metrics.published([
      .published(pin(1), isFirst: true), .published(pin(2), isFirst: false),
      .published(pin(3), isFirst: false), .activated(pin(4)), .withdrawn(pin(2)), .retired(pin(1)),
    ])
    let page = try page()
    for (announced, count) in [("first", 1.0), ("no", 2), ("yes", 1)] {
      let series = "ssl_pinning_keys_published_total{announced=\"\(announced)\"}"
      #expect(page.samples[series] == count, "\(announced)")
    }
    #expect(page.samples["ssl_pinning_keys_withdrawn_total"] == 1)
  }

  @Test("an expiry is told in the seconds that are left at the scrape, and beside it as a time")
  func expiry() throws {
    probe(nil, leaf: pin(1), until: Self.now + 5_488_607)
    let labels = "{endpoint=\"a.example:443\",fqdn=\"a.example\",key=\"\(pin(1).base64)\"}"
    #expect(try page().samples["ssl_pinning_expire\(labels)"] == 5_488_607)
    #expect(try page(after: 7).samples["ssl_pinning_expire\(labels)"] == 5_488_600)
    #expect(try page(after: 5_488_608).samples["ssl_pinning_expire\(labels)"] == -1)
    #expect(
      try page(after: 7).samples["ssl_pinning_key_expires_timestamp_seconds\(labels)"]
        == Double(Self.now + 5_488_607))
  }

  @Test("a certificate of which only the key is known has no expiry")
  func unknownExpiry() throws {
    probe(nil, leaf: pin(1))
    #expect(try !page().order.contains { $0.hasPrefix("ssl_pinning_expire{") })
  }

  @Test("a key that is published no more ends; those of other endpoints stay")
  func retired() throws {
    let other = try #require(documents.last?.endpoints.first)
    probe(nil, leaf: pin(1), until: Self.now + 10)
    probe(nil, leaf: pin(2), until: Self.now + 20)
    metrics.probed(
      at: other, in: "b.json", taking: .zero, failure: nil,
      leaves: [SeenCertificate(pin: pin(1), notAfter: Self.now + 30)], at: Self.now)
    let entries = [
      DocumentEntry(pattern: .exact(endpoint.fqdn), pin: pin(2), fqdn: endpoint.fqdn, date: 0)
    ]
    metrics.published(DocumentFacts(file: "a.example.json", signed: Self.now, entries: entries))
    let told = try page().order.filter { $0.hasPrefix("ssl_pinning_expire{") }
    #expect(
      told == [
        "ssl_pinning_expire{endpoint=\"a.example:443\",fqdn=\"a.example\",key=\"\(pin(2).base64)\"}",
        "ssl_pinning_expire{endpoint=\"b.example:443\",fqdn=\"b.example\",key=\"\(pin(1).base64)\"}",
      ])
  }

  @Test("a failed probe counts by its cause and for its document, and leaves the last success")
  func failures() throws {
    probe(nil)
    metrics.probed(
      at: endpoint, in: "a.example.json", taking: .seconds(5), failure: .timeout, at: Self.now + 60)
    let page = try page(after: 60)
    #expect(page.samples["ssl_pinning_probe_failures_total{cause=\"timeout\"}"] == 1)
    #expect(page.samples["ssl_pinning_probe_failures_total{cause=\"dns\"}"] == 0)
    #expect(page.samples["ssl_pinning_errors{file=\"a.example.json\"}"] == 1)
    #expect(page.samples["ssl_pinning_errors{file=\"b.json\"}"] == 0)
    let endpoint = "{endpoint=\"a.example:443\",fqdn=\"a.example\"}"
    #expect(
      page.samples["ssl_pinning_last_probe_timestamp_seconds\(endpoint)"] == Double(Self.now + 60))
    #expect(
      page.samples["ssl_pinning_last_success_timestamp_seconds\(endpoint)"] == Double(Self.now))
    #expect(page.samples["ssl_pinning_probe_duration_seconds_count"] == 2)
    #expect(page.samples["ssl_pinning_probe_duration_seconds_sum"] == 5.03)
  }

  @Test("a document tells its version and time; one without a statement tells no version")
  func document() throws {
    var facts = DocumentFacts(
      file: "b.json", version: 7, epoch: 2, expires: Self.now + 90, signed: Self.now, entries: [])
    metrics.published(facts)
    let before = try page()
    #expect(before.samples["ssl_pinning_document_version{file=\"b.json\"}"] == 7)
    #expect(before.samples["ssl_pinning_document_epoch{file=\"b.json\"}"] == 2)
    #expect(before.samples["ssl_pinning_document_keys{file=\"b.json\"}"] == 0)
    let end = "ssl_pinning_document_expires_timestamp_seconds{file=\"b.json\"}"
    #expect(before.samples[end] == Double(Self.now + 90))
    // Two weeks before, and not a second earlier.
    for (left, isTold) in [(14 * 86_400, true), (14 * 86_400 + 1, false), (-1, true)]
      as [(Int64, Bool)]
    {
      facts.expires = Self.now + left
      metrics.published(facts)
      #expect(try page().samples[end] == (isTold ? Double(Self.now + left) : nil))
    }
    facts.version = nil
    metrics.published(facts)
    #expect(try page().samples["ssl_pinning_document_version{file=\"b.json\"}"] == nil)
    #expect(
      try page().samples["ssl_pinning_document_signed_timestamp_seconds{file=\"b.json\"}"]
        == Double(Self.now))
  }

  @Test("what is configured no more is told no more")
  func reconfigured() throws {
    probe(.dns)
    probe(nil, leaf: pin(1), until: Self.now + 10)
    metrics.published(DocumentFacts(file: "a.example.json", signed: Self.now, entries: []))
    probe(nil, leaf: pin(1), until: Self.now + 10)
    metrics.configured(documents.suffix(1))
    let text = String(decoding: metrics.exposition(at: Self.now), as: UTF8.self)
    #expect(!text.contains("a.example"))
    #expect(text.contains("b.json"))
  }

  @Test("requests are counted by kind of path and code, never by what was asked for")
  func requests() throws {
    metrics.answered(.document, code: 200, taking: .microseconds(30))
    metrics.answered(.document, code: 200, taking: .microseconds(300))
    metrics.answered(.other, code: 404, taking: .microseconds(3))
    metrics.answered(.other, code: 7, taking: .microseconds(3))
    metrics.answered(.other, code: Int.max, taking: .microseconds(3))
    let page = try page()
    func count(_ code: Int, _ path: String) -> Double? {
      page.samples["ssl_pinning_http_requests_total{code=\"\(code)\",path_class=\"\(path)\"}"]
    }
    #expect(count(200, "document") == 2)
    #expect(count(404, "other") == 1)
    #expect(count(599, "other") == 2)
    #expect(count(404, "document") == nil)
    let histogram = "ssl_pinning_http_request_duration_seconds"
    #expect(page.samples["\(histogram)_bucket{path_class=\"document\",le=\"5e-05\"}"] == 1)
    #expect(page.samples["\(histogram)_count{path_class=\"document\"}"] == 2)
  }

  @Test("an alert that is over is told as none, not left out")
  func alerts() throws {
    metrics.alerts(["unreachable": 2, "expiring": 1])
    metrics.alerts(["expiring": 3])
    let page = try page()
    #expect(page.samples["ssl_pinning_alerts{kind=\"unreachable\"}"] == 0)
    #expect(page.samples["ssl_pinning_alerts{kind=\"expiring\"}"] == 3)
  }

  @Test("leadership, approvals and reports")
  func others() throws {
    metrics.leads(true)
    metrics.pendingApprovals(4)
    metrics.reported(.unlisted)
    let page = try page()
    #expect(page.samples["ssl_pinning_leader"] == 1)
    #expect(page.samples["ssl_pinning_pending_approvals"] == 4)
    #expect(page.samples["ssl_pinning_reports_total{outcome=\"unlisted\"}"] == 1)
    #expect(page.samples["ssl_pinning_reports_total{outcome=\"accepted\"}"] == 0)
    metrics.leads(false)
    #expect(try self.page().samples["ssl_pinning_leader"] == 0)
  }

  @Test("who loses the leadership tells nothing more of its probes")
  func leadershipLost() throws {
    metrics.leads(true)
    probe(nil, leaf: pin(1), until: Self.now + 10)
    probe(.dns)
    metrics.leads(true)
    #expect(try page().samples["ssl_pinning_errors{file=\"a.example.json\"}"] == 1)
    metrics.leads(false)
    let page = try page()
    #expect(page.samples["ssl_pinning_errors{file=\"a.example.json\"}"] == 0)
    #expect(!page.order.contains { $0.contains("fqdn=") })
    #expect(page.samples["ssl_pinning_probe_failures_total{cause=\"dns\"}"] == 1)
  }

  @Test("ten thousand endpoints with a document each are a page of a few megabytes")
  func manyEndpoints() throws {
    let documents = try (0..<10_000).map { index in
      let host = try HostName("host-\(index).example.com")
      return DocumentConfiguration(
        file: "\(host).json", endpoints: [WatchedEndpoint(fqdn: host)])
    }
    metrics.configured(documents)
    for document in documents {
      for endpoint in document.endpoints {
        metrics.probed(
          at: endpoint, in: document.file, taking: .milliseconds(20), failure: nil,
          leaves: [SeenCertificate(pin: pin(1), notAfter: Self.now + 1000)], at: Self.now)
        metrics.published(
          DocumentFacts(
            file: document.file, version: 1, epoch: 1, expires: Self.now + 90 * 86_400,
            signed: Self.now, keys: 2, pins: [endpoint.fqdn: [pin(1)]]))
      }
    }
    let bytes = metrics.exposition(at: Self.now)
    #expect(bytes.count < 10_000_000)
    #expect(try PrometheusPage(bytes).samples.count > 90_000)
  }

  @Test(
    "a probe's failure has a cause",
    arguments: [
      (ProbeError.dns(host: "a", reason: "r"), ProbeFailureCause.dns),
      (.refused(Endpoint(address: "127.0.0.1", port: 1)), .refused),
      (.unreachable(Endpoint(address: "127.0.0.1", port: 1), reason: "r"), .unreachable),
      (.timeout(.handshake), .timeout), (.timeout(.dns), .timeout),
      (.notTLS(beginning: "HTTP"), .handshake), (.handshake(reason: "r"), .handshake),
      (.cancelled, .other), (.local(reason: "r"), .other), (.invalidTarget("x"), .other),
    ])
  func causes(_ error: ProbeError, _ cause: ProbeFailureCause) {
    #expect(ProbeFailureCause(error) == cause)
  }
}
