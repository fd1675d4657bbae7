import CanonicalJSON
import Foundation
import RegistryCore
import SslPinningPlatform
import SslPinningRules
import TestSupport
import Testing

@testable import RegistryServer
@testable import RegistryStores

@Suite("A record that the store cannot read", .timeLimit(.minutes(3)))
struct DamagedRecordTests {
  private static let host = "www.example.com"
  private static let file = "www.example.com.json"
  private static let other = "other.test"
  private static let otherFile = "other.test.json"

  /// A service that goes by two documents.
  private static func service(
    _ store: DamagedStore, showing keys: [SPKIPin], after first: ScriptedService? = nil
  ) throws -> ScriptedService {
    let server = try ScriptedService(
      keys: "[{fqdn: \(host)}, {fqdn: \(other)}]", storage: store.yaml,
      more: "publish: {dir: 'DIR/public'}", sharing: first)
    for (host, key) in zip([host, other], keys) { server.observer.show(.accepted(key), at: host) }
    return server
  }

  /// A store that has two documents, and a service that wrote them and ended.
  private static func stage(
    _ kind: StoreKind
  ) async throws -> (store: DamagedStore, first: ScriptedService, published: [UInt8]) {
    let store = try await DamagedStore(kind)
    let first = try service(store, showing: [pin(1), pin(2)])
    try await first.start()
    for host in [host, other] { await first.service.probe(host) }
    let published = try #require(first.service.currentDocument(otherFile)).bytes
    await first.service.stop()
    return (store, first, published)
  }

