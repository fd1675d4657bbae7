import CanonicalJSON
import Foundation
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@testable import RegistryCore
@testable import RegistryServer

@Suite("The webhook is told what the server finds out beside its documents")
struct ServerConditionTests {
  private static let host = "www.example.com"
  private let receiver: Receiver

  init() throws { receiver = try Receiver() }

  private var notify: String {
    "notify: {webhook: \"\(receiver.url)\", secret: \(Receiver.secret)}"
  }

  /// What was told of a kind, in order.
  private func told(_ kind: String) -> [Receiver.Change] {
    receiver.changes.filter { $0.json["kind"]?.stringValue == kind }
  }

  /// Waits until these phases of a kind were told, and no other.
  private func isTold(_ kind: String, _ phases: String...) async -> Bool {
    let all = phases.map { "\($0) \(kind)" }
    return await eventually { told(kind).map(\.text) == all }
  }

  @Test("when a vantage point falls silent, and when it answers again")
  func silentVantage() async throws {
    let server = try await AdministeredService.running(more: notify)
    func probe(_ cause: ProbeFailureCause?) async {
      let seen = ProbeObservation.Outcome.accepted(SeenChain(leaf: SeenCertificate(pin: pin(1))))
      server.scripted.observer.show(
        ProbeResult(observations: [
          ProbeObservation(vantage: ProbeObservation.direct, outcome: seen),
          ProbeObservation(
            vantage: "oslo", outcome: cause == nil ? seen : .unreachable(reason: "it ended"),
            cause: cause),
        ]), at: Self.host)
      await server.scripted.service.probe(Self.host)
    }
    await probe(.vantage)
    #expect(await isTold("vantage-silent", "begun"))
    let begun = try #require(told("vantage-silent").first).json
    #expect(begun["subject"] == "oslo" && begun["severity"] == "warning")
    #expect(begun["message"]?.stringValue?.hasSuffix("it ended") == true)
    await probe(nil)
    #expect(await isTold("vantage-silent", "begun", "over"))
    await server.stop()
    await receiver.stop()
  }

  @Test(
    "when only a vantage point is shown a chain that proves nothing, as a warning; when this server is, as apps refused"
  )
  func disputedChain() async throws {
    let server = try await AdministeredService.running(more: notify)
    let good = ProbeObservation.Outcome.accepted(SeenChain(leaf: SeenCertificate(pin: pin(1))))
    let bad = ProbeObservation.Outcome.refused(reason: "self-signed", presented: pin(9))
    /// Probes, and returns how many endpoints the console says apps are refused at.
    func probe(
      _ here: ProbeObservation.Outcome, _ oslo: ProbeObservation.Outcome
    ) async throws -> JSONValue? {
      server.scripted.observer.show(
        ProbeResult(observations: [
          ProbeObservation(outcome: here), ProbeObservation(vantage: "oslo", outcome: oslo),
        ]), at: Self.host)
      await server.scripted.service.probe(Self.host)
      return try await server.call("GET", "/overview")["refusing", "total"]
    }
    #expect(try await probe(good, bad) == 0)
    #expect(await isTold("chain-disputed", "begun"))
    #expect(told("chain-disputed").first?.json["severity"] == "warning")
    #expect(try await probe(bad, good) == 1)
    #expect(await isTold("chain-refused", "begun"))
    #expect(told("chain-refused").first?.json["severity"] == "critical")
    #expect(await isTold("chain-disputed", "begun", "over"))
    // The one is over although the other goes on.
    #expect(try await probe(good, bad) == 0)
    #expect(await isTold("chain-refused", "begun", "over"))
    #expect(await isTold("chain-disputed", "begun", "over", "begun"))
    await server.stop()
    await receiver.stop()
  }

