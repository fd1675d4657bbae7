import CanonicalJSON
import Foundation
import SslPinningPlatform
import SslPinningRules
import TestSupport
import Testing

@testable import RegistryCore
@testable import RegistryServer
@testable import RegistryStores

/// Somebody who can write to the store's database, and has what was in it before: every seal is good.
@Suite("A service whose store is taken back", .timeLimit(.minutes(3)))
struct ReplayedStoreTests {
  static let file = SealedServiceTests.file
  static let host = SealedServiceTests.host

  /// A running service over SQLite, and a second connection to its database.
  struct Stage {
    let server: ScriptedService
    let base: any RegistryStore
    let yaml: String
    let connection: SQLiteConnection

    init(more: String = "") async throws {
      (server, base, yaml, _) = try await SealedServiceTests.stage(.sqlite, more: more)
      connection = try SQLiteConnection(path: server.directory.path("registry.db"))
    }

    func record(_ name: String = ReplayedStoreTests.file) async throws -> StoredRecord {
      try #require(try await base.record(named: name))
    }

    /// Waits until the record says that one came back so often.
    func hasReturned(_ times: Int) async throws -> Bool {
      for _ in 0..<12_000 {
        if let stored = try await base.record(named: ReplayedStoreTests.file),
          let sealed = SealedRecord(parsing: stored.bytes),
          try DocumentState(decoding: sealed.content, file: ReplayedStoreTests.file).returns
            == times
        {
          return true
        }
        // why: the server writes by itself; a bare loop would keep its thread.
        try await Task.sleep(nanoseconds: 5_000_000)
      }
      return false
    }

    func delete(_ name: String = ReplayedStoreTests.file) throws {
      _ = try connection.change("DELETE FROM records WHERE name = ?", [.text(name)])
    }

    func put(_ record: StoredRecord, _ name: String = ReplayedStoreTests.file) throws {
      try delete(name)
      _ = try connection.change(
        "INSERT INTO records (name, version, bytes) VALUES (?, ?, ?)",
        [.text(name), .integer(record.version), .blob(record.bytes)])
    }

    func deny(_ key: SPKIPin) async throws {
      let answer = try await AdministeredService(scripted: server).call(
        "POST", "/denials", #"{"pin": "\#(key.base64)", "why": "leaked", "force": true}"#)
      try #require(answer.status < 300)
    }

    /// The next server on the store, which shows that key at the endpoint.
    func next(_ key: SPKIPin, isLeading: Bool, more: String = "") async throws -> ScriptedService {
      let next = try ScriptedService(storage: yaml, more: more, sharing: server)
      next.observer.show(.accepted(key), at: ReplayedStoreTests.host)
      try await next.start(isLeading: isLeading)
      await next.service.probe(ReplayedStoreTests.host)
      return next
    }

    func end() async {
      await server.service.stop()
      await base.close()
    }
  }

  static func denied(_ server: ScriptedService, _ file: String = file) throws -> [String] {
    let bytes = try #require(server.service.currentDocument(file)).bytes
    let statement = try JSONValue(parsing: bytes).objectValue?["statement"]?.objectValue
    return statement?["denied"]?.arrayValue?.compactMap(\.stringValue) ?? []
  }

