import Foundation
import SslPinningPlatform
import SslPinningRules
import TestSupport
import Testing

@testable import RegistryCore
@testable import RegistryServer
@testable import RegistryStores

/// `store backup`, `restore`, `export` and `import`, on the stores themselves.
@Suite("A store that is copied into a file and back", .timeLimit(.minutes(4)))
struct StoreTransferTests {
  static let file = ReplayedStoreTests.file
  static let host = ReplayedStoreTests.host
  static let copies = "publish: {dir: 'DIR/public'}"

  static func deny(_ key: SPKIPin, _ server: ScriptedService) async throws {
    let answer = try await AdministeredService(scripted: server).call(
      "POST", "/denials", #"{"pin": "\#(key.base64)", "why": "leaked", "force": true}"#)
    try #require(answer.status < 300)
  }

  /// A service that watches, with a decision of each kind.
  static func stage(
    _ kind: StoreKind, more: String = ""
  ) async throws -> (server: ScriptedService, base: any RegistryStore, ground: Any?) {
    let (server, base, _, ground) = try await SealedServiceTests.stage(kind, more: more)
    try await deny(pin(9), server)
    let administered = AdministeredService(scripted: server)
    server.observer.show(.accepted(pin(5)), at: "added.test")
    for (path, body) in [
      ("/documents/\(file)/endpoints", #"{"fqdn": "added.test"}"#),
      ("\(AdministeredService.endpoint)/stage", #"{"pin": "\#(pin(2).base64)"}"#),
    ] {
      try #require(try await administered.call("POST", path, body).status < 300)
    }
    await server.service.probe("added.test")
    return (server, base, ground)
  }

  /// A service that goes by the same keys over another store.
  static func next(
    _ yaml: String, after server: ScriptedService, more: String = ""
  ) throws -> ScriptedService {
    let next = try ScriptedService(storage: yaml, more: more, sharing: server)
    next.observer.show(.accepted(pin(1)), at: host)
    next.observer.show(.accepted(pin(5)), at: "added.test")
    return next
  }

  static func backUp(
    _ server: ScriptedService, to name: String
  ) async throws -> StoreTransfer.Summary {
    let transfer = try StoreTransfer(server.configuration, mustExist: true)
    let result = await Result { try await transfer.backUp(to: server.directory.path(name)) }
    await transfer.close()
    return try result.get()
  }

  @discardableResult
  static func restore(
    _ server: ScriptedService, from name: String, mustBeEmpty: Bool = false,
    isOlderMeant: Bool = false
  ) async throws -> StoreTransfer.Summary {
    let transfer = try StoreTransfer(server.configuration, mustExist: false)
    let result = await Result {
      try await transfer.restore(
        from: server.directory.path(name), mustBeEmpty: mustBeEmpty, isOlderMeant: isOlderMeant,
        at: server.clock.now())
    }
    await transfer.close()
    return try result.get()
  }

  private static func state(in base: any RegistryStore) async throws -> (DocumentState, RecordAge) {
    let record = try #require(try await base.record(named: file))
    let content = try #require(SealedRecord(parsing: record.bytes)).content
    let state = try DocumentState(decoding: content, file: file)
    return (state, RecordAge(returns: state.returns, version: record.version))
  }

  private static func history(_ base: any RegistryStore) async throws -> [[UInt8]] {
    try await base.history(of: file, before: nil, limit: 1000).map(\.bytes)
  }

  private static func reports() -> [UInt8] {
    var ledger = ReportLedger()
    ledger.writers["a server"] = ReportLedger.Writer(serial: 7, time: 1_780_000_000)
    return ledger.encoded
  }

  @Test(
    "has all of it in a store of any other type, and is the same store there, only newer",
    arguments: zip(
      [StoreKind.sqlite, .sqlite, .postgres, .redis, .fileSystem],
      [StoreKind.postgres, .redis, .fileSystem, .postgres, .sqlite]))
  func moves(_ from: StoreKind, _ to: StoreKind) async throws {
    let (first, base, ground) = try await Self.stage(from)
    await first.service.stop()
    let version = try await base.record(named: ".reports")?.version ?? 0
    _ = try await base.replace(".reports", version: version, with: Self.reports())
    let before = (
      state: try await Self.state(in: base), history: try await Self.history(base),
      document: try #require(first.service.currentDocument(Self.file)),
      seen: try #require(SealMark(directory: first.directory.path()).seen)
    )
    let written = try await Self.backUp(first, to: "export")
    #expect(written.documents == [Self.file] && written.entries == before.history.count)
    let (yaml, place) = try await StoredServiceTests.storage(to)
    let second = try Self.next(yaml, after: first)
    #expect(try await Self.restore(second, from: "export", mustBeEmpty: true) == written)
    let target = try second.configuration.storage.open()
    let after = try await Self.state(in: target)
    #expect(after.1 > before.state.1)
    var same = after.0
    same.returns = before.state.0.returns
    #expect(same == before.state.0)
    #expect(same.deniedPins == [pin(9)])
    #expect(try await Self.history(target) == before.history)
    #expect(try await target.record(named: ".reports")?.bytes == Self.reports())
    // To a server with a mark of its own as well.
    let own = try #require(try await target.record(named: ".store"))
    let content = try #require(SealedRecord(parsing: own.bytes)).content
    let identity = try #require(StoreIdentity(decoding: content))
    #expect(before.seen.refusal(ofStore: identity.id, identity.seen(under: own.version).age) == nil)
    try await second.start()
    #expect(try #require(second.service.currentDocument(Self.file)).bytes == before.document.bytes)
    #expect(try await second.get("/readyz").status == 200)
    #expect(try await second.pins(in: Self.file)[Self.host] == [pin(1), pin(2)])
    #expect(try await second.pins(in: Self.file)["added.test"] == [pin(5)])
    try await Self.deny(pin(8), second)
    #expect(try Set(ReplayedStoreTests.denied(second)) == [pin(8).base64, pin(9).base64])
    let number = try #require(second.service.currentDocument(Self.file)?.number)
    #expect(try number > #require(before.document.number))
    for event in ["seal_broken", "store_went_back", "store_not_believed", "store_sealed"] {
      #expect(second.log.events(event).isEmpty, "\(event)")
    }
    await second.service.stop()
    await base.close()
    await target.close()
    withExtendedLifetime((ground, place)) {}
  }

  @Test(
    "is copied while a server works, and nothing is put into its store meanwhile",
    arguments: StoreKind.shared)
  func inUse(_ kind: StoreKind) async throws {
    let (server, base, ground) = try await Self.stage(kind)
    _ = try await Self.backUp(server, to: "backup")
    let record = try await base.record(named: Self.file)
    for isOlderMeant in [false, true] {
      await #expect(throws: StoreTransferError.isInUse) {
        try await Self.restore(server, from: "backup", isOlderMeant: isOlderMeant)
      }
    }
    #expect(try await base.record(named: Self.file) == record)
    await #expect(throws: StoreTransferError.self) { try await Self.backUp(server, to: "backup") }
    await server.service.stop()
    // As new as the store: nothing is lost by it.
    _ = try await Self.backUp(server, to: "last")
    try await Self.restore(server, from: "last")
    #expect(try await Self.state(in: base).0.deniedPins == [pin(9)])
    await #expect(throws: StoreTransferError.notEmpty(".store")) {
      try await Self.restore(server, from: "backup", mustBeEmpty: true, isOlderMeant: true)
    }
    await base.close()
    withExtendedLifetime(ground) {}
  }

  /// What knows of something newer than the file.
  enum Evidence: String, CaseIterable, Sendable {
    case record, unknown, name, copy, publishedNumber, mark, otherStore, otherKey

    var words: String {
      switch self {
      case .record: "the store has a newer record of"
      case .unknown: "the store has a \(StoreTransferTests.file) that this program cannot read"
      case .name: "the store has new.json"
      case .copy: "publish.dir has a newer"
      case .publishedNumber: "this server published a newer"
      case .mark: "a newer state of the store"
      case .otherStore: "another store than the one that this server saw last"
      case .otherKey: "sealed under another key"
      }
    }
  }

  @Test("is not taken back to an older state, unless that is said", arguments: Evidence.allCases)
  func older(_ evidence: Evidence) async throws {
    let more = [.record, .unknown, .name, .otherKey].contains(evidence) ? "" : Self.copies
    let (server, base, _) = try await Self.stage(.sqlite, more: more)
    _ = try await Self.backUp(server, to: "backup")
    try await Self.deny(pin(8), server)
    await server.service.stop()
    try await Self.leave(evidence, of: server, base)
    await base.close()
    let before = try await Self.record(server)
    do {
      try await Self.restore(server, from: "backup")
      Issue.record("it is taken")
    } catch StoreTransferError.older(let reason) {
      #expect(reason.contains(evidence.words), "\(reason)")
    }
    #expect(try await Self.record(server) == before)
    try await Self.restore(server, from: "backup", isOlderMeant: true)
    let second = try Self.next(
      "{type: sqlite, dsn: \"DIR/registry.db\"}", after: server, more: more)
    try await second.start()
    #expect(try await second.get("/readyz").status == 200)
    #expect(try ReplayedStoreTests.denied(second).contains(pin(9).base64))
    #expect(second.log.events("store_not_believed").isEmpty)
    await second.service.stop()
  }

  @Test("has a document begin again that came after it, if the older state is meant")
  func cameSince() async throws {
    let (yaml, keys) = (
      "{type: sqlite, dsn: \"DIR/registry.db\"}", "[{fqdn: \(Self.host)}, {fqdn: b.test}]"
    )
    let first = try ScriptedService(storage: yaml, more: Self.copies)
    first.observer.show(.accepted(pin(1)), at: Self.host)
    try await first.start()
    await first.service.probe(Self.host)
    try await Self.deny(pin(9), first)
    _ = try await Self.backUp(first, to: "backup")
    first.observer.show(.accepted(pin(2)), at: "b.test")
    try await first.reload(keys: keys, storage: yaml, more: Self.copies, judged: true)
    await first.service.probe("b.test")
    try #require(first.service.currentDocument("b.test.json") != nil)
    _ = await first.service.documents.finishCopies()
    await first.service.stop()
    let mark = SealMark(directory: first.directory.path())
    try #require(mark.seen?.copies["b.test.json"] != nil)
    for name in ["registry.db", "registry.db-wal", "registry.db-shm", "public"] {
      try? FileManager.default.removeItem(at: first.directory.file(name))
    }
    await #expect(throws: StoreTransferError.self) {
      try await Self.restore(first, from: "backup")
    }
    try await Self.restore(first, from: "backup", isOlderMeant: true)
    #expect(mark.seen?.copies.keys.sorted() == [Self.file])
    #expect(mark.seen?.copied.keys.sorted() == [Self.file])
    let second = try ScriptedService(keys: keys, storage: yaml, more: Self.copies, sharing: first)
    second.observer.show(.accepted(pin(1)), at: Self.host)
    second.observer.show(.accepted(pin(2)), at: "b.test")
    try await second.start()
    await second.service.probe("b.test")
    #expect(try await second.pins(in: "b.test.json")["b.test"] == [pin(2)])
    #expect(try ReplayedStoreTests.denied(second) == [pin(9).base64])
    #expect(second.log.events("seal_broken").isEmpty)
    await second.service.stop()
  }