  @Test("when the store does not answer at the start, and when it is back")
  func awaitedStore() async throws {
    let yaml = "{type: sqlite, dsn: \"DIR/registry.db\"}"
    let published = "publish: {dir: 'DIR/public'}"
    let first = try ScriptedService(storage: yaml, more: published)
    first.observer.show(.accepted(pin(1)), at: Self.host)
    try await first.start()
    await first.service.probe(Self.host)
    await first.service.stop()
    let (path, away) = (first.directory.path("registry.db"), first.directory.path("away.db"))
    try FileManager.default.moveItem(atPath: path, toPath: away)
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    let second = try ScriptedService(
      storage: yaml, more: "\(published)\n\(notify)", sharing: first)
    second.observer.show(.accepted(pin(1)), at: Self.host)
    try await second.service.start()
    #expect(await isTold("store-away", "begun"))
    let begun = try #require(told("store-away").first).json
    #expect(begun["severity"] == "warning")
    #expect(begun["message"]?.stringValue?.contains("has not answered since the start") == true)
    try FileManager.default.removeItem(atPath: path)
    try FileManager.default.moveItem(atPath: away, toPath: path)
    #expect(await isTold("store-away", "begun", "over"))
    await second.service.stop()
    await receiver.stop()
  }

  @Test(
    "when nobody leads for two minutes, as readiness, the overview and metrics do, and when a server leads again"
  )
  func nobodyLeads() async throws {
    let scripted = try ScriptedService(
      storage: "{type: fs, dump_dir: \"DIR/state\"}", more: notify)
    let server = AdministeredService(scripted: scripted)
    scripted.observer.show(.accepted(pin(1)), at: Self.host)
    // Which nobody can lock, whoever runs the test.
    let lock = scripted.directory.path("state/leader")
    try FileManager.default.createDirectory(atPath: lock, withIntermediateDirectories: true)
    try await scripted.start(isLeading: false)
    #expect(await eventually { !scripted.log.events("leadership_unknown").isEmpty })
    #expect(try await server.call("GET", "/overview")["alertsTotal"] == 0)
    scripted.clock.advance(LeaderSight.patience)
    #expect(await isTold("nobody-leads", "begun"))
    let begun = try #require(told("nobody-leads").first).json
    #expect(begun["severity"] == "warning")
    let message = try #require(begun["message"]?.stringValue)
    #expect(message.contains("state/leader: is a directory"))
    let overview = try await server.call("GET", "/overview")
    #expect(overview["alertsTotal"] == 1 && overview["leader"] == false)
    #expect(overview["alerts", "0", "kind"]?.stringValue == "nobody-leads")
    let report = scripted.service.health.facts(of: scripted.service.documents).readiness
    #expect(report.kinds.contains(.leader))
    #expect(report.reasons.contains { $0.hasPrefix("nobody leads") })
    let page = try await PrometheusPage(scripted.get("/metrics").body)
    #expect(page.samples["ssl_pinning_alerts{kind=\"nobody-leads\"}"] == 1)
    try FileManager.default.removeItem(atPath: lock)
    #expect(await isTold("nobody-leads", "begun", "over"))
    #expect(await eventually { scripted.service.currentDocument("\(Self.host).json") != nil })
    await server.stop()
    await receiver.stop()
  }

  @Test("when apps report more refusals of chains of an authority than usual, and when that ends")
  func risingRefusals() async throws {
    let now = TestClock().now()
    let life = Validity(notBefore: now - 864_000, notAfter: now + 864_000)
    let authority = try CertificateAuthority.makeRoot(name: "Root", validity: life)
    let directory = try TemporaryDirectory()
    let anchors = try directory.write(authority.root.pem, to: "ca.pem")
    let server = try ScriptedService(
      more: notify, anchors: anchors.path(percentEncoded: false))
    server.observer.show(.accepted(pin(1)), at: Self.host)
    try await server.start()
    let identity = try authority.issue(names: [Self.host], validity: life)
    let body = JSONValue.object([
      "hostname": .string(Self.host),
      "validated-certificate-chain": .array([.string(identity.leaf.pem)]),
    ]).canonicalBytes
    let address = try #require(server.service.address)
    for _ in 0..<21 {
      let answer = try await HTTPProbe.fetch(
        "http://\(address)\(ReportRoutes.path)", method: "POST", body: body)
      #expect(answer.status == 204)
    }
    #expect(await isTold("refusals-rise", "begun"))
    let begun = try #require(told("refusals-rise").first).json
    #expect(begun["severity"] == "critical" && begun["refusing"] == true)
    #expect(begun["message"]?.stringValue?.contains("21 refused connections") == true)
    // Two windows without any.
    server.clock.advance(1800)
    #expect(await isTold("refusals-rise", "begun", "over"))
    await server.service.stop()
    await receiver.stop()
  }

