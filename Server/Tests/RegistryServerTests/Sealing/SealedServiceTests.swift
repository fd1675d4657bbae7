import CanonicalJSON
import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@testable import RegistryCore
@testable import RegistryServer
@testable import RegistryStores

/// Broken seals under a running service, on every store that somebody else can write to.
@Suite("A service whose store was changed by somebody", .timeLimit(.minutes(3)))
struct SealedServiceTests {
  static let host = "www.example.com"
  static let file = "www.example.com.json"

  /// What somebody does to the record of the document.
  enum Edit: String, CaseIterable, Sendable {
    case flippedByte, replayedRow

    func bytes(_ first: [UInt8], _ now: [UInt8]) -> [UInt8] {
      guard self == .flippedByte else { return first }
      var bytes = now
      bytes[bytes.count - 20] ^= 1
      return bytes
    }
  }

  /// A running service, and a second handle on its store.
  static func stage(
    _ kind: StoreKind, more: String = ""
  ) async throws -> (server: ScriptedService, base: any RegistryStore, yaml: String, ground: Any?) {
    let (yaml, ground) = try await StoredServiceTests.storage(kind)
    let server = try ScriptedService(storage: yaml, more: more)
    server.observer.show(.accepted(pin(1)), at: host)
    try await server.start()
    await server.service.probe(host)
    let text = yaml.replacing("DIR", with: server.directory.path())
    let base = try configuration("keys: [{fqdn: a.b}]\nstorage: \(text)").storage.open()
    return (server, base, yaml, ground)
  }