  @Test(
    "holds its document and no other, is in no backup, and ends with a reset",
    arguments: DamagedStore.replaceable)
  func held(_ kind: StoreKind) async throws {
    let (store, first, published) = try await Self.stage(kind)
    try await store.damage(Self.otherFile, in: first.directory)
    let second = try Self.service(store, showing: [pin(3), pin(4)], after: first)
    try await second.start()
    for host in [Self.host, Self.other] { await second.service.probe(host) }
    #expect(try await second.get("/api/v1/\(Self.otherFile)").body == published)
    #expect(try await second.pins(in: Self.file)[Self.host] == [pin(1), pin(3)])
    let told = second.log.events("seal_broken").compactMap { $0["file"]?.stringValue }
    #expect(told == [Self.otherFile])
    #expect(try await second.get("/readyz").status == 503)
    let error = await #expect(throws: StoreTransferError.self) {
      try await StoreTransferTests.backUp(second, to: "backup")
    }
    let said = "the record of \(Self.otherFile) in the store cannot be read ("
    #expect("\(error, default: "")".hasPrefix(said))
    #expect(!FileManager.default.fileExists(atPath: second.directory.path("backup")))
    let repair = try StoreRepair(second.configuration)
    let now = second.clock.now()
    let reset = try await repair.reset(Self.otherFile, to: .anew, at: now)
    #expect(reset.contains("begins anew from the document that was signed at"))
    await repair.close()
    // Newer than what any server knows of it, however often the store had gone back.
    let base = try store.open(in: second.directory)
    let record = try #require(try await base.record(named: Self.otherFile))
    let content = try #require(SealedRecord(parsing: record.bytes)).content
    #expect(try DocumentState(decoding: content, file: Self.otherFile).returns > now)
    await base.close()
    #expect(await eventually { second.log.events("store_believed").count == 1 })
    await second.service.probe(Self.other)
    let healed = try await second.pins(in: Self.otherFile)[Self.other] ?? []
    #expect(Set(healed) == [pin(2), pin(4)])
    #expect(try await second.get("/readyz").status == 200)
    _ = try await StoreTransferTests.backUp(second, to: "backup")
    await second.service.stop()
  }

  @Test(
    "is replaced from a backup, also the store's own: until then the copies are served",
    arguments: DamagedStore.replaceable)
  func restored(_ kind: StoreKind) async throws {
    let (store, first, published) = try await Self.stage(kind)
    let base = try store.open(in: first.directory)
    let reports = ReportLedger().encoded
    try await base.overwrite(".reports") { _ in reports }
    _ = try await StoreTransferTests.backUp(first, to: "backup")
    for name in [Self.otherFile, ".store", ".reports"] {
      try await store.damage(name, in: first.directory)
    }
    let second = try Self.service(store, showing: [pin(1), pin(2)], after: first)
    try await second.start(isLeading: false)
    #expect(second.log.events("store_not_believed").count == 1)
    #expect(try await second.get("/api/v1/\(Self.otherFile)").body == published)
    #expect(try await second.get("/api/v1/\(Self.file)").status == 200)
    await second.service.stop()
    // Something is there, if nobody can say what.
    await #expect(throws: StoreTransferError.notEmpty(".store")) {
      try await StoreTransferTests.restore(second, from: "backup", mustBeEmpty: true)
    }
    try await StoreTransferTests.restore(second, from: "backup")
    #expect(try await base.record(named: ".reports")?.bytes == reports)
    await base.close()
    let third = try Self.service(store, showing: [pin(1), pin(2)], after: first)
    try await third.start()
    #expect(third.log.events("seal_broken").isEmpty)
    #expect(try await third.get("/readyz").status == 200)
    #expect(try await third.pins(in: Self.otherFile)[Self.other] == [pin(2)])
    await third.service.stop()
  }

  @Test(
    "keeps a whole backup out while it may be sound, unless it is one of reports",
    arguments: ["www.example.com.json", ".store", ".reports"])
  func maybeSound(_ name: String) async throws {
    let (store, first, _) = try await Self.stage(.fileSystem)
    let base = try store.open(in: first.directory)
    try await base.overwrite(".reports") { _ in [1] }
    _ = try await StoreTransferTests.backUp(first, to: "backup")
    // It is written first.
    let before = try await base.record(named: Self.otherFile)
    let record = first.directory.path("state/records/\(name)/record")
    #expect(rename(record, record + ".kept") == 0)
    // A link to itself keeps root out as well.
    try FileManager.default.createSymbolicLink(atPath: record, withDestinationPath: record)
    if name == ".reports" {
      try await StoreTransferTests.restore(first, from: "backup")
    } else {
      for isOlderMeant in [false, true] {
        let error = await #expect(throws: StoreTransferError.self) {
          try await StoreTransferTests.restore(
            first, from: "backup", isOlderMeant: isOlderMeant)
        }
        guard case .store(.withheld)? = error else {
          Issue.record("\(String(describing: error))")
          continue
        }
      }
      #expect(try await base.record(named: Self.otherFile) == before)
    }
    #expect(rename(record + ".kept", record) == 0)
    if name != ".reports" { try await StoreTransferTests.restore(first, from: "backup") }
    #expect(try await base.record(named: Self.otherFile) != before)
    #expect(try await base.record(named: ".reports")?.bytes == [1])
    await base.close()
  }

  @Test(
    "is left out of a backup if it has no seal, and keeps nothing else out",
    arguments: StoreKind.shared)
  func leftOut(_ kind: StoreKind) async throws {
    let (store, first, _) = try await Self.stage(kind)
    let base = try store.open(in: first.directory)
    let reports = [UInt8](repeating: 0xa5, count: 20_000)
    try await base.overwrite(".reports") { _ in reports }
    await base.close()
    let whole = try await StoreTransferTests.backUp(first, to: "whole")
    #expect(whole.leftOut.isEmpty)
    try await store.damage(".reports", in: first.directory)
    let backup = try await StoreTransferTests.backUp(first, to: "backup")
    #expect(backup.leftOut == [".reports"])
    #expect(backup.documents == whole.documents && backup.documents.count == 2)
    #expect(backup.entries == whole.entries)
  }

  @Test("is a record that is there: its store is no new one", arguments: DamagedStore.replaceable)
  func isThere(_ kind: StoreKind) async throws {
    let (store, first, _) = try await Self.stage(kind)
    for name in [Self.file, Self.otherFile] { try await store.damage(name, in: first.directory) }
    let repair = try StoreRepair(first.configuration)
    await #expect(throws: StoreRepairError.identityIsTaken) {
      try await repair.reset(".store", to: .anew, at: first.clock.now())
    }
    await repair.close()
  }

  @Test("is not advised to be replaced if a newer server may have written it")
  func newer() async throws {
    let directory = try TemporaryDirectory()
    let base = try FileSystemStore(directory: directory.path("state"))
    let store = SealedStore(base, keys: try SealedStoreTests.keys())
    _ = try await store.open(documents: ["a.json"])
    _ = try await store.replace("a.json", version: 0, with: [1])
    // As in a file of a format that is not known here.
    let file = directory.file("state/records/a.json/record")
    var bytes = [UInt8](try Data(contentsOf: file).dropLast(32))
    bytes[6] = UInt8(ascii: "2")
    bytes += Digest.sha256(bytes)
    try Data(bytes).write(to: file)
    let schema = await #expect(throws: StoreError.self) { try await store.record(named: "a.json") }
    // And as with a good seal, and nothing in it that is known here.
    let content = #expect(throws: StoreError.self) {
      try DocumentState(believing: [1], file: "a.json")
    }
    for error in [schema, content] {
      guard case .seal(let fault)? = error, case .broken(record: "a.json", .newer) = fault else {
        Issue.record("\(String(describing: error))")
        continue
      }
      #expect("\(fault)".contains("hint: update this server if another one is newer"))
    }
    await base.close()
  }

  @Test("is no empty list of what waits for a second person, as long as it may be sound")
  func proposals() async throws {
    let scripted = try ScriptedService(
      storage: "{type: fs, dump_dir: \"DIR/state\"}", more: "ui: {second_person: true}")
    scripted.observer.show(.accepted(pin(1)), at: Self.host)
    try await scripted.start()
    await scripted.service.probe(Self.host)
    let service = AdministeredService(scripted: scripted)
    func call(
      _ name: String, _ method: String, _ path: String, _ body: String? = nil
    ) async throws -> AdministeredService.Answer {
      let token = try service.token(name, issued: nil, ttl: 604_800)
      return try await service.call(
        method, path, body, headers: ["Authorization": "Bearer \(token)"])
    }
    func denial(_ key: SPKIPin) -> String { #"{"pin":"\#(key.base64)","why":"x"}"# }
    #expect(try await call("alice", "POST", "/denials", denial(pin(9))).status == 202)
    let record = scripted.directory.path("state/records/.proposals/record")
    #expect(rename(record, record + ".kept") == 0)
    try FileManager.default.createSymbolicLink(atPath: record, withDestinationPath: record)
    #expect(try await call("alice", "POST", "/denials", denial(pin(8))).status == 503)
    #expect(try await call("reader", "GET", "/proposals").status == 503)
    #expect(rename(record + ".kept", record) == 0)
    let waiting = try await call("reader", "GET", "/proposals")["proposals"]?.arrayValue
    #expect(waiting?.count == 1)
    await service.stop()
  }

  @Test("is listed where a store without a seal is sealed: it is no first sight")
  func withoutSeal() async throws {
    let directory = try TemporaryDirectory()
    let damaged = try await DamagedStore(.fileSystem)
    let base = try damaged.open(in: directory)
    for name in SealedStoreTests.names {
      _ = try await base.replace(name, version: 0, with: [1])
    }
    try await damaged.damage("b.json", in: directory)
    let store = SealedStore(base, keys: try SealedStoreTests.keys())
    #expect(
      try await store.open(documents: SealedStoreTests.names) == .sealed(["a.json", "b.json"]))
    #expect(try await store.record(named: "a.json") == StoredRecord(version: 2, bytes: [1]))
    for _ in 0..<2 {
      let error = await #expect(throws: StoreError.self) {
        try await store.record(named: "b.json")
      }
      guard case .seal(.broken(record: "b.json", .damaged)) = error else {
        Issue.record("\(String(describing: error))")
        return
      }
    }
    await base.close()
  }
}