  @Test("keeps a denial, and takes no key back, however often and in whichever order rows go back")
  func severalRestores() async throws {
    let stage = try await Stage()
    let server = stage.server
    server.observer.show(.accepted(pin(2)), at: Self.host)
    await server.service.probe(Self.host)
    let first = try await stage.record()
    try await stage.deny(pin(1))
    let second = try await stage.record()
    let rows = [nil, first, nil, second, first, nil, first]
    for (index, older) in rows.enumerated() {
      if let older { try stage.put(older) } else { try stage.delete() }
      #expect(await eventually { server.log.events("store_went_back").count == index + 1 })
      await server.service.probe(Self.host)
      // Told before it is stored: the next row must not come between.
      #expect(try await stage.hasReturned(index + 1))
      #expect(try Self.denied(server) == [pin(1).base64])
      #expect(try await server.pins(in: Self.file)[Self.host] == [pin(2)])
    }
    let last = try await stage.record()
    let state = try DocumentState(
      decoding: try #require(SealedRecord(parsing: last.bytes)).content, file: Self.file)
    #expect(state.deniedPins == [pin(1)])
    #expect(state.returns == Int64(rows.count))
    #expect(server.log.events("seal_broken").isEmpty)
    await stage.end()
  }

  /// What a server that starts finds in the place of a record, before the older one is put there.
  enum Before: String, CaseIterable, Sendable { case broken, gone, notConfigured }

  @Test(
    "keeps a denial, and takes no key back, where an older record is the first that is believed",
    arguments: Before.allCases, [false, true])
  func olderAfterHold(_ before: Before, hasCopies: Bool) async throws {
    // Of what is neither there nor served only a copy tells.
    guard hasCopies || before == .broken else { return }
    let more = hasCopies ? "publish: {dir: 'DIR/public'}" : ""
    let stage = try await Stage(more: more)
    stage.server.observer.show(.accepted(pin(2)), at: Self.host)
    await stage.server.service.probe(Self.host)
    let older = try await stage.record()
    try await stage.deny(pin(1))
    let last = try await stage.record()
    await stage.server.service.stop()
    let other = "[{fqdn: other.example.com}]"
    switch before {
    case .broken:
      var bytes = last.bytes
      bytes[bytes.count - 20] ^= 1
      try stage.put(StoredRecord(version: last.version, bytes: bytes))
    case .gone: try stage.delete()
    case .notConfigured: break
    }
    let keys = before == .notConfigured ? other : "[{fqdn: \(Self.host)}]"
    let second = try ScriptedService(
      keys: keys, storage: stage.yaml, more: more, sharing: stage.server)
    second.observer.show(.accepted(pin(2)), at: Self.host)
    second.observer.show(.accepted(pin(4)), at: "other.example.com")
    try await second.start()
    try stage.put(older)
    if before == .notConfigured {
      try await second.reload(
        keys: "[{fqdn: \(Self.host)}, {fqdn: other.example.com}]", storage: stage.yaml, more: more)
    } else {
      #expect(await eventually { second.log.events("store_believed").count == 1 })
    }
    await second.service.probe(Self.host)
    #expect(try Self.denied(second) == [pin(1).base64])
    #expect(try await second.pins(in: Self.file)[Self.host] == [pin(2)])
    #expect(second.log.events("store_went_back").count == 1)
    let content = try #require(SealedRecord(parsing: try await stage.record().bytes)).content
    let state = try DocumentState(decoding: content, file: Self.file)
    #expect(state.deniedPins == [pin(1)])
    #expect(state.returns == 1)
    await second.service.stop()
    await stage.end()
  }

  @Test(
    "keeps a denial, and tells, if the document has another name by then and only its copy knows of it",
    arguments: [false, true])
  func olderAndRenamed(isTakenBack: Bool) async throws {
    let more = "publish: {dir: 'DIR/public'}"
    let stage = try await Stage(more: more)
    stage.server.observer.show(.accepted(pin(2)), at: Self.host)
    await stage.server.service.probe(Self.host)
    let older = try await stage.record()
    stage.server.clock.advance(60)
    try await stage.deny(pin(1))
    await stage.server.service.stop()
    if isTakenBack { try stage.put(older) }
    let second = try ScriptedService(
      keys: "[{fqdn: \(Self.host), file: renamed.json}]", storage: stage.yaml, more: more,
      sharing: stage.server)
    // The key that was denied.
    second.observer.show(.accepted(pin(1)), at: Self.host)
    try await second.start()
    await second.service.probe(Self.host)
    second.observer.show(.accepted(pin(2)), at: Self.host)
    for _ in 0..<4 { await second.service.probe(Self.host) }
    #expect(try await second.pins(in: "renamed.json")[Self.host] == [pin(2)])
    let bytes = try #require(second.service.currentDocument("renamed.json")?.bytes)
    let statement = try JSONValue(parsing: bytes).objectValue?["statement"]?.objectValue
    #expect(statement?["denied"] == .array([.string(pin(1).base64)]))
    #expect(second.log.events("document_left").map { $0["file"] } == [.string(Self.file)])
    let told = second.log.events("store_went_back").map { $0["file"] }
    #expect(told == (isTakenBack ? [.string(Self.file)] : []))
    await second.service.stop()
    await stage.end()
  }

  @Test("refuses an older record of the store that does not name what was removed: no first sight")
  func olderIdentity() async throws {
    let stage = try await Stage()
    // As it was before the document was listed.
    let identity = try await stage.record(".store")
    let content = try #require(SealedRecord(parsing: identity.bytes)).content
    let fields = try #require(StoreIdentity(decoding: content))
    var before = fields
    before.records = []
    let keys = try SealedStoreTests.keys()
    let older = StoredRecord(
      version: identity.version - 1,
      bytes: try SealedRecord(
        SealedRecord.Fields(
          store: fields.id, key: keys.own.id, name: ".store", version: identity.version - 1,
          content: before.encoded), keys: keys.all
      ).encoded)
    try await stage.deny(pin(3))
    await stage.server.service.stop()
    try stage.delete()
    try stage.put(older, ".store")
    let second = try await stage.next(pin(3), isLeading: false)
    #expect(second.log.events("store_not_believed").count == 1)
    #expect(try await second.get("/api/v1/\(Self.file)").status == 503)
    #expect(try await second.get("/readyz").status == 503)
    // The operator's word about the store is none about the document.
    let repair = try StoreRepair(second.configuration)
    await #expect(throws: StoreRepairError.store(.seal(.broken(record: ".store", .older)))) {
      try await repair.reset(Self.file, to: .anew, at: 0)
    }
    _ = try await repair.reset(".store", to: .take, at: 0)
    #expect(await eventually { second.log.events("leading").count == 1 })
    await second.service.probe(Self.host)
    #expect(try await second.get("/api/v1/\(Self.file)").status == 503)
    #expect(second.service.store.mark.seen?.records == [Self.file])
    // That the first sight is wanted is said for the document.
    _ = try await repair.reset(Self.file, to: .anew, at: 0)
    await repair.close()
    #expect(await eventually { second.log.events("store_believed").count >= 1 })
    await second.service.probe(Self.host)
    #expect(try await second.pins(in: Self.file)[Self.host] == [pin(3)])
    await second.service.stop()
    await stage.end()
  }