  @Test(
    "serves what was published last, decides and signs nothing, says so, and goes on after a reset",
    arguments: StoreKind.shared, Edit.allCases)
  func edited(_ kind: StoreKind, _ edit: Edit) async throws {
    let (server, base, yaml, ground) = try await Self.stage(kind)
    let first = try #require(try await base.record(named: Self.file))
    server.observer.show(.accepted(pin(2)), at: Self.host)
    await server.service.probe(Self.host)
    #expect(try await server.pins(in: Self.file)[Self.host] == [pin(1), pin(2)])
    let published = try await server.get("/api/v1/\(Self.file)").body
    let record = try #require(try await base.record(named: Self.file))
    let bytes = edit.bytes(first.bytes, record.bytes)
    _ = try await base.replace(Self.file, version: record.version, with: bytes)
    #expect(await eventually { server.log.events("seal_broken").count == 1 })
    server.observer.show(.accepted(pin(3)), at: Self.host)
    await server.service.probe(Self.host)
    server.clock.advance(2 * DocumentSigner.renewal)
    await server.service.probe(Self.host)
    try await Self.expectHeld(server, published, kind: "seal", alert: "seal-broken")
    let refused = try await AdministeredService(scripted: server).call(
      "POST", "/denials", #"{"pin": "\#(pin(1).base64)", "why": "leaked"}"#)
    #expect(refused.status == 503)
    #expect(try await base.record(named: Self.file)?.bytes == bytes)
    await server.service.stop()

    // A server that starts on it: no first sight.
    let second = try ScriptedService(storage: yaml, sharing: server)
    second.observer.show(.accepted(pin(3)), at: Self.host)
    try await second.start()
    await second.service.probe(Self.host)
    // The row that was played back has the document of its time in it; what is signed is served.
    let expected = edit == .flippedByte ? published : nil
    try await Self.expectHeld(second, expected, kind: "seal", alert: "seal-broken")
    let repair = try StoreRepair(second.configuration)
    let told = try await repair.reset(Self.file, to: .anew, at: second.clock.now())
    #expect(told.contains("begins anew from the document that was signed at"))
    await repair.close()
    #expect(await eventually { second.log.events("store_believed").count == 1 })
    await second.service.probe(Self.host)
    let healed = try await second.pins(in: Self.file)[Self.host] ?? []
    #expect(Set(healed) == (edit == .flippedByte ? [pin(1), pin(2), pin(3)] : [pin(1), pin(3)]))
    #expect(try await second.get("/readyz").status == 200)
    await second.service.stop()
    await base.close()
    withExtendedLifetime(ground) {}
  }

  /// That a service serves this, is not ready, alerts, and does not probe to decide.
  static func expectHeld(
    _ server: ScriptedService, _ published: [UInt8]?, kind: String, alert: String,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    let document = try await server.get("/api/v1/\(file)")
    #expect(document.status == 200, sourceLocation: sourceLocation)
    if let published { #expect(document.body == published, sourceLocation: sourceLocation) }
    #expect(
      !String(decoding: document.body, as: UTF8.self).contains(pin(3).base64),
      sourceLocation: sourceLocation)
    let ready = try await server.get("/readyz")
    #expect(ready.status == 503, sourceLocation: sourceLocation)
    let reasons = try JSONValue(parsing: ready.body).objectValue?["reasons"]?.arrayValue
    #expect(reasons?.contains(.string(kind)) == true, sourceLocation: sourceLocation)
    let overview = try await AdministeredService(scripted: server).call("GET", "/overview")
    #expect(overview["alerts", "0", "kind"] == .string(alert), sourceLocation: sourceLocation)
  }

  @Test("goes on where a backup is restored, with what it denied since, and tells")
  func restoredBackup() async throws {
    let (server, base, _, _) = try await Self.stage(.sqlite)
    let old = try #require(try await base.record(named: Self.file))
    try await AdministeredService(scripted: server).call(
      "POST", "/denials", #"{"pin": "\#(pin(9).base64)", "why": "leaked"}"#)
    let path = server.directory.path("registry.db")
    let connection = try SQLiteConnection(path: path)
    _ = try connection.change(
      "UPDATE records SET version = ?, bytes = ? WHERE name = ?",
      [.integer(old.version), .blob(old.bytes), .text(Self.file)])
    #expect(await eventually { server.log.events("store_went_back").count == 1 })
    #expect(server.log.events("seal_broken").isEmpty)
    await server.service.probe(Self.host)
    let denials = try await AdministeredService(scripted: server).call("GET", "/denials")
    #expect(denials["denials", "0", "pin"] == .string(pin(9).base64))
    #expect(try await server.get("/readyz").status == 200)
    await server.service.stop()
    await base.close()
  }

  @Test(
    "writes again what vanished while it runs; a server that starts takes it for no first sight")
  func vanished() async throws {
    let (server, base, yaml, _) = try await Self.stage(.sqlite)
    let connection = try SQLiteConnection(path: server.directory.path("registry.db"))
    _ = try connection.change("DELETE FROM records WHERE name = ?", [.text(Self.file)])
    #expect(await eventually { server.log.events("store_went_back").count == 1 })
    await server.service.probe(Self.host)
    #expect(try await base.record(named: Self.file) != nil)
    await server.service.stop()
    _ = try connection.change("DELETE FROM records WHERE name = ?", [.text(Self.file)])
    let second = try ScriptedService(storage: yaml, sharing: server)
    second.observer.show(.accepted(pin(3)), at: Self.host)
    try await second.start()
    await second.service.probe(Self.host)
    #expect(second.log.events("seal_broken").count == 1)
    #expect(try await second.get("/api/v1/\(Self.file)").status == 503)
    #expect(try await second.get("/readyz").status == 503)
    await second.service.stop()
    await base.close()
  }

  @Test("refuses a store whose seal was removed as a whole: this server has sealed it")
  func unsealedBySomebody() async throws {
    let (server, base, yaml, _) = try await Self.stage(.sqlite)
    await server.service.stop()
    let record = try #require(try await base.record(named: Self.file))
    let content = try #require(SealedRecord(parsing: record.bytes)).content
    _ = try await base.replace(Self.file, version: record.version, with: content)
    let connection = try SQLiteConnection(path: server.directory.path("registry.db"))
    _ = try connection.change("DELETE FROM records WHERE name = '.store'", [])
    let second = try ScriptedService(storage: yaml, sharing: server)
    second.observer.show(.accepted(pin(3)), at: Self.host)
    // It does not lead.
    try await second.start(isLeading: false)
    await second.service.probe(Self.host)
    try await Self.expectHeld(second, nil, kind: "seal", alert: "seal-broken")
    await second.service.stop()
    // A server that never saw it cannot know: it is believed once, which the log says.
    try FileManager.default.removeItem(at: server.directory.file("sealed-store"))
    let third = try ScriptedService(storage: yaml, sharing: server)
    third.observer.show(.accepted(pin(1)), at: Self.host)
    try await third.start()
    #expect(third.log.events("store_sealed").count == 1)
    #expect(try await third.get("/readyz").status == 200)
    await third.service.stop()
    await base.close()
  }

  @Test("goes on where the store's own record was changed, and is found out anew")
  func ownRecord() async throws {
    let (server, base, yaml, _) = try await Self.stage(.sqlite)
    await server.service.stop()
    let identity = try #require(try await base.record(named: ".store"))
    var bytes = identity.bytes
    bytes[bytes.count - 5] ^= 1
    _ = try await base.replace(".store", version: identity.version, with: bytes)
    let second = try ScriptedService(storage: yaml, sharing: server)
    second.observer.show(.accepted(pin(3)), at: Self.host)
    try await second.start(isLeading: false)
    #expect(second.log.events("store_not_believed").count == 1)
    await second.service.probe(Self.host)
    try await Self.expectHeld(second, nil, kind: "seal", alert: "seal-broken")
    let repair = try StoreRepair(second.configuration)
    await #expect(throws: StoreRepairError.self) {
      try await repair.reset(".store", to: .anew, at: 0)
    }
    await #expect(throws: StoreRepairError.self) {
      try await repair.reset(Self.file, to: .take, at: 0)
    }
    _ = try await repair.reset(".store", to: .take, at: 0)
    await repair.close()
    #expect(await eventually { second.log.events("store_believed").count == 1 })
    #expect(await eventually { second.log.events("leading").count == 1 })
    #expect(try await second.pins(in: Self.file)[Self.host]?.contains(pin(1)) == true)
    #expect(try await second.get("/readyz").status == 200)
    await second.service.stop()
    await base.close()
  }

