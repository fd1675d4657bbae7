import CanonicalJSON
import Foundation
import RegistryCore
import SslPinningPlatform
import SslPinningRules
import TestSupport
import Testing

@testable import RegistryServer
@testable import RegistryStores

/// A server that starts on an older store, whose seals are good, and finds no copy that is newer. Its mark knows which
/// document it published last.
@Suite("A service whose store is older than its copies were", .timeLimit(.minutes(3)))
struct OlderStoreTests {
  private static let file = ReplayedStoreTests.file
  private static let host = ReplayedStoreTests.host
  private static let more = StoreTransferTests.copies

  /// What stands in the place of the last copy.
  enum Copy: String, CaseIterable, Sendable {
    case gone, cutOff, older

    func put(_ directory: TemporaryDirectory, _ older: Data, _ last: Data) throws {
      let place = directory.file("public/\(OlderStoreTests.file)")
      switch self {
      case .gone: try FileManager.default.removeItem(at: place)
      case .cutOff: try last.prefix(last.count / 2).write(to: place)
      case .older: try older.write(to: place)
      }
    }
  }

  /// A store that had a denial after the older record and copy.
  private struct Past {
    let stage: ReplayedStoreTests.Stage
    let record: StoredRecord
    let copies: (older: Data, last: Data)

    init() async throws {
      stage = try await ReplayedStoreTests.Stage(more: OlderStoreTests.more)
      let copy = stage.server.directory.file("public/\(OlderStoreTests.file)")
      _ = await stage.server.service.documents.finishCopies()
      record = try await stage.record()
      let older = try Data(contentsOf: copy)
      try await stage.deny(pin(8))
      await stage.server.service.stop()
      copies = (older, try Data(contentsOf: copy))
      try #require(copies.older != copies.last)
    }

    func next(
      _ keys: String = "[{fqdn: \(OlderStoreTests.host)}]", more: String = OlderStoreTests.more
    ) async throws -> ScriptedService {
      let next = try ScriptedService(
        keys: keys, storage: stage.yaml, more: more, sharing: stage.server)
      next.observer.show(.accepted(pin(1)), at: OlderStoreTests.host)
      try await next.start()
      return next
    }
  }

  /// How a person ends it.
  enum Remedy: String, CaseIterable, Sendable { case copyBack, take, anew }

