import CanonicalJSON
import Foundation
import SslPinningRules
import TestSupport
import Testing

@testable import RegistryCore
@testable import RegistryServer
@testable import RegistryStores

/// A server that starts on a store that has nothing left.
@Suite("A service whose store is lost", .timeLimit(.minutes(3))) struct LostStoreTests {
  private static let file = ReplayedStoreTests.file
  private static let host = ReplayedStoreTests.host
  private static let more = "publish: {dir: 'DIR/public'}"

  @Test("goes on by itself from its copies, with what they deny and list, and tells")
  func goesOn() async throws {
    let stage = try await ReplayedStoreTests.Stage(more: Self.more)
    let administered = AdministeredService(scripted: stage.server)
    stage.server.observer.show(.accepted(pin(5)), at: "added.test")
    _ = try await administered.call(
      "POST", "/documents/\(Self.file)/endpoints", #"{"fqdn": "added.test"}"#)
    await stage.server.service.probe("added.test")
    try await stage.deny(pin(9))
    await stage.server.service.stop()
    let before = try #require(stage.server.service.currentDocument(Self.file))
    let older = try await stage.record()
    for name in [Self.file, ".store"] { try stage.delete(name) }
    // At once, before any probe.
    let second = try ScriptedService(storage: stage.yaml, more: Self.more, sharing: stage.server)
    try await second.start()
    let after = try #require(second.service.currentDocument(Self.file))
    #expect(try #require(after.number) >= #require(before.number))
    #expect(try ReplayedStoreTests.denied(second) == [pin(9).base64])
    let pins = try await second.pins(in: Self.file)
    #expect(pins[Self.host] == [pin(1)] && pins["added.test"] == [pin(5)])
    #expect(second.log.events("store_lost").count == 1)
    #expect(second.log.events("leading").count == 1)
    let kinds = try await second.alerts()
    #expect(kinds.contains("store-lost"))
    // A rotation that nobody announced waits for nobody.
    for key in [1, 3] as [UInt8] {
      second.observer.show(LedgerBench.probe([(LedgerBench.here, "", .key(key))]), at: Self.host)
      await second.service.probe(Self.host)
    }
    #expect(try await second.pins(in: Self.file)[Self.host] == [pin(1), pin(3)])
    // What people had added is watched, and not only listed.
    for key in [5, 6] as [UInt8] {
      second.observer.show(LedgerBench.probe([(LedgerBench.here, "", .key(key))]), at: "added.test")
      await second.service.probe("added.test")
    }
    #expect(try await second.pins(in: Self.file)["added.test"] == [pin(5), pin(6)])
    // What was in it before is older, whatever its version.
    try stage.put(older)
    #expect(await eventually { second.log.events("store_went_back").count == 1 })
    await second.service.probe(Self.host)
    #expect(try await second.pins(in: Self.file)[Self.host] == [pin(1), pin(3)])
    // So is, after another loss, what was written since the first one.
    let newer = try await stage.record()
    await second.service.stop()
    for name in [Self.file, ".store"] { try stage.delete(name) }
    let third = try ScriptedService(storage: stage.yaml, more: Self.more, sharing: stage.server)
    try await third.start()
    #expect(third.log.events("store_lost").count == 1)
    try stage.put(newer)
    #expect(await eventually { third.log.events("store_went_back").count == 1 })
    await third.service.stop()
    await stage.end()
  }

  /// Why a store is not begun again.
  enum Lack: String, CaseIterable, Sendable { case noCopy, olderCopy, editedCopy, recordLeft }

  @Test(
    "waits for a person if a copy cannot stand in for it, or a record is left",
    arguments: Lack.allCases)
  func waits(_ lack: Lack) async throws {
    let stage = try await ReplayedStoreTests.Stage(more: Self.more)
    let path = "public/\(Self.file)"
    try await stage.deny(pin(8))
    let copy = stage.server.directory.file(path)
    _ = await stage.server.service.documents.finishCopies()
    let older = try String(contentsOf: copy, encoding: .utf8)
    try await stage.deny(pin(9))
    await stage.server.service.stop()
    let last = try String(contentsOf: copy, encoding: .utf8)
    #expect(last != older)
    switch lack {
    case .noCopy: try FileManager.default.removeItem(at: copy)
    case .olderCopy: try stage.server.directory.write(older, to: path)
    case .editedCopy:
      try stage.server.directory.write(
        last.replacing(pin(9).base64, with: pin(7).base64), to: path)
    case .recordLeft: break
    }
    for name in [Self.file, ".store"] where lack != .recordLeft || name == ".store" {
      try stage.delete(name)
    }
    let second = try await stage.next(pin(3), isLeading: false, more: Self.more)
    #expect(try await second.get("/readyz").status == 503)
    #expect(try await second.alerts().contains("seal-broken"))
    #expect(second.log.events("store_lost").isEmpty)
    #expect(try await stage.base.record(named: ".store") == nil)
    if lack == .olderCopy {
      let repair = try StoreRepair(second.configuration)
      let told = try await repair.reset(".store", to: .anew, at: second.clock.now())
      #expect(told.contains("the store is the new one"))
      await repair.close()
      #expect(await eventually { second.log.events("store_believed").count == 1 })
      #expect(try ReplayedStoreTests.denied(second) == [pin(8).base64])
    }
    await second.service.stop()
    await stage.end()
  }

  @Test("waits for a person if the last change was acknowledged while its copy hung")
  func hangingCopy() async throws {
    let stage = try await ReplayedStoreTests.Stage(more: Self.more)
    let place = try #require(stage.server.configuration.publishing.directory)
    try await stage.deny(pin(8))
    let copy = stage.server.directory.file("public/\(Self.file)")
    _ = await stage.server.service.documents.finishCopies()
    let before = try Data(contentsOf: copy)
    let gate = DispatchSemaphore(value: 0)
    StaticFiles.queue(of: place).async { gate.wait() }
    try await stage.deny(pin(9))
    await stage.server.service.stop()
    gate.signal()
    await withCheckedContinuation { continuation in
      StaticFiles.queue(of: place).async { continuation.resume() }
    }
    #expect(try Data(contentsOf: copy) == before)
    for name in [Self.file, ".store"] { try stage.delete(name) }
    let second = try await stage.next(pin(3), isLeading: false, more: Self.more)
    #expect(second.log.events("store_lost").isEmpty)
    #expect(try await second.get("/readyz").status == 503)
    await second.service.stop()
    await stage.end()
  }

  @Test("waits for a person if its document has another name by now, and there is no copy")
  func renamed() async throws {
    let stage = try await ReplayedStoreTests.Stage(more: Self.more)
    try await stage.deny(pin(9))
    await stage.server.service.stop()
    for name in [Self.file, ".store"] { try stage.delete(name) }
    try FileManager.default.removeItem(at: stage.server.directory.file("public/\(Self.file)"))
    let second = try ScriptedService(
      keys: "[{fqdn: \(Self.host), file: renamed.json}]", storage: stage.yaml, more: Self.more,
      sharing: stage.server)
    second.observer.show(.accepted(pin(3)), at: Self.host)
    try await second.start(isLeading: false)
    #expect(second.log.events("store_lost").isEmpty)
    #expect(try await second.get("/readyz").status == 503)
    await second.service.stop()
    await stage.end()
  }

  @Test("has what a renamed document denied, if its own record is put back while the server runs")
  func putBack() async throws {
    let stage = try await ReplayedStoreTests.Stage()
    try await stage.deny(pin(9))
    let identity = try await stage.record(".store")
    await stage.server.service.stop()
    try stage.delete(".store")
    let second = try ScriptedService(
      keys: "[{fqdn: \(Self.host), file: renamed.json}]", storage: stage.yaml,
      sharing: stage.server)
    second.observer.show(.accepted(pin(1)), at: Self.host)
    try await second.start(isLeading: false)
    #expect(second.log.events("store_not_believed").count == 1)
    #expect(second.log.events("document_left").isEmpty)
    try stage.put(identity, ".store")
    #expect(await eventually { second.service.currentDocument("renamed.json") != nil })
    #expect(second.log.events("document_left").contains { $0["file"] == .string(Self.file) })
    let bytes = try #require(second.service.currentDocument("renamed.json")?.bytes)
    let statement = try JSONValue(parsing: bytes).objectValue?["statement"]?.objectValue
    #expect(statement?["denied"] == .array([.string(pin(9).base64)]))
    await second.service.stop()
    await stage.end()
  }

  @Test("waits for a person in memory if a copy is older than the last one that was written")
  func olderCopyInMemory() async throws {
    func start(after last: ScriptedService? = nil) async throws -> ScriptedService {
      let server = try ScriptedService(more: Self.more, sharing: last)
      server.observer.show(.accepted(pin(1)), at: Self.host)
      try await server.start()
      await server.service.probe(Self.host)
      return server
    }
    let first = try await start()
    let copy = first.directory.file("public/\(Self.file)")
    try await StoreTransferTests.deny(pin(8), first)
    _ = await first.service.documents.finishCopies()
    let older = try Data(contentsOf: copy)
    try await StoreTransferTests.deny(pin(9), first)
    await first.service.stop()
    let newest = try Data(contentsOf: copy)
    #expect(newest != older)
    try older.write(to: copy)
    let second = try await start(after: first)
    #expect(second.log.events("seal_broken").count == 1)
    #expect(second.service.currentDocument(Self.file) == nil)
    #expect(try await second.get("/readyz").status == 503)
    #expect(try await second.alerts().contains("seal-broken"))
    await second.service.stop()
    #expect(try Data(contentsOf: copy) == older)
    // The newest one is believed, and the older one if somebody means it.
    try newest.write(to: copy)
    let third = try await start(after: second)
    #expect(Set(try ReplayedStoreTests.denied(third)) == [pin(8).base64, pin(9).base64])
    #expect(third.log.events("seal_broken").isEmpty)
    await third.service.stop()
    try older.write(to: copy)
    try FileManager.default.removeItem(at: first.directory.file(SealMark.copiesFileName))
    let fourth = try await start(after: third)
    #expect(try ReplayedStoreTests.denied(fourth) == [pin(8).base64])
    await fourth.service.stop()
  }

  @Test("says in memory that it cannot remember its copies, if there are any")
  func unmarkedCopies() async throws {
    for more in ["", Self.more] {
      let server = try ScriptedService(more: more)
      try FileManager.default.createDirectory(
        at: server.directory.file(SealMark.copiesFileName + ".lock"),
        withIntermediateDirectories: false)
      try await server.start()
      let told = server.log.events("store_not_marked").compactMap { $0["message"]?.stringValue }
      #expect(told.count == (more.isEmpty ? 0 : 1))
      #expect(told.allSatisfy { $0.hasSuffix("an older copy in publish.dir is believed") })
      await server.service.stop()
    }
  }

  @Test("says in memory how to mend a file of its copies that is damaged, and what that costs")
  func damagedCopies() async throws {
    let server = try ScriptedService(more: Self.more)
    try server.directory.write("{}", to: SealMark.copiesFileName)
    try await server.start()
    let told = server.log.events("store_not_marked").compactMap { $0["reason"]?.stringValue }
    #expect(told.count == 1)
    #expect(told.allSatisfy { $0.contains("remove it, which lets an older copy be believed") })
    await server.service.stop()
  }

  @Test("is begun again without writing over a mark that cannot be read: no person means that")
  func unreadMark() async throws {
    let directory = try TemporaryDirectory()
    let base = TroubledStore()
    func start() async throws -> SealedStore {
      let store = SealedStore(
        base, keys: try SealedStoreTests.keys(),
        mark: SealMark(directory: directory.path("tls")))
      _ = try await store.open(documents: ["a.json"])
      return store
    }
    _ = try await start()
    await base.lose(to: nil, named: ".store")
    let next = try await start()
    let seen = try #require(try await next.lost(["a.json"]))
    let file = directory.file("tls/" + SealMark.fileName)
    let good = try Data(contentsOf: file)
    try Data("{}".utf8).write(to: file)
    let age = try #require(try await next.beginAgain(seen, at: 1_780_000_000))
    #expect(try Data(contentsOf: file) == Data("{}".utf8))
    // It has that once it can be read.
    try good.write(to: file)
    next.mark.settle()
    #expect(SealMark(directory: directory.path("tls")).seen?.age.returns == age.returns)
  }

  @Test("is followed by servers that know it: it is the same store, and newer")
  func others() async throws {
    let directory = try TemporaryDirectory()
    let base = TroubledStore()
    func start(in folder: String) async throws -> SealedStore {
      let store = SealedStore(
        base, keys: try SealedStoreTests.keys(),
        mark: SealMark(directory: directory.path(folder)))
      _ = try await store.open(documents: ["a.json"])
      return store
    }
    let running = try await start(in: "one")
    _ = try await running.replace("a.json", version: 0, with: [1])
    _ = try await start(in: "other").record(named: "a.json")
    for name in ["a.json", ".store"] { await base.lose(to: nil, named: name) }
    let next = SealedStore(
      base, keys: try SealedStoreTests.keys(), mark: SealMark(directory: directory.path("other")))
    _ = try await next.open(documents: ["a.json"])
    let seen = try #require(try await next.lost(["a.json"]))
    #expect(seen.records == ["a.json"])
    let age = try #require(try await next.beginAgain(seen, at: 1_780_000_000))
    #expect(age.returns == 1_780_000_000)
    #expect(try await next.record(named: "a.json") == nil)
    #expect(try await next.lost(["a.json"]) == nil)
    #expect(try await running.check() == false)
    #expect(running.id == next.id)
    _ = try await next.replace("a.json", version: 0, with: [2])
    #expect(try await running.record(named: "a.json")?.bytes == [2])
    #expect(try await start(in: "one").record(named: "a.json")?.bytes == [2])
  }
}