  @Test("takes a copy in publish.dir that is newer than what the store has for what was published")
  func behindItsCopy() async throws {
    let (server, base, yaml, _) = try await Self.stage(
      .sqlite, more: "publish: {dir: 'DIR/public'}")
    let old = try #require(try await base.record(named: Self.file))
    server.observer.show(.accepted(pin(2)), at: Self.host)
    await server.service.probe(Self.host)
    try await AdministeredService(scripted: server).call(
      "POST", "/denials", #"{"pin": "\#(pin(9).base64)", "why": "leaked"}"#)
    await server.service.stop()
    let published = try #require(server.service.currentDocument(Self.file))
    let connection = try SQLiteConnection(path: server.directory.path("registry.db"))
    _ = try connection.change(
      "UPDATE records SET version = ?, bytes = ? WHERE name = ?",
      [.integer(old.version), .blob(old.bytes), .text(Self.file)])
    let second = try ScriptedService(
      storage: yaml, more: "publish: {dir: 'DIR/public'}", sharing: server)
    second.observer.show(.accepted(pin(1)), at: Self.host)
    try await second.start()
    #expect(second.log.events("store_went_back").count == 1)
    #expect(try await second.pins(in: Self.file)[Self.host] == [pin(1), pin(2)])
    let document = try #require(second.service.currentDocument(Self.file))
    #expect(try #require(document.number) >= #require(published.number))
    let denials = try await AdministeredService(scripted: second).call("GET", "/denials")
    #expect(denials["denials", "0", "pin"] == .string(pin(9).base64))
    await second.service.stop()
    await base.close()
  }
}

/// A store that keeps nothing, over a restart.
@Suite("A service in memory") struct ForgetfulServiceTests {
  static let file = SealedServiceTests.file
  static let host = SealedServiceTests.host