  private static func record(_ server: ScriptedService) async throws -> StoredRecord? {
    let store = try SQLiteStore(path: server.directory.path("registry.db"))
    let record = try await store.record(named: file)
    await store.close()
    return record
  }

  /// Leaves one thing that knows better than the file, and removes the others.
  private static func leave(
    _ evidence: Evidence, of server: ScriptedService, _ base: any RegistryStore
  ) async throws {
    let directory = server.directory
    func remove(_ name: String) throws {
      try? FileManager.default.removeItem(at: directory.file(name))
    }
    switch evidence {
    case .record: return
    case .unknown:
      // As a newer server has it: with a good seal, and nothing in it that is known here.
      let store = SealedStore(base, keys: try SealedStoreTests.keys())
      _ = try await store.open(documents: [])
      let version = try #require(try await base.record(named: file)).version
      _ = try await store.replace(file, version: version, with: [1])
      return
    case .name:
      let store = SealedStore(base, keys: try SealedStoreTests.keys())
      _ = try await store.open(documents: [])
      _ = try await store.replace("new.json", version: 0, with: DocumentState().encoded)
      return try remove(SealMark.fileName)
    case .copy: try remove(SealMark.fileName)
    case .publishedNumber: try remove("public")
    case .mark:
      let mark = SealMark(directory: directory.path())
      var seen = try #require(mark.seen)
      (seen.age.returns, seen.copies) = (5, [:])
      mark.note(seen, isOther: true)
      try remove("public")
    case .otherStore: break
    case .otherKey:
      let record = try #require(try await base.record(named: ".store"))
      let fields = SealedRecord.Fields(
        store: try #require(SealedRecord(parsing: record.bytes)).store,
        key: try SealedStoreTests.otherKeys().own.id, name: ".store",
        version: record.version + 1, content: [])
      let sealed = try SealedRecord(fields, keys: SealedStoreTests.otherKeys().all)
      _ = try await base.replace(".store", version: record.version, with: sealed.encoded)
      return
    }
    for end in ["", "-wal", "-shm"] { try remove("registry.db" + end) }
    guard evidence == .otherStore else { return }
    try remove("public")
    try remove(SealMark.fileName)
    let other = try next("{type: sqlite, dsn: \"DIR/registry.db\"}", after: server)
    try await other.start()
    await other.service.stop()
  }