  @Test("while it runs writes the store's own record again that somebody removed, and tells")
  func removedIdentity() async throws {
    let stage = try await Stage()
    let (server, before) = (stage.server, try await stage.record(".store"))
    try stage.delete(".store")
    #expect(await eventually { server.log.events("store_went_back").count == 1 })
    #expect(stage.server.log.events("store_went_back").first?["file"] == ".store")
    #expect(try await stage.record(".store").version == 1)
    #expect(try await stage.server.get("/readyz").status == 200)
    await stage.server.service.stop()
    let second = try await stage.next(pin(1), isLeading: true)
    #expect(try await second.get("/readyz").status == 200)
    await second.service.stop()
    // The one from before is of another time now.
    try stage.put(before, ".store")
    let third = try await stage.next(pin(3), isLeading: false)
    try await SealedServiceTests.expectHeld(third, nil, kind: "seal", alert: "seal-broken")
    await third.service.stop()
    await stage.end()
  }

  @Test("refuses another store under its key, while it runs and at a start, and serves what it did")
  func swapped() async throws {
    let stage = try await Stage()
    let published = try await stage.server.get("/api/v1/\(Self.file)").body
    // A server of the same operator, with the same key, for other people.
    let other = try await Stage()
    let records = try await (own: other.record(".store"), document: other.record())
    await other.end()
    let good = try await (own: stage.record(".store"), document: stage.record())
    let server = stage.server
    try stage.put(records.document)
    try stage.put(records.own, ".store")
    #expect(await eventually { server.log.events("seal_broken").count == 1 })
    stage.server.observer.show(.accepted(pin(3)), at: Self.host)
    await stage.server.service.probe(Self.host)
    try await SealedServiceTests.expectHeld(
      stage.server, published, kind: "seal", alert: "seal-broken")
    await stage.server.service.stop()
    let second = try await stage.next(pin(3), isLeading: false)
    try await SealedServiceTests.expectHeld(second, nil, kind: "seal", alert: "seal-broken")
    #expect(second.log.events("store_not_believed").count == 1)
    // The right one put back ends it.
    try stage.put(good.document)
    try stage.put(good.own, ".store")
    #expect(await eventually { second.log.events("store_believed").count == 1 })
    #expect(await eventually { second.log.events("leading").count == 1 })
    await second.service.stop()
    await stage.end()
  }