  @Test(
    "waits for a person, and serves and signs nothing of it, until the newest copy is back or the older record is meant",
    arguments: Copy.allCases, Remedy.allCases)
  func older(_ copy: Copy, _ remedy: Remedy) async throws {
    let past = try await Past()
    let directory = past.stage.server.directory
    try past.stage.put(past.record)
    try copy.put(directory, past.copies.older, past.copies.last)
    let second = try await past.next()
    await second.service.probe(Self.host)
    #expect(second.service.currentDocument(Self.file) == nil)
    #expect(try await second.get("/readyz").status == 503)
    let reasons = second.log.events("seal_broken").compactMap { $0["reason"]?.stringValue }
    #expect(reasons.count == 1)
    #expect(reasons.allSatisfy { $0.contains("older than the last document that this server") })
    #expect(reasons.allSatisfy { $0.contains("put the newest copy back there") })
    await #expect(throws: RegistryServiceError.self) {
      _ = try await ConfigurationTrial(second.configuration, at: second.clock.now())
    }
    if remedy == .copyBack {
      try past.copies.last.write(to: directory.file("public/\(Self.file)"))
    } else {
      let repair = try StoreRepair(second.configuration)
      let told = try await repair.reset(
        Self.file, to: remedy == .take ? .take : .anew, at: second.clock.now())
      await repair.close()
      #expect(told.contains(remedy == .take ? "is believed" : "document that was signed at"))
    }
    for coordinator in second.service.duty.coordinators {
      await coordinator.upkeep(at: second.clock.now())
    }
    #expect(second.log.events("store_believed").count == 1)
    #expect(
      try ReplayedStoreTests.denied(second) == (remedy == .copyBack ? [pin(8).base64] : []))
    #expect(try await second.get("/readyz").status == 200)
    await second.service.stop()
    await past.stage.end()
  }

  @Test("waits for a person also without a publish.dir, and asks for no copy there")
  func noLongerCopied() async throws {
    let past = try await Past()
    try past.stage.put(past.record)
    let second = try await past.next(more: "")
    #expect(second.service.currentDocument(Self.file) == nil)
    let reasons = second.log.events("seal_broken").compactMap { $0["reason"]?.stringValue }
    #expect(reasons.count == 1)
    #expect(reasons.allSatisfy { $0.contains("store reset \(Self.file) --take") })
    #expect(reasons.allSatisfy { !$0.contains("put the newest copy") })
    let repair = try StoreRepair(second.configuration)
    _ = try await repair.reset(Self.file, to: .take, at: second.clock.now())
    await repair.close()
    for coordinator in second.service.duty.coordinators {
      await coordinator.upkeep(at: second.clock.now())
    }
    #expect(try ReplayedStoreTests.denied(second) == [])
    await second.service.stop()
    await past.stage.end()
  }

  @Test("waits for a person if it has nothing of a document that was published, nor its last copy")
  func nothing() throws {
    let (mark, signer) = (
      SealMark(directory: nil), DocumentSigner(key: try testSigningKey.get())
    )
    mark.note(SealMark.Seen(id: String(repeating: "a", count: 32)))
    mark.note(copies: ["a.json": .init(epoch: 0, version: 3)], areWritten: false)
    let copies = LastCopies(
      store: SealedStore(MemoryStore(), keys: try SealedStoreTests.keys(), mark: mark),
      directory: nil, signer: { signer })
    let nothing = LastCopies.Found()
    func fault(of file: String) -> SealFault? {
      copies.fault(of: nothing, file, beside: nil, after: mark.seen)
    }
    #expect(fault(of: "a.json") == .vanished(record: "a.json"))
    #expect(fault(of: "b.json") == nil)
  }

  @Test("is none for what another process stores and notes while the record is read")
  func notedMeanwhile() async throws {
    let (base, mark, signer) = (
      TroubledStore(), SealMark(directory: nil), DocumentSigner(key: try testSigningKey.get())
    )
    let store = SealedStore(base, keys: try SealedStoreTests.keys(), mark: mark)
    _ = try await store.open(documents: [])
    var state = DocumentState()
    state.number = .init(epoch: 0, version: 1)
    _ = try await store.replace("a.json", version: 0, with: state.encoded)
    let services = CoordinatorServices(
      signing: Locked(signer), store: store, published: PublishedDocuments(files: ["a.json"]),
      health: ServiceHealth(), log: .silent,
      copies: LastCopies(store: store, directory: nil, signer: { signer }))
    let reads = Gate()
    await base.hold(answersToReadsAt: reads)
    let reading = Task { try await services.record(of: "a.json", isFirst: true).record?.version }
    #expect(await eventually { reads.count == 1 })
    mark.note(copies: ["a.json": .init(epoch: 0, version: 2)], areWritten: false)
    reads.open()
    #expect(try await reading.value == 1)
    // Noted before it is read, the number says that the record is older.
    await #expect(throws: StoreError.self) {
      _ = try await services.record(of: "a.json", isFirst: true)
    }
  }

  @Test("is not told by the number of a statement that somebody else wrote, and that was served")
  func forgedNumber() async throws {
    let stage = try await ReplayedStoreTests.Stage(more: Self.more)
    let server = stage.server.service
    let good = try #require(server.currentDocument(Self.file))
    _ = await server.documents.finishCopies()
    await server.stop()
    var json = try #require(try JSONValue(parsing: good.bytes).objectValue)
    var statement = try #require(json["statement"]?.objectValue)
    statement["version"] = .integer(try #require(good.number).version + 1_000_000)
    json["statement"] = .object(statement)
    let forged = PublishedDocument(
      file: Self.file, bytes: JSONValue.object(json).canonicalBytes, document: json,
      signed: good.signed)
    #expect(try #require(forged.number) > #require(good.number))
    for areWritten in [false, true] {
      let mark = SealMark(directory: nil, isOfCopies: true)
      var copies = try #require(server.services.copies)
      copies.mark = mark
      copies.note(copies: [forged], areWritten: areWritten)
      #expect(mark.seen?.lastCopy(of: Self.file) == nil)
      copies.note(copies: [forged, good], areWritten: areWritten)
      #expect(mark.seen?.lastCopy(of: Self.file) == good.number)
    }
    await stage.end()
  }

  /// What can be otherwise at the next start, while the store has all.
  enum Change: String, CaseIterable, Sendable {
    case copyOlder, copyGone, noCopies, copiesElsewhere, renamedAndBack
  }

  @Test(
    "goes on if the store has what was published last, whatever became of the copy",
    arguments: Change.allCases)
  func newest(_ change: Change) async throws {
    let past = try await Past()
    let directory = past.stage.server.directory
    var more = Self.more
    switch change {
    // As after a crash: the number was noted, and the copy was not written yet.
    case .copyOlder: try Copy.older.put(directory, past.copies.older, past.copies.last)
    case .copyGone: try Copy.gone.put(directory, past.copies.older, past.copies.last)
    case .noCopies: more = ""
    case .copiesElsewhere: more = "publish: {dir: 'DIR/elsewhere'}"
    case .renamedAndBack:
      let renamed = try await past.next("[{fqdn: \(Self.host), file: renamed.json}]")
      #expect(renamed.log.events("seal_broken").isEmpty)
      await renamed.service.stop()
    }
    let second = try await past.next(more: more)
    #expect(try ReplayedStoreTests.denied(second) == [pin(8).base64])
    for event in ["seal_broken", "store_went_back"] { #expect(second.log.events(event).isEmpty) }
    _ = try await ConfigurationTrial(second.configuration, at: second.clock.now())
    await second.service.stop()
    await past.stage.end()
  }
}