  /// What somebody does to a file.
  enum Edit: String, CaseIterable, Sendable {
    case content, version, recordGone, identityGone, otherKey, cutOff, noDatabase
  }

  @Test(
    "is refused as a whole if it is not as a server with the key wrote it", arguments: Edit.allCases
  )
  func edited(_ edit: Edit) async throws {
    let (server, base, _) = try await Self.stage(.sqlite)
    _ = try await Self.backUp(server, to: "backup")
    await server.service.stop()
    let path = server.directory.path("backup")
    var target = try ScriptedService(
      storage: "{type: fs, dump_dir: \"DIR/state\"}", sharing: server)
    let wanted: StoreTransferError? =
      switch edit {
      case .content, .version: .file(.broken(record: Self.file, .changed))
      case .recordGone: .file(.vanished(record: Self.file))
      case .identityGone: .unsealed
      case .otherKey:
        .file(
          .otherKey(
            inForce: try testSigningKey.get().trustKey.roleKey.id,
            own: try otherSigningKey.get().trustKey.roleKey.id))
      case .cutOff, .noDatabase: nil
      }
    do {
      let connection = try SQLiteConnection(path: path)
      switch edit {
      case .content:
        let good = try #require(try await base.record(named: Self.file)).bytes
        var bytes = good
        bytes[bytes.count - 20] ^= 1
        _ = try connection.change(
          "UPDATE records SET bytes = ? WHERE name = ?", [.blob(bytes), .text(Self.file)])
      case .version:
        try connection.execute(
          "UPDATE records SET version = version + 1 WHERE name = '\(Self.file)'")
      case .recordGone: try connection.execute("DELETE FROM records WHERE name = '\(Self.file)'")
      case .identityGone: try connection.execute("DELETE FROM records WHERE name = '.store'")
      case .otherKey:
        target = try SigningKeyChangeTests.other(
          than: server, "{type: fs, dump_dir: \"DIR/state\"}", former: false)
      case .cutOff: #expect(truncate(path, 6000) == 0)
      case .noDatabase: try Data("no database".utf8).write(to: server.directory.file("backup"))
      }
    }
    do {
      try await Self.restore(target, from: "backup")
      Issue.record("it is taken")
    } catch let error as StoreTransferError {
      if let wanted { #expect(error == wanted) }
      #expect("\(error)".contains("; hint: "))
    }
    let store = try target.configuration.storage.open()
    for name in [Self.file, ".store"] { #expect(try await store.record(named: name) == nil) }
    await store.close()
    await base.close()
  }

  @Test("goes on where it broke off, and nothing is there twice")
  func brokenOff() async throws {
    let (server, base, _) = try await Self.stage(.sqlite)
    await server.service.stop()
    _ = try await Self.backUp(server, to: "export")
    let (yaml, place) = try await StoredServiceTests.storage(.postgres)
    let target = try Self.next(yaml, after: server)
    // It is raised last.
    let mark = target.directory.file(SealMark.fileName)
    let before = try? Data(contentsOf: mark)
    try await Self.restore(target, from: "export", mustBeEmpty: true)
    if let before {
      try before.write(to: mark)
    } else {
      try FileManager.default.removeItem(at: mark)
    }
    let store = try target.configuration.storage.open()
    let history = try await Self.history(store)
    // The store's own record comes last.
    let database = try #require(place as? PostgresServer)
    let name = try #require(yaml.firstMatch(of: /\/(test\d+)/)).1
    try await database.run(
      "DELETE FROM ssl_pinning_records WHERE name = '.store'", in: String(name))
    try await Self.restore(target, from: "export", mustBeEmpty: true)
    #expect(try await Self.history(store) == history)
    try await target.start()
    #expect(try await target.get("/readyz").status == 200)
    await target.service.stop()
    await store.close()
    await base.close()
  }

  @Test("has of a store in SQLite what it was at one moment, whatever is written meanwhile")
  func oneMoment() async throws {
    let directory = try makeKeyDirectory()
    let path = directory.path("registry.db")
    let storage = "storage: {type: sqlite, dsn: '\(path)'}\ntls: {dir: '\(directory.path())'}"
    let configuration = try configuration("keys: [{fqdn: a.test, file: a.json}]\n" + storage)
    let store = SealedStore(try SQLiteStore(path: path), keys: try SealedStoreTests.keys())
    _ = try await store.open(documents: ["a.json"])
    let content = DocumentState().encoded
    let writer = Task {
      for version in 0..<Int64.max {
        let entry = Array("entry \(version + 1)".utf8)
        _ = try await store.replace("a.json", version: version, with: content, history: [entry])
        if Task.isCancelled { return }
      }
    }
    for index in 0..<8 {
      let transfer = try StoreTransfer(configuration, mustExist: true)
      let summary = try await transfer.backUp(to: directory.path("backup-\(index)"))
      await transfer.close()
      let copy = try SQLiteStore(backup: directory.path("backup-\(index)"))
      // One entry came with each version.
      #expect(try await copy.record(named: "a.json")?.version ?? 0 == Int64(summary.entries))
      await copy.close()
    }
    writer.cancel()
    try await writer.value
    await store.close()
  }

  @Test("is neither made nor read where there is nothing that keeps it")
  func nothing() async throws {
    let (server, base, _) = try await Self.stage(.sqlite)
    await server.service.stop()
    _ = try await Self.backUp(server, to: "backup")
    await base.close()
    let memory = try ScriptedService(sharing: server)
    await #expect(throws: StoreTransferError.keepsNothing) {
      try await Self.restore(memory, from: "backup")
    }
    let path = server.directory.path("none.db")
    let other = try configuration(
      "keys: [{fqdn: a.test}]\nstorage: {dsn: '\(path)'}\ntls: {dir: '\(server.directory.path())'}")
    #expect(throws: RegistryServiceError.self) { try StoreTransfer(other, mustExist: true) }
    #expect(!FileManager.default.fileExists(atPath: path))
  }
}

extension Result where Failure == any Error {
  /// What came of a call.
  fileprivate init(_ call: () async throws -> Success) async {
    do { self = .success(try await call()) } catch { self = .failure(error) }
  }
}