  @Test(
    "goes by the copy in publish.dir after a restart: what an endpoint shows then is no first sight"
  )
  func copy() async throws {
    let more = "publish: {dir: 'DIR/public'}"
    let first = try ScriptedService(more: more)
    first.observer.show(.accepted(pin(1)), at: Self.host)
    try await first.start()
    await first.service.stop()
    #expect(first.log.events("storage_forgets").isEmpty)
    let before = try #require(first.service.currentDocument(Self.file))
    let second = try ScriptedService(more: more, sharing: first)
    second.observer.show(.unreachable(reason: "test"), at: Self.host)
    try await second.start()
    #expect(second.log.events("last_copy_taken").count == 1)
    #expect(try await second.pins(in: Self.file)[Self.host] == [pin(1)])
    #expect(
      try #require(second.service.currentDocument(Self.file)?.number) >= #require(before.number))
    // A key under some CA, which no key of the copy was seen under: it waits for a person.
    let leaf = SeenCertificate(pin: pin(2))
    let issuer = SeenCertificate(pin: pin(8))
    second.observer.show(
      ProbeResult(observations: [
        ProbeObservation(outcome: .accepted(SeenChain(leaf: leaf, above: [issuer])))
      ]), at: Self.host)
    await second.service.probe(Self.host)
    await second.service.probe(Self.host)
    #expect(try await second.pins(in: Self.file)[Self.host] == [pin(1)])
    await second.service.stop()
  }