  @Test("when a token in use that was made to last ends within a week, which metrics tell, too")
  func endingToken() async throws {
    let server = try await AdministeredService.running(more: notify)
    let (now, day) = (server.scripted.clock.now(), Int64(86_400))
    let metric = "ssl_pinning_token_ends_timestamp_seconds"
    func page() async throws -> PrometheusPage {
      try PrometheusPage(try await server.scripted.get("/metrics").body)
    }
    let before = try await page()
    #expect(before.types[metric] == "gauge" && before.samples[metric] == nil)
    let ending = try server.token("renewal", issued: now - 9 * day, ttl: 15 * day)
    // One was made for less, and one ends later.
    for token in [
      try server.token("short", issued: now - 9 * day, ttl: 13 * day),
      try server.token("later", issued: now - 9 * day, ttl: 90 * day), ending,
    ] {
      let answer = try await server.call(
        "GET", "/session", headers: ["Authorization": "Bearer \(token)"])
      #expect(answer.status == 200)
    }
    #expect(await isTold("token-ends", "begun"))
    let begun = try #require(told("token-ends").first).json
    #expect(begun["subject"] == .string(AdminTokenIssuer.id(of: ending)))
    #expect(begun["severity"] == "warning")
    #expect(begun["message"]?.stringValue?.contains("renewal ends in ") == true)
    var end: Double?
    for _ in 0..<600 where end == nil {
      end = try await page().samples[metric]
      // why: the page is made at most once a second.
      try await Task.sleep(for: .milliseconds(50))
    }
    #expect(end == Double(now + 6 * day))
    server.scripted.clock.advance(13 * day + 1)
    #expect(await isTold("token-ends", "begun", "over"))
    await server.stop()
    await receiver.stop()
  }

  @Test(
    "when the certificate of the server's own listener ends within a week, as an outage once it has, which the overview and metrics tell, too"
  )
  func endingListener() async throws {
    let server = try await AdministeredService.running(more: notify)
    let (service, clock, day) = (server.scripted.service, server.scripted.clock, Int64(86_400))
    let kind = "listener-certificate-ends"
    let end = clock.now() + 8 * day
    service.health.listener(endsAt: end) { clock.now() }
    #expect(try await server.call("GET", "/overview")["alertsTotal"] == 0)
    clock.advance(day + 1)
    #expect(await isTold(kind, "begun"))
    #expect(told(kind).first?.json["severity"] == "warning")
    let overview = try await server.call("GET", "/overview")
    #expect(overview["alerts", "0", "kind"]?.stringValue == kind)
    #expect(overview["alerts", "0", "since"]?.integerValue == end - 7 * day)
    let page = try await PrometheusPage(server.scripted.get("/metrics").body)
    #expect(page.samples["ssl_pinning_alerts{kind=\"\(kind)\"}"] == 1)
    clock.advance(7 * day)
    #expect(await isTold(kind, "begun", "begun"))
    #expect(told(kind).last?.json["severity"] == "critical")
    service.health.listener(endsAt: end + 90 * day) { clock.now() }
    #expect(await isTold(kind, "begun", "begun", "over"))
    await server.stop()
    await receiver.stop()
  }
}