  @Test(
    "is told by the operator's command if it goes on being refused for a mark that cannot be written"
  )
  func unwritableMark() async throws {
    let stage = try await Stage()
    await stage.server.service.stop()
    let directory = stage.server.directory
    try directory.write("{}", to: SealMark.fileName)
    let lock = directory.file(SealMark.fileName + ".lock")
    try FileManager.default.removeItem(at: lock)
    try FileManager.default.createDirectory(at: lock, withIntermediateDirectories: false)
    let repair = try StoreRepair(stage.server.configuration)
    // First it is to be known which store it is.
    await #expect(
      throws: StoreRepairError.store(.seal(.broken(record: ".store", .markUnreadable)))
    ) {
      try await repair.reset(Self.file, to: .take, at: 0)
    }
    do throws(StoreRepairError) {
      _ = try await repair.reset(".store", to: .take, at: 0)
      Issue.record("it says that all is well")
    } catch {
      guard case .notMarked = error else { throw error }
      #expect("\(error)".contains("remove sealed-store in tls.dir"))
    }
    await repair.close()
    // As it says.
    try FileManager.default.removeItem(at: directory.file(SealMark.fileName))
    let again = try StoreRepair(stage.server.configuration)
    _ = try await again.reset(".store", to: .take, at: 0)
    await again.close()
    #expect(!FileManager.default.fileExists(atPath: directory.path(SealMark.fileName)))
    let second = try await stage.next(pin(1), isLeading: true)
    #expect(try await second.get("/readyz").status == 200)
    await second.service.stop()
    await stage.end()
  }

  @Test(
    "tells everywhere that its mark cannot be written or read any more, goes on meanwhile, and says when it is over",
    arguments: [false, true])
  func markBehind(isUnread: Bool) async throws {
    let receiver = try Receiver()
    let stage = try await Stage(
      more: """
        publish: {dir: 'DIR/public'}
        notify: {webhook: "\(receiver.url)", secret: \(Receiver.secret)}
        """)
    let (server, people) = (stage.server, AdministeredService(scripted: stage.server))
    let mark = server.directory.file(SealMark.fileName)
    let lock = server.directory.file(SealMark.fileName + ".lock")
    @Sendable func told() -> [String] {
      receiver.changes.filter { $0.json["subject"] == "tls.dir" }.map(\.text)
    }
    let place = server.directory.path()
    let number = server.service.currentDocument(Self.file)?.number
    #expect(await eventually { SealMark(directory: place).seen?.copied[Self.file] == number })
    let good = try Data(contentsOf: mark)
    if isUnread {
      try Data("{}".utf8).write(to: mark)
    } else {
      try FileManager.default.removeItem(at: lock)
      try FileManager.default.createDirectory(at: lock, withIntermediateDirectories: false)
    }
    try await stage.deny(pin(9))
    #expect(try Self.denied(server) == [pin(9).base64])
    // Another process writes, so the server looks after its store.
    try stage.put(try await stage.record())
    #expect(await eventually { server.log.events("store_not_marked").count == 1 })
    #expect(try Data(contentsOf: mark) == (isUnread ? Data("{}".utf8) : good))
    #expect(try await server.get("/readyz").status == 200)
    #expect(try await server.alerts().contains("storing"))
    #expect(await eventually { told() == ["begun storing"] })
    let overview = try await people.call("GET", "/overview")
    let reasons = overview["readiness", "reasons"]?.arrayValue?.compactMap(\.stringValue) ?? []
    #expect(reasons.contains { $0.hasPrefix("tls.dir does not have what this server saw last") })
    #expect(reasons.contains { $0.contains("store reset .store --take") } == isUnread)
    let denial = #"{"pin": "\#(pin(8).base64)", "why": "leaked", "force": true}"#
    let answer = try await people.call("POST", "/denials", denial)
    let warnings = answer["warnings"]?.arrayValue?.compactMap(\.stringValue) ?? []
    #expect(warnings.contains { $0.hasPrefix("tls.dir does not have what this server saw last") })
    if isUnread {
      try good.write(to: mark)
    } else {
      try FileManager.default.removeItem(at: lock)
    }
    // Another process writes, so the server looks after its store.
    try stage.put(try await stage.record())
    #expect(await eventually { server.log.events("store_marked").count == 1 })
    #expect(await eventually { told() == ["begun storing", "over storing"] })
    #expect(try await !server.alerts().contains("storing"))
    let seen = try #require(SealMark(directory: place).seen)
    #expect(seen.copies[Self.file] == server.service.currentDocument(Self.file)?.number)
    await stage.end()
    await receiver.stop()
  }
}