  @Test(
    "keeps out what the copy says is removed, though the configuration names it, until somebody adds it"
  )
  func removed() async throws {
    let (more, gone) = ("publish: {dir: 'DIR/public'}", "gone.example")
    let keys = "[{fqdn: \(Self.host), file: \(Self.file)}, {fqdn: \(gone), file: \(Self.file)}]"
    let first = try ScriptedService(keys: keys, more: more)
    for host in [Self.host, gone] { first.observer.show(.accepted(pin(1)), at: host) }
    try await first.start()
    for host in [Self.host, gone] { await first.service.probe(host) }
    let endpoints = "/documents/\(Self.file)/endpoints"
    try await AdministeredService(scripted: first).call(
      "POST", "\(endpoints)/\(gone)%3A443/remove", #"{"why": "hijacked"}"#)
    await first.service.stop()
    let second = try ScriptedService(keys: keys, more: more, sharing: first)
    second.observer.show(.accepted(pin(1)), at: Self.host)
    second.observer.show(.accepted(pin(9)), at: gone)
    try await second.start()
    for host in [Self.host, gone] { await second.service.probe(host) }
    let pins = try await second.pins(in: Self.file)
    #expect(pins[Self.host] == [pin(1)] && pins[gone] == nil)
    #expect(
      second.log.events("endpoint_taken_out").map { $0["endpoint"] } == [.string("\(gone):443")])
    let told = second.log.events("endpoint_taken_out").first?["message"]?.stringValue
    #expect(told?.contains("its hosts were removed in the last published copy") == true)
    try await AdministeredService(scripted: second).call(
      "POST", endpoints, #"{"fqdn": "\#(gone)"}"#)
    await second.service.probe(gone)
    #expect(try await second.pins(in: Self.file)[gone] == [pin(9)])
    await second.service.stop()
  }

  @Test(
    "that has a document under another name from its start on goes by the copy under the old one, and denies nothing by it later"
  )
  func renamed() async throws {
    let more = "publish: {dir: 'DIR/public'}"
    func keys(_ file: String) -> String { "[{fqdn: \(Self.host), file: \(file)}]" }
    func show(_ key: UInt8, under authority: UInt8, to server: ScriptedService) async {
      server.observer.show(
        LedgerBench.probe([(LedgerBench.here, "", .key(key, under: authority))]), at: Self.host)
      for _ in 0..<4 { await server.service.probe(Self.host) }
    }
    func denied(in server: ScriptedService) throws -> JSONValue? {
      let bytes = try #require(server.service.currentDocument("new.json")?.bytes)
      return try JSONValue(parsing: bytes).objectValue?["statement"]?.objectValue?["denied"]
    }
    let first = try ScriptedService(keys: keys("old.json"), more: more)
    try await first.start()
    await show(1, under: 101, to: first)
    let denial = #"{"pin": "\#(pin(9).base64)", "why": "leaked"}"#
    try await AdministeredService(scripted: first).call("POST", "/denials", denial)
    await first.service.stop()
    let second = try ScriptedService(keys: keys("new.json"), more: more, sharing: first)
    try await second.start()
    #expect(second.log.events("document_left").map { $0["file"] } == ["old.json"])
    await show(2, under: 109, to: second)
    #expect(second.service.currentDocument("new.json") == nil)
    await show(1, under: 101, to: second)
    #expect(try await second.pins(in: "new.json")[Self.host] == [pin(1)])
    #expect(try denied(in: second) == .array([.string(pin(9).base64)]))
    // What is allowed since stays allowed: by then the document has a newer copy of its own.
    try await AdministeredService(scripted: second).call("POST", "/allowances", denial)
    await second.service.stop()
    for other in ["new.json", "newest.json"] {
      let third = try ScriptedService(
        keys: "[{fqdn: \(Self.host), file: new.json}, {fqdn: o.example, file: \(other)}]",
        more: more,
        sharing: second)
      for host in [Self.host, "o.example"] { third.observer.show(.accepted(pin(1)), at: host) }
      try await third.start()
      for host in [Self.host, "o.example"] { await third.service.probe(host) }
      #expect(try denied(in: third) == .array([]))
      #expect(third.log.events("document_left").count == 1)
      await third.service.stop()
    }
  }

  @Test(
    "has a key that waits in a document of which only a copy is left wait at every start, whatever the store has",
    arguments: [false, true])
  func merged(isStored: Bool) async throws {
    let more = "publish: {dir: 'DIR/public'}"
    let storage = isStored ? "{type: sqlite, dsn: DIR/registry.db}" : "{type: memory}"
    func start(_ file: String, after last: ScriptedService? = nil) async throws -> ScriptedService {
      let server = try ScriptedService(
        keys: "[{fqdn: \(Self.host), file: \(file)}, {fqdn: o.example, file: new.json}]",
        storage: storage, more: more, sharing: last)
      server.observer.show(
        LedgerBench.probe([(LedgerBench.here, "", .key(1, under: 101))]), at: "o.example")
      try await server.start()
      for _ in 0..<4 { await server.service.probe("o.example") }
      return server
    }
    func show(_ key: UInt8, under authority: UInt8, to server: ScriptedService) async {
      server.observer.show(
        LedgerBench.probe([(LedgerBench.here, "", .key(key, under: authority))]), at: Self.host)
      for _ in 0..<4 { await server.service.probe(Self.host) }
    }
    let first = try await start("old.json")
    await show(1, under: 101, to: first)
    await first.service.stop()
    for name in ["registry.db", "registry.db-wal", "registry.db-shm"] where isStored {
      try? FileManager.default.removeItem(at: first.directory.file(name))
    }
    var last = first
    for _ in 0..<2 {
      let next = try await start("new.json", after: last)
      #expect(next.log.events("document_left").map { $0["file"] } == ["old.json"])
      await show(2, under: 109, to: next)
      #expect(try await next.pins(in: "new.json")[Self.host] == nil)
      await next.service.stop()
      last = next
    }
    let next = try await start("new.json", after: last)
    await show(1, under: 101, to: next)
    #expect(try await next.pins(in: "new.json")[Self.host] == [pin(1)])
    await next.service.stop()
  }

  @Test("denies what the copy under another name denied, if that is newer than its own")
  func renamedBack() async throws {
    func start(_ file: String, after last: ScriptedService? = nil) async throws -> ScriptedService {
      let server = try ScriptedService(
        keys: "[{fqdn: \(Self.host), file: \(file)}]", more: "publish: {dir: 'DIR/public'}",
        sharing: last)
      server.clock.advance(60)
      server.observer.show(.accepted(pin(1)), at: Self.host)
      try await server.start()
      await server.service.probe(Self.host)
      return server
    }
    func denied(in server: ScriptedService) throws -> JSONValue? {
      let bytes = try #require(server.service.currentDocument("old.json")?.bytes)
      return try JSONValue(parsing: bytes).objectValue?["statement"]?.objectValue?["denied"]
    }
    let denial = #"{"pin": "\#(pin(9).base64)", "why": "leaked"}"#
    let first = try await start("old.json")
    await first.service.stop()
    let second = try await start("new.json", after: first)
    try await AdministeredService(scripted: second).call("POST", "/denials", denial)
    await second.service.stop()
    let third = try await start("old.json", after: second)
    #expect(third.log.events("document_left").map { $0["file"] } == ["new.json"])
    #expect(try denied(in: third) == .array([.string(pin(9).base64)]))
    third.clock.advance(60)
    try await AdministeredService(scripted: third).call("POST", "/allowances", denial)
    await third.service.stop()
    let fourth = try await start("old.json", after: third)
    #expect(try denied(in: fourth) == .array([]))
    await fourth.service.stop()
  }

  @Test("tells once that what the copy under another name says is removed would be watched again")
  func removedAndRenamed() async throws {
    let gone = "gone.example"
    func start(_ file: String, after last: ScriptedService? = nil) async throws -> ScriptedService {
      let server = try ScriptedService(
        keys: "[{fqdn: \(Self.host), file: \(file)}, {fqdn: \(gone), file: \(file)}]",
        more: "publish: {dir: 'DIR/public'}", sharing: last)
      for host in [Self.host, gone] { server.observer.show(.accepted(pin(1)), at: host) }
      try await server.start()
      for host in [Self.host, gone] { await server.service.probe(host) }
      return server
    }
    let first = try await start("old.json")
    try await AdministeredService(scripted: first).call(
      "POST", "/documents/old.json/endpoints/\(gone)%3A443/remove", #"{"why": "hijacked"}"#)
    await first.service.stop()
    let second = try await start("new.json", after: first)
    let told = second.log.events("words_left").compactMap { $0["message"]?.stringValue }
    #expect(told.count == 1 && told[0].contains("\(gone):443 was taken out"))
    await second.service.stop()
    let third = try await start("new.json", after: second)
    #expect(third.log.events("words_left").isEmpty)
    await third.service.stop()
  }

  @Test("says loudly at its start that it forgets, where nothing else remembers")
  func loud() async throws {
    let server = try ScriptedService()
    server.observer.show(.accepted(pin(1)), at: Self.host)
    try await server.start()
    let warnings = server.log.events("storage_forgets")
    #expect(warnings.count == 1 && warnings.first?["level"] == "warn")
    await server.service.stop()
  }

  @Test("does not go by a copy that somebody changed, nor by one of another key")
  func changedCopy() async throws {
    let more = "publish: {dir: 'DIR/public'}"
    let first = try ScriptedService(more: more)
    first.observer.show(.accepted(pin(1)), at: Self.host)
    try await first.start()
    await first.service.stop()
    let path = "public/" + Self.file
    let good = try String(contentsOf: first.directory.file(path), encoding: .utf8)
    for bad in [
      good.replacing(pin(1).base64, with: pin(3).base64),
      good.replacing("\"denied\":[]", with: "\"denied\":[\"\(pin(1).base64)\"]"),
      good.replacing("\"registry\":\"\(Self.file)\"", with: "\"registry\":\"b.json\""),
    ] {
      #expect(bad != good)
      try first.directory.write(bad, to: path)
      let second = try ScriptedService(more: more, sharing: first)
      second.observer.show(.unreachable(reason: "test"), at: Self.host)
      try await second.start()
      #expect(second.log.events("last_copy_taken").isEmpty)
      #expect(second.service.currentDocument(Self.file) == nil)
      await second.service.stop()
    }
  }
}
