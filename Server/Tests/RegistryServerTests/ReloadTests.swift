import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@testable import RegistryCore
@testable import RegistryServer

@Suite("Reading the configuration again", .timeLimit(.minutes(2))) struct ReloadTests {
  static let one = "[{fqdn: a.test, file: a.json}]"
  static let two = "[{fqdn: a.test, file: a.json}, {fqdn: b.test, file: b.json}]"

  @Test("serves a new document beside the old one, and no longer one that is gone")
  func documents() async throws {
    let server = try ScriptedService(keys: Self.one)
    server.observer.show(.accepted(pin(1)), at: "a.test")
    server.observer.show(.accepted(pin(2)), at: "b.test")
    try await server.start()
    let before = try await server.get("/api/v1/a.json").body
    try await server.reload(keys: Self.two)
    #expect(await eventually { server.service.currentDocument("b.json") != nil })
    #expect(try await server.pins(in: "b.json") == ["b.test": [pin(2)], "*.b.test": [pin(2)]])
    #expect(try await server.get("/api/v1/a.json").body == before)
    try await server.reload(keys: "[{fqdn: b.test, file: b.json}]")
    #expect(try await server.get("/api/v1/a.json").status == 404)
    #expect(try await server.get("/api/v1/b.json").status == 200)
    await server.service.stop()
  }

  @Test("warns at the start and at each reading of key sets that no document uses")
  func unusedKeySets() async throws {
    let server = try ScriptedService(keys: Self.one)
    let directory = server.directory.file("keysets")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    try Data("[]".utf8).write(to: directory.appending(path: "b"))
    func told() -> Int { server.log.events("key_sets_unused").count }
    try await server.start()
    #expect(told() == 1)
    try await server.reload(keys: Self.two)
    #expect(told() == 2)
    let message = server.log.events("key_sets_unused").last?["message"]?.stringValue
    #expect(message?.contains("no document is called b,") == true)
    #expect(message?.contains("was b.json meant?") == true)
    try FileManager.default.removeItem(at: directory.appending(path: "b"))
    try await server.reload(keys: Self.one)
    #expect(told() == 2)
    await server.service.stop()
  }

  @Test("says that a reading failed under whose key sets a document cannot be signed")
  func brokenKeySets() async throws {
    let server = try ScriptedService(keys: Self.one, more: "publish: {key_sets: \"DIR/keysets\"}")
    server.observer.show(.accepted(pin(1)), at: "a.test")
    let directory = server.directory.file("keysets")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    try await server.start()
    let file = directory.appending(path: "a.json")
    try Data("[".utf8).write(to: file)
    try await server.reads(successfully: false)
    try FileManager.default.removeItem(at: file)
    try await server.reads(successfully: true)
    await server.service.stop()
  }

  @Test("a server that follows stops without a word, whatever its own configuration says")
  func followerStops() async throws {
    let storage = "{type: sqlite, dsn: DIR/registry.db}"
    let keys = ["a", "b"].map { "{fqdn: \($0).test, file: all.json}" }
    let leader = try ScriptedService(
      keys: "[\(keys.joined(separator: ", "))]", storage: storage)
    for (number, host) in ["a.test", "b.test"].enumerated() {
      leader.observer.show(.accepted(pin(UInt8(number + 1))), at: host)
    }
    try await leader.start()
    let document = try #require(leader.service.currentDocument("all.json"))
    let asking = "{fqdn: a.test, file: all.json, ca: [\"\(pin(101).base64)\"]}"
    let follower = try ScriptedService(keys: "[\(asking)]", storage: storage, sharing: leader)
    try await follower.start(isLeading: false)
    await follower.service.stop()
    #expect(follower.service.currentDocument("all.json")?.bytes == document.bytes)
    await leader.service.stop()
    #expect(leader.service.currentDocument("all.json")?.bytes == document.bytes)
  }

  @Test("an endpoint that leaves keeps its history, and is an alert until it is back")
  func left() async throws {
    let both = "[{fqdn: a.test, file: all.json}, {fqdn: b.test, file: all.json}]"
    let server = try ScriptedService(keys: both)
    server.observer.show(.accepted(pin(1)), at: "a.test")
    server.observer.show(.accepted(pin(2)), at: "b.test")
    try await server.start()
    #expect(server.service.currentDocument("all.json") != nil)
    try await server.reload(keys: "[{fqdn: a.test, file: all.json}]")
    #expect(
      server.log.events("endpoint_left").compactMap { $0["endpoint"]?.stringValue }.count == 1)
    #expect(try await server.alerts() == ["left-configuration"])
    try await server.reload(keys: both)
    #expect(try await server.waits(forAlerts: []))
    #expect(
      await eventually {
        let bytes = server.service.currentDocument("all.json")?.bytes ?? []
        return String(decoding: bytes, as: UTF8.self).contains(pin(2).base64)
      })
    #expect(try await server.pins(in: "all.json")["b.test"] == [pin(2)])
    await server.service.stop()
  }

  @Test("a document that leaves is an alert until it is back, also after a restart")
  func leftDocument() async throws {
    let storage = "{type: sqlite, dsn: DIR/registry.db}"
    let server = try ScriptedService(keys: Self.two, storage: storage)
    server.observer.show(.accepted(pin(1)), at: "a.test")
    server.observer.show(.accepted(pin(2)), at: "b.test")
    try await server.start()
    #expect(try await server.alerts() == [])
    try await server.reload(keys: Self.one)
    #expect(try await server.waits(forAlerts: ["left-configuration"]))
    await server.service.stop()
    let next = try ScriptedService(keys: Self.one, storage: storage, sharing: server)
    next.observer.show(.accepted(pin(1)), at: "a.test")
    next.observer.show(.accepted(pin(2)), at: "b.test")
    try await next.start()
    #expect(try await next.waits(forAlerts: ["left-configuration"]))
    try await next.reload(keys: Self.two)
    #expect(try await next.waits(forAlerts: []))
    await next.service.stop()
  }

  @Test(
    "leaves everything as it was where anything in it cannot be used",
    arguments: [
      (server: ", certificate: DIR/none.pem, private_key: DIR/none.pem", more: "", damages: ""),
      (server: ", certificate: DIR/pub.pem, private_key: DIR/prv.pem", more: "", damages: ""),
      (server: "", more: "", damages: "prv.pem"),
    ])
  func unusable(_ trouble: (server: String, more: String, damages: String)) async throws {
    let server = try ScriptedService(keys: Self.one)
    server.observer.show(.accepted(pin(1)), at: "a.test")
    server.observer.show(.accepted(pin(2)), at: "b.test")
    try await server.start()
    if !trouble.damages.isEmpty { try server.directory.write("no key", to: trouble.damages) }
    await #expect(throws: RegistryServiceError.self) {
      try await server.reload(keys: Self.two, server: trouble.server, more: trouble.more)
    }
    #expect(try await server.get("/api/v1/b.json").status == 404)
    server.observer.show(.accepted(pin(3)), at: "a.test")
    await server.service.probe("a.test")
    #expect(try await server.pins(in: "a.json")["a.test"] == [pin(1), pin(3)])
    #expect(server.log.events("configuration_changed").isEmpty)
    await server.service.stop()
  }

  @Test("publishes nothing of a document that has gone, nor of one whose record is damaged")
  func unserved() async throws {
    let storage = "{type: fs, dump_dir: \"DIR/state\"}"
    let server = try ScriptedService(keys: Self.two, storage: storage)
    server.observer.show(.accepted(pin(1)), at: "a.test")
    server.observer.show(.accepted(pin(2)), at: "b.test")
    try await server.start()
    #expect(try await server.get("/api/v1/b.json").status == 200)
    try await server.reload(keys: Self.one, storage: storage)
    #expect(try await server.get("/api/v1/b.json").status == 404)
    try FileManager.default.createDirectory(
      at: server.directory.file("state/records/c.json"), withIntermediateDirectories: true)
    try server.directory.write("damaged", to: "state/records/c.json/record")
    #expect(server.service.currentDocument("b.json") == nil)
    try await server.reload(
      keys: "[{fqdn: a.test, file: a.json}, {fqdn: b.test, file: b.json}, "
        + "{fqdn: c.test, file: c.json}]", storage: storage)
    #expect(try await server.get("/api/v1/b.json").status == 200)
    #expect(server.service.currentDocument("c.json") == nil)
    #expect(server.log.events("seal_broken").compactMap { $0["file"]?.stringValue } == ["c.json"])
    await server.service.stop()
  }

  @Test("shows the certificate that has come under the old name, and drops no connection")
  func certificate() async throws {
    let authority = try CertificateAuthority.makeRoot(name: "Listener Root")
    let server = try ScriptedService(
      keys: Self.one, server: ", certificate: DIR/site.pem, private_key: DIR/site.key")
    func install(_ validity: Validity? = nil) throws -> ServerIdentity {
      let identity =
        try validity.map { try authority.issue(names: ["site.test"], validity: $0) }
        ?? authority.issue(names: ["site.test"])
      try server.directory.write(identity.certificateChainPEM, to: "site.pem")
      try server.directory.write(identity.keyPEM, to: "site.key")
      return identity
    }
    func shown() async throws -> SPKIPin? {
      let port = try #require(server.service.address).port
      let probe = try TLSProbe(anchors: try ChainValidator(anchors: [authority.root]))
      let target = try ProbeTarget(host: "site.test", port: port, connectTo: [.loopback(port)])
      return try await probe.probe(target).presented.first?.pin
    }
    /// When it ends, as metrics tell it.
    func end() throws -> Int64? {
      let page = try PrometheusPage(server.service.metrics.exposition(at: 0))
      return page.samples["ssl_pinning_listener_certificate_ends_timestamp_seconds"]
        .map { Int64($0) }
    }
    let old = try install()
    #expect(try end() == nil)
    try await server.start()
    #expect(try await shown() == SPKIPin(certificateDER: old.leaf.der))
    var validity = try #require(old.leaf.validity)
    #expect(try end() == validity.notAfter)
    validity.notAfter -= 3600
    let new = try install(validity)
    try await server.reload(
      keys: Self.one, server: ", certificate: DIR/site.pem, private_key: DIR/site.key")
    #expect(try await shown() == SPKIPin(certificateDER: new.leaf.der))
    #expect(try end() == validity.notAfter)
    await server.service.stop()
  }

  @Test("the end of the listener's certificate is told wherever an operator looks, until renewed")
  func certificateEnd() async throws {
    let settings = ", certificate: DIR/site.pem, private_key: DIR/site.key"
    let server = try ScriptedService(keys: Self.one, server: settings)
    let (now, day) = (server.clock.now(), Int64(86_400))
    let authority = try CertificateAuthority.makeRoot(
      name: "Listener Root", validity: .days(1000, from: now))
    func install(ending left: Int64) throws {
      let identity = try authority.issue(
        names: ["site.test"], validity: Validity(notBefore: now - day, notAfter: now + left))
      try server.directory.write(identity.certificateChainPEM, to: "site.pem")
      try server.directory.write(identity.keyPEM, to: "site.key")
    }
    /// That it is told, and whether as an outage; `config check` and the probes say the same.
    func told() async throws -> [String] {
      let report = server.service.health.facts(of: server.service.documents).readiness
      let trial = try await ConfigurationTrial(server.configuration, at: server.clock.now())
      let isOfListener: (String) -> Bool = { $0.contains("the server's own listener ") }
      #expect(report.reasons.filter(isOfListener) == trial.warnings.filter(isOfListener))
      return report.kinds.filter { $0 == .listener }.map(\.rawValue)
        + [server.service.health.listenerEnd].compactMap { $0.map { "\($0.isRefusing)" } }
    }
    try install(ending: 8 * day)
    try await server.start()
    #expect(try await told() == [])
    server.clock.advance(day + 1)
    #expect(try await told() == ["listener", "false"])
    server.clock.advance(7 * day)
    #expect(try await told() == ["listener", "true"])
    try install(ending: 12 * day)
    try await server.reload(keys: Self.one, server: settings)
    #expect(try await told() == ["listener", "false"])
    #expect(server.log.events("listener_certificate_ends").count == 1)
    try install(ending: 90 * day)
    try await server.reload(keys: Self.one, server: settings)
    #expect(try await told() == [])
    await server.service.stop()
  }

  @Test("goes by another read time-out from the next request on")
  func readTimeout() async throws {
    let server = try ScriptedService(keys: Self.one, server: ", read_timeout: 10m")
    try await server.start()
    let address = try #require(server.service.address)
    try await server.reload(keys: Self.one, server: ", read_timeout: 200ms")
    let slow = try RawConnection(address)
    slow.send("GET /livez HTTP/1.1\r\n")
    // Ten minutes, if the old one were in force: longer than this test may take.
    #expect(try await slow.readToEnd() == "")
    await server.service.stop()
  }
}

