import CanonicalJSON
import Foundation
import RegistryCore
import RegistryServer
import SslPinningRules
import TestSupport
import Testing

@Suite("The service publishes what it saw") struct RegistryServiceTests {
  static let host = "www.example.com"
  static let file = "www.example.com.json"

  @Test("signs the first key that it sees, for the apex and one label below")
  func firstKey() async throws {
    let server = try ScriptedService()
    server.observer.show(.accepted(pin(1)), at: Self.host)
    try await server.start()
    await server.service.probe(Self.host)
    let pins = try await server.pins(in: Self.file)
    #expect(pins == ["www.example.com": [pin(1)], "*.www.example.com": [pin(1)]])
    await server.service.stop()
  }

  @Test("publishes a rotated key beside the old one")
  func rotation() async throws {
    let server = try ScriptedService(keys: "[{fqdn: www.example.com, domainName: '*.example.com'}]")
    server.observer.show(.accepted(pin(1)), at: Self.host)
    try await server.start()
    await server.service.probe(Self.host)
    let before = try await server.get("/api/v1/\(Self.file)")
    server.observer.show(.accepted(pin(2)), at: Self.host)
    await server.service.probe(Self.host)
    #expect(try await server.pins(in: Self.file) == ["*.example.com": [pin(1), pin(2)]])
    let after = try await server.get("/api/v1/\(Self.file)")
    #expect(before.headers["etag"] != after.headers["etag"])
    #expect(server.log.events("key_waiting").count == 2)
    // Nobody announced the second key: it is a warning, and it is counted as such.
    #expect(
      server.log.events("key_published").map { $0["level"]?.stringValue } == ["info", "warn"])
    let page = try PrometheusPage(try await server.get("/metrics").body)
    for (announced, count) in [("first", 1.0), ("no", 1), ("yes", 0)] {
      let series = "ssl_pinning_keys_published_total{announced=\"\(announced)\"}"
      #expect(page.samples[series] == count, "\(announced)")
    }
    await server.service.stop()
  }

  @Test(
    "changes nothing for probes that prove nothing, and logs each as a warning",
    arguments: [
      ProbeResult.refused(reason: "self-signed certificate", presented: pin(9)),
      .unreachable(reason: "connection refused"),
    ])
  func refusedProbes(_ probe: ProbeResult) async throws {
    let server = try ScriptedService()
    server.observer.show(.accepted(pin(1)), at: Self.host)
    try await server.start()
    await server.service.probe(Self.host)
    let before = try await server.get("/api/v1/\(Self.file)")
    server.observer.show(probe, at: Self.host)
    for _ in 0..<5 { await server.service.probe(Self.host) }
    let after = try await server.get("/api/v1/\(Self.file)")
    #expect(before.body == after.body)
    let warnings = server.log.events("probe_refused") + server.log.events("probe_failed")
    #expect(warnings.count == 5)
    #expect(warnings.allSatisfy { $0["level"]?.stringValue == "warn" })
    await server.service.stop()
  }

  @Test("never publishes an empty document, and says why it is not ready")
  func emptyDocument() async throws {
    let server = try ScriptedService()
    server.observer.show(.refused(reason: "self-signed", presented: pin(9)), at: Self.host)
    try await server.start()
    await server.service.probe(Self.host)
    let document = try await server.get("/api/v1/\(Self.file)")
    #expect(document.status == 503)
    #expect(document.headers["retry-after"] != nil)
    #expect(server.service.currentDocument(Self.file) == nil)
    let ready = try await server.get("/readyz")
    #expect(ready.status == 503)
    #expect(
      String(decoding: ready.body, as: UTF8.self)
        == "{\"reasons\":[\"waiting\"],\"status\":\"not ready\"}\n")
    #expect(try await server.get("/livez").status == 200)
    server.observer.show(.accepted(pin(1)), at: Self.host)
    await server.service.probe(Self.host)
    #expect(try await server.get("/readyz").status == 200)
    await server.service.stop()
  }

  @Test("leaves an endpoint without a key out of the document that it shares")
  func sharedFile() async throws {
    let server = try ScriptedService(
      keys: "[{fqdn: a.example, file: all.json}, {fqdn: b.example, file: all.json}]")
    server.observer.show(.accepted(pin(1)), at: "a.example")
    try await server.start()
    await server.service.probe("a.example")
    await server.service.probe("b.example")
    #expect(try await server.pins(in: "all.json").keys.sorted() == ["*.a.example", "a.example"])
    server.observer.show(.accepted(pin(2)), at: "b.example")
    await server.service.probe("b.example")
    #expect(try await server.pins(in: "all.json")["b.example"] == [pin(2)])
    await server.service.stop()
  }

  @Test(
    "the first key of an endpoint joins another one's list only after its probes",
    arguments: [
      ("www.example.com", "www.example.com", true), ("*.example.com", "www.example.com", true),
      ("**.example.com", "*.example.com", true), ("www.example.com", "api.example.com", false),
      ("*.example.com", "example.com", false), ("*.example.com", "a.b.example.com", false),
    ])
  func secondEndpoint(_ listed: String, _ joining: String, _ overlaps: Bool) async throws {
    let server = try ScriptedService(
      keys: """
        [{fqdn: a.test, domainName: '\(listed)', file: all.json},
         {fqdn: b.test, domainName: '\(joining)', file: all.json}]
        """)
    server.observer.show(.accepted(pin(1)), at: "a.test")
    try await server.start()
    await server.service.probe("a.test")
    // One good probe, then none.
    server.observer.show([.accepted(pin(2))], at: "b.test")
    await server.service.probe("b.test")
    let early = try #require(server.service.currentDocument("all.json"))
    #expect(String(decoding: early.bytes, as: UTF8.self).contains(pin(2).base64) == !overlaps)
    server.observer.show(.accepted(pin(2)), at: "b.test")
    await server.service.probe("b.test")
    #expect(try await server.pins(in: "all.json")[joining]?.contains(pin(2)) == true)
    await server.service.stop()
  }

  @Test("writes format 1: the five members, a Unix expiry, the time of the first probe")
  func format() async throws {
    let server = try ScriptedService(keys: "[{fqdn: www.example.com, domainName: example.com}]")
    server.observer.show(.accepted(pin(1)), at: Self.host)
    let now = server.clock.now()
    try await server.start()
    await server.service.probe(Self.host)
    let document = try #require(server.service.currentDocument(Self.file))
    let root = try JSONValue(parsing: document.bytes)
    #expect(
      root.objectValue?.keys == ["payload", "signature", "statement", "statementSignatures"])
    let entry = root.objectValue?["payload"]?.objectValue?["keys"]?.arrayValue?.first?.objectValue
    #expect(
      entry
        == JSONObject([
          ("date", .string(RFC3339.text(now))), ("domainName", .string("example.com")),
          ("expire", .number(try #require(JSONNumber(exactly: now + DocumentSigner.horizon)))),
          ("fqdn", .string("www.example.com")), ("key", .string(pin(1).base64)),
        ]))
    await server.service.stop()
  }

  @Test("signs once a day without a change, so that no pin expires under a client")
  func renewal() async throws {
    let server = try ScriptedService()
    server.observer.show(.accepted(pin(1)), at: Self.host)
    try await server.start()
    await server.service.probe(Self.host)
    let first = try #require(server.service.currentDocument(Self.file))
    server.clock.advance(DocumentSigner.renewal - 100)
    await server.service.probe(Self.host)
    #expect(server.service.currentDocument(Self.file)?.bytes == first.bytes)
    server.clock.advance(200)
    await server.service.probe(Self.host)
    let second = try #require(server.service.currentDocument(Self.file))
    #expect(second.signed == server.clock.now())
    #expect(second.bytes != first.bytes)
    // A clock that is set back a little, or by which no endpoint is valid, shortens nothing.
    server.clock.advance(-80_000)
    await server.service.probe(Self.host)
    #expect(server.service.currentDocument(Self.file)?.signed == second.signed)
    server.clock.advance(-30 * 86_400)
    server.observer.show(.refused(reason: "not yet valid", presented: pin(1)), at: Self.host)
    await server.service.probe(Self.host)
    #expect(server.service.currentDocument(Self.file)?.signed == second.signed)
    // One by which they are, and by the other they would have ended, was put right.
    let leaf = SeenCertificate(
      pin: pin(1), notBefore: server.clock.now() - 86_400, notAfter: second.signed - 1)
    server.observer.show(
      ProbeResult(observations: [ProbeObservation(outcome: .accepted(SeenChain(leaf: leaf)))]),
      at: Self.host)
    await server.service.probe(Self.host)
    #expect(server.service.currentDocument(Self.file)?.signed == server.clock.now())
    await server.service.stop()
  }

  @Test("serves the same bytes after a restart, before any probe")
  func restart() async throws {
    let storage = "{type: sqlite, dsn: 'DIR/registry.db'}"
    let first = try ScriptedService(storage: storage)
    first.observer.show(.accepted(pin(1)), at: Self.host)
    try await first.start()
    await first.service.probe(Self.host)
    let before = try #require(first.service.currentDocument(Self.file))
    await first.service.stop()

    let second = try ScriptedService(storage: storage, sharing: first)
    try await second.start()
    #expect(second.service.currentDocument(Self.file)?.bytes == before.bytes)
    #expect(try await second.get("/readyz").status == 200)
    // What was changed while the server was down is no first key: it needs its probes.
    second.observer.show([.accepted(pin(2)), .accepted(pin(1))], at: Self.host)
    second.observer.show(.unreachable(reason: "down"), at: Self.host)
    await second.service.probe(Self.host)
    #expect(try await second.pins(in: Self.file)[Self.host] == [pin(1)])
    await second.service.stop()
  }

  @Test("a clock that was set back while the server was down shortens no expiry")
  func restartInThePast() async throws {
    let storage = "{type: sqlite, dsn: 'DIR/registry.db'}"
    let first = try ScriptedService(storage: storage)
    first.observer.show(.accepted(pin(1)), at: Self.host)
    try await first.start()
    await first.service.probe(Self.host)
    let before = try #require(first.service.currentDocument(Self.file))
    await first.service.stop()

    first.clock.advance(-40 * 365 * 86_400)
    // Another configuration: what is stored is signed anew.
    let second = try ScriptedService(
      keys: "[{fqdn: www.example.com, domainName: api.example.com, file: \(Self.file)}]",
      storage: storage, sharing: first)
    try await second.start()
    let after = try #require(second.service.currentDocument(Self.file))
    #expect(after.bytes != before.bytes)
    #expect(after.signed >= before.signed)
    await second.service.stop()
  }

  @Test("two servers on one store publish what either confirmed")
  func twoServers() async throws {
    let storage = "{type: sqlite, dsn: 'DIR/registry.db'}"
    let one = try ScriptedService(storage: storage)
    one.observer.show(.accepted(pin(1)), at: Self.host)
    try await one.start()
    await one.service.probe(Self.host)
    let other = try ScriptedService(storage: storage, sharing: one)
    other.observer.show(.accepted(pin(2)), at: Self.host)
    try await other.start(isLeading: false)
    await other.service.probe(Self.host)
    #expect(try await other.pins(in: Self.file)[Self.host] == [pin(1), pin(2)])
    one.observer.show(.accepted(pin(3)), at: Self.host)
    await one.service.probe(Self.host)
    #expect(try await one.pins(in: Self.file)[Self.host] == [pin(1), pin(2), pin(3)])
    await one.service.stop()
    await other.service.stop()
  }

  @Test("many endpoints in one document at once lose nothing")
  func crowd() async throws {
    let names = (0..<40).map { "h\($0).example" }
    let keys = names.map { "{fqdn: \($0), file: all.json}" }.joined(separator: ", ")
    let server = try ScriptedService(keys: "[\(keys)]")
    for (index, name) in names.enumerated() {
      server.observer.show(.accepted(pin(UInt8(index))), at: name)
    }
    try await server.start()
    await withTaskGroup(of: Void.self) { group in
      for name in names { group.addTask { _ = await server.service.probe(name) } }
    }
    let pins = try await server.pins(in: "all.json")
    for (index, name) in names.enumerated() { #expect(pins[name] == [pin(UInt8(index))]) }
    await server.service.stop()
  }

  @Test("many endpoints that never answer keep nobody waiting")
  func deadCrowd() async throws {
    struct HalfDead: EndpointProber {
      func probe(_ endpoint: WatchedEndpoint) async -> ProbeResult {
        guard endpoint.port == 443 else {
          // why: an endpoint that drops every packet; ends when the service stops.
          try? await Task.sleep(for: .seconds(3600))
          return .unreachable(reason: "timed out")
        }
        return .accepted(pin(1))
      }
    }
    let directory = try makeKeyDirectory()
    let dead = (0..<200).map { "{fqdn: d\($0).example, port: 444}, " }.joined()
    let service = try RegistryService(
      configuration: configuration(
        """
        keys: [\(dead){fqdn: www.example.com}]
        server: {listen: "127.0.0.1:0"}
        storage: {type: memory}
        tls: {dir: "\(directory.path())"}
        """), clock: TestClock(), log: .silent, observer: HalfDead())
    try await service.start()
    for _ in 0..<500 where service.currentDocument(Self.file) == nil {
      // why: the probe is made in the service's own time.
      try await Task.sleep(for: .milliseconds(10))
    }
    #expect(service.currentDocument(Self.file) != nil)
    await service.stop()
  }

  @Test("signs with one key: the published document verifies under no other")
  func wrongKey() async throws {
    let server = try ScriptedService()
    server.observer.show(.accepted(pin(1)), at: Self.host)
    try await server.start()
    await server.service.probe(Self.host)
    var bytes = try #require(server.service.currentDocument(Self.file)).bytes
    _ = try verifiedPins(bytes, at: 0)
    let text = String(decoding: bytes, as: UTF8.self)
    bytes = Array(text.replacing(pin(1).base64, with: pin(2).base64).utf8)
    #expect(throws: RegistryError.badSignature) { try verifiedPins(bytes, at: 0) }
    await server.service.stop()
  }

  @Test("a started service cannot be started again, and a stopped one stops again quietly")
  func lifecycle() async throws {
    let server = try ScriptedService()
    #expect(server.service.address == nil)
    try await server.start()
    #expect(server.service.address?.port != 0)
    await #expect(throws: RegistryServiceError.self) { try await server.service.start() }
    await server.service.stop()
    await server.service.stop()
    #expect(server.service.address == nil)
  }
}