extension ScriptedService {
  /// The kinds of the alerts that last.
  func waits(forAlerts wanted: [String]) async throws -> Bool {
    for _ in 0..<200 {
      if try await alerts() == wanted { return true }
      // why: the page of metrics is made once a second.
      try await Task.sleep(nanoseconds: 50_000_000)
    }
    return false
  }

  func alerts() async throws -> [String] {
    let page = String(decoding: try await get("/metrics").body, as: UTF8.self)
    return page.split(separator: "\n").compactMap { line in
      let parts = line.split(separator: "\"")
      guard line.hasPrefix("ssl_pinning_alerts{"), parts.count == 3, parts[2] != "} 0" else {
        return nil
      }
      return String(parts[1])
    }
  }
}

extension ScriptedService {
  /// Reads its configuration again, and waits for the metric that tells what came of it.
  fileprivate func reads(successfully isGood: Bool) async throws {
    await service.readAgain { () throws(ConfigurationError) in configuration }
    let line = "ssl_pinning_configuration_reload_success \(isGood ? 1 : 0)\n"
    var page = ""
    for _ in 0..<200 {
      page = String(decoding: try await get("/metrics").body, as: UTF8.self)
      if page.contains(line) { break }
      // why: the page of metrics is made once a second.
      try await Task.sleep(nanoseconds: 50_000_000)
    }
    #expect(page.contains(line))
  }
}
