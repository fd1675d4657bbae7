import Foundation
import SslPinningRules
import TestSupport
import Testing

@testable import RegistryCore
@testable import RegistryServer
@testable import RegistryStores

/// What a server remembers of its store, and what it refuses for that.
@Suite("The mark of a store") struct SealMarkTests {
  private static let names = SealedStoreTests.names
  private static let id = String(repeating: "a", count: 32)
  private static let other = String(repeating: "b", count: 32)

  private let directory: TemporaryDirectory
  private let base = TroubledStore()

  init() throws { directory = try TemporaryDirectory() }

  /// A server that starts on the store, with what is remembered in its directory.
  private func start(
    in folder: String = "tls", _ keys: SealKeys? = nil
  ) async throws -> (store: SealedStore, opening: SealedStore.Opening) {
    let store = SealedStore(
      base, keys: try keys ?? SealedStoreTests.keys(),
      mark: SealMark(directory: directory.path(folder)))
    return (store, try await store.open(documents: Self.names))
  }

  private func own() async throws -> StoredRecord {
    try #require(try await base.record(named: ".store"))
  }

  /// What came before: a server's life, the next one's, and what is put in force in between.
  struct Scenario: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let seen: SealMark.Seen
    let found: SealMark.Seen
    let refusal: SealFault.Reason?

    init(
      _ text: String, _ seen: (Int64, Int64), _ found: (Int64, Int64), isOther: Bool = false,
      _ refusal: SealFault.Reason?
    ) {
      func value(_ pair: (Int64, Int64), _ id: String) -> SealMark.Seen {
        SealMark.Seen(
          id: id, age: RecordAge(returns: pair.0, version: pair.1), records: ["\(pair)"])
      }
      (testDescription, self.refusal) = (text, refusal)
      self.seen = value(seen, SealMarkTests.id)
      self.found = value(found, isOther ? SealMarkTests.other : SealMarkTests.id)
    }
  }

  static let scenarios = [
    Scenario("the same", (0, 3), (0, 3), nil),
    Scenario("a newer one: the mark lags", (0, 3), (0, 9), nil),
    Scenario("an older one", (0, 3), (0, 2), .older),
    Scenario("written again after it was lost", (0, 3), (1, 1), nil),
    Scenario("from before it was lost, under a higher version", (1, 1), (0, 3), .older),
    Scenario("from between two losses", (2, 1), (1, 7), .older),
    Scenario("another store's, newer", (0, 3), (4, 9), isOther: true, .otherStore),
    Scenario("another store's, older", (1, 3), (0, 1), isOther: true, .otherStore),
  ]

  @Test("refuses what is older or another store's, and is only ever raised", arguments: scenarios)
  func table(_ scenario: Scenario) {
    #expect(
      scenario.seen.refusal(ofStore: scenario.found.id, scenario.found.age) == scenario.refusal)
    let mark = SealMark(directory: directory.path("tls"))
    mark.note(scenario.seen)
    mark.note(scenario.found)
    let raised = SealMark(directory: directory.path("tls")).seen
    #expect(raised?.id == Self.id)
    #expect(raised?.age == (scenario.refusal == nil ? scenario.found : scenario.seen).age)
    #expect(raised?.records.isSuperset(of: scenario.seen.records) == true)
    #expect(mark.problem == nil)
  }

  @Test(
    "of a file that cannot be read refuses every store; without a place it lasts as long as the process"
  )
  func unreadable() async throws {
    try await #expect(start().opening == .new)
    for bytes in ["", String(repeating: "a", count: 32) + "\n", "{}"] {
      try directory.write(bytes, to: "tls/sealed-store")
      #expect(try await start().opening == .fault(.broken(record: ".store", .markUnreadable)))
    }
    // Who stands beside the server writes over it, and makes none.
    let seen = SealMark.Seen(id: Self.id, age: RecordAge(version: 1))
    for (writing, expected) in [(SealMark.Writing.never, SealMark.Seen()), (.ifThere, seen)] {
      SealMark(directory: directory.path("tls"), writing: writing).note(seen, isOther: true)
      #expect(SealMark(directory: directory.path("tls")).seen == expected)
      SealMark(directory: directory.path("none"), writing: writing).note(seen, isOther: true)
      #expect(SealMark(directory: directory.path("none")).seen == nil)
    }
    let mark = SealMark(directory: "/proc/nowhere")
    mark.note(seen)
    #expect(mark.problem?.isEmpty == false)
    #expect(mark.seen == seen)
  }

  @Test("is written for a copy only if that is a newer one")
  func copies() throws {
    let mark = SealMark(directory: directory.path("tls"))
    mark.note(SealMark.Seen(id: Self.id, age: RecordAge(version: 1)))
    func file() throws -> UInt64? {
      let path = directory.path("tls") + "/" + SealMark.fileName
      return try FileManager.default.attributesOfItem(atPath: path)[.systemFileNumber] as? UInt64
    }
    var written = try file()
    for (version, isWritten) in [(2, true), (2, false), (1, false), (3, true)] {
      mark.note(
        copies: ["a.json": RegistryStamp.Version(epoch: 0, version: Int64(version))],
        areWritten: false)
      let now = try file()
      #expect((now != written) == isWritten)
      written = now
    }
  }

  @Test("tells what was copied from what was to be, and goes by the latter if it knows no more")
  func copied() throws {
    func number(_ version: Int64) -> RegistryStamp.Version { .init(epoch: 0, version: version) }
    let mark = SealMark(directory: directory.path("tls"))
    mark.note(SealMark.Seen(id: Self.id, age: RecordAge(version: 1)))
    mark.note(copies: ["a.json": number(2)], areWritten: false)
    #expect(mark.seen?.lastCopy(of: "a.json") == number(2))
    mark.note(copies: ["a.json": number(2)], areWritten: true)
    mark.note(copies: ["a.json": number(3)], areWritten: false)
    let read = try #require(SealMark(directory: directory.path("tls")).seen)
    #expect(read.copies == ["a.json": number(3)])
    #expect(read.lastCopy(of: "a.json") == number(2))
    #expect(read.lastCopy(of: "b.json") == nil)
    // It is never lowered by itself.
    mark.note(copies: ["a.json": number(1)], areWritten: true)
    #expect(mark.seen?.lastCopy(of: "a.json") == number(2))
  }

  @Test(
    "is lowered by a person's word about a document, to what is there, and for that document alone",
    arguments: [(2, 2), (4, 3), (nil, nil)] as [(Int64?, Int64?)])
  func lowered(to version: Int64?, _ last: Int64?) {
    func number(_ version: Int64) -> RegistryStamp.Version { .init(epoch: 0, version: version) }
    let mark = SealMark(directory: directory.path("tls"))
    mark.note(SealMark.Seen(id: Self.id, age: RecordAge(version: 1)))
    for areWritten in [false, true] {
      mark.note(copies: ["a.json": number(3), "b.json": number(3)], areWritten: areWritten)
    }
    mark.lower("a.json", to: version.map(number))
    let read = SealMark(directory: directory.path("tls")).seen
    for numbers in [read?.copies, read?.copied] {
      #expect(numbers?["a.json"] == last.map(number))
      #expect(numbers?["b.json"] == number(3))
    }
  }

  /// What stands in the place of a mark, so that nobody can tell what it had.
  enum Obstacle: Sendable {
    case damaged, nameless, directory

    private var text: String? {
      switch self {
      case .damaged: "{}"
      case .nameless: #"{"copied":{},"copies":{},"id":"","records":[],"returns":0,"version":0}"#
      case .directory: nil
      }
    }

    func stand(at file: URL) throws {
      try FileManager.default.removeItem(at: file)
      if let text { return try Data(text.utf8).write(to: file) }
      try FileManager.default.createDirectory(at: file, withIntermediateDirectories: false)
    }

    func isLeft(at file: URL) -> Bool {
      var isDirectory = ObjCBool(false)
      _ = FileManager.default.fileExists(atPath: file.path(), isDirectory: &isDirectory)
      return isDirectory.boolValue == (text == nil)
        && (try? Data(contentsOf: file)) == text.map { Data($0.utf8) }
    }
  }

  @Test(
    "that cannot be read is left as it is, whatever is noted, and has all of that once it can be read",
    arguments: [
      (.damaged, false), (.damaged, true), (.nameless, false), (.directory, false),
      (.directory, true),
    ] as [(Obstacle, Bool)])
  func unread(_ obstacle: Obstacle, isOfCopies: Bool) throws {
    func number(_ version: Int64) -> RegistryStamp.Version { .init(epoch: 0, version: version) }
    func opened() -> SealMark {
      SealMark(directory: directory.path("tls"), isOfCopies: isOfCopies)
    }
    let id = isOfCopies ? SealMark.copiesFileName : Self.id
    let file = directory.file("tls/" + (isOfCopies ? SealMark.copiesFileName : SealMark.fileName))
    let running = opened()
    running.note(SealMark.Seen(id: id, age: RecordAge(version: 2), records: ["b.json"]))
    running.note(copies: ["b.json": number(5)], areWritten: true)
    let good = try Data(contentsOf: file)
    try obstacle.stand(at: file)
    let starting = opened()
    for mark in [running, starting] {
      mark.note(copies: ["a.json": number(7)], areWritten: false)
      mark.settle()
      #expect(mark.isUnread)
      #expect(mark.problem?.isEmpty == false)
      #expect(mark.seen?.copies == ["a.json": number(7)])
    }
    #expect(obstacle.isLeft(at: file))
    // One that runs knows what it was. One that starts believes no store.
    #expect(running.seen?.refusal(ofStore: id, RecordAge(version: 2)) == nil)
    #expect(running.seen?.copied == ["b.json": number(5)])
    #expect(starting.seen?.id == (isOfCopies ? id : ""))
    try FileManager.default.removeItem(at: file)
    for mark in [starting, running] {
      try good.write(to: file)
      mark.settle()
      #expect(!mark.isUnread)
      #expect(mark.problem == nil)
      let read = try #require(opened().seen)
      #expect(read.id == id && read.age == RecordAge(version: 2) && read.records == ["b.json"])
      #expect(read.copied == ["b.json": number(5)])
      #expect(read.copies == ["a.json": number(7)])
    }
    // Whoever removes it means that.
    try obstacle.stand(at: file)
    #expect(running.isUnread)
    try FileManager.default.removeItem(at: file)
    #expect(running.seen == nil)
  }

  @Test("of copies has the numbers of one that an earlier version wrote, without an id")
  func namelessCopies() throws {
    func number(_ version: Int64) -> RegistryStamp.Version { .init(epoch: 0, version: version) }
    func opened() -> SealMark { SealMark(directory: directory.path("tls"), isOfCopies: true) }
    opened().begin()
    let numbers = #"{"a.json":[0,7]}"#
    try directory.write(
      #"{"copied":\#(numbers),"copies":\#(numbers),"id":"","records":[],"returns":0,"version":0}"#,
      to: "tls/" + SealMark.copiesFileName)
    let mark = opened()
    mark.begin()
    #expect(!mark.isUnread)
    #expect(mark.problem == nil)
    #expect(mark.seen?.copied == ["a.json": number(7)])
    mark.note(copies: ["b.json": number(1)], areWritten: true)
    #expect(opened().seen?.copied == ["a.json": number(7), "b.json": number(1)])
  }

  @Test("has what could not be written, once it can be, without another word")
  func unwritten() throws {
    let mark = SealMark(directory: directory.path("tls"))
    mark.note(SealMark.Seen(id: Self.id, age: RecordAge(version: 1)))
    let lock = directory.file("tls/" + SealMark.fileName + ".lock")
    try FileManager.default.removeItem(at: lock)
    try FileManager.default.createDirectory(at: lock, withIntermediateDirectories: false)
    mark.note(SealMark.Seen(id: Self.id, age: RecordAge(version: 9)))
    mark.settle()
    #expect(mark.problem?.isEmpty == false)
    #expect(mark.written?.age == RecordAge(version: 1))
    try FileManager.default.removeItem(at: lock)
    mark.settle()
    #expect(mark.problem == nil)
    #expect(SealMark(directory: directory.path("tls")).seen?.age == RecordAge(version: 9))
  }

  /// What somebody beside the server writes while that one cannot.
  enum Word: CaseIterable, Sendable {
    /// A person means another state of the store, or of a document.
    case ofStore, ofDocument
    /// Another process saw more of the same store.
    case none
  }

  @Test(
    "keeps what could not be written until a person's word about it is in the file",
    arguments: Word.allCases)
  func overruled(by word: Word) throws {
    func number(_ version: Int64) -> RegistryStamp.Version { .init(epoch: 0, version: version) }
    let running = SealMark(directory: directory.path("tls"))
    running.note(SealMark.Seen(id: Self.id, age: RecordAge(version: 2)))
    running.note(copies: ["a.json": number(5), "b.json": number(5)], areWritten: false)
    let lock = directory.file("tls/" + SealMark.fileName + ".lock")
    try FileManager.default.removeItem(at: lock)
    try FileManager.default.createDirectory(at: lock, withIntermediateDirectories: false)
    running.note(
      copies: ["a.json": number(7), "b.json": number(7), "c.json": number(7)], areWritten: false)
    #expect(running.problem?.isEmpty == false)
    try FileManager.default.removeItem(at: lock)
    let beside = SealMark(directory: directory.path("tls"), writing: .ifThere)
    let expected: [String: RegistryStamp.Version]
    switch word {
    case .ofStore:
      beside.note(
        SealMark.Seen(id: Self.id, age: RecordAge(returns: 1, version: 3)), isOther: true)
      expected = [:]
    case .ofDocument:
      beside.lower("a.json", to: number(3))
      expected = ["a.json": number(3), "b.json": number(7), "c.json": number(7)]
    case .none:
      beside.note(copies: ["a.json": number(6)], areWritten: false)
      expected = ["a.json": number(7), "b.json": number(7), "c.json": number(7)]
    }
    running.settle()
    #expect(running.problem == nil)
    #expect(running.seen?.copies == expected)
    #expect(SealMark(directory: directory.path("tls")).seen?.copies == expected)
  }

  /// What somebody puts in the place of the store's own record.
  enum Replay: String, CaseIterable, Sendable {
    case older, sealing, gone, swapped

    var fault: SealFault {
      switch self {
      case .older, .sealing: .broken(record: ".store", .older)
      case .gone: .vanished(record: ".store")
      case .swapped: .broken(record: ".store", .otherStore)
      }
    }
  }

  @Test(
    "has a server that starts refuse the store's own record if that is an older one, gone or another store's",
    arguments: Replay.allCases)
  func replayed(_ replay: Replay) async throws {
    var before: StoredRecord?
    switch replay {
    case .older:
      _ = try await start()
      before = try await own()
    case .sealing:
      // From the second in which a store without a seal was being sealed.
      let unfinished = UnfinishedStore()
      for name in Self.names { _ = try await unfinished.replace(name, version: 0, with: [1]) }
      await unfinished.allow(1)
      let store = SealedStore(
        unfinished, keys: try SealedStoreTests.keys(),
        mark: SealMark(directory: directory.path("tls")))
      await #expect(throws: StoreError.self) { try await store.open(documents: Self.names) }
      before = try await unfinished.record(named: ".store")
      await base.lose(to: before, named: ".store")
      for name in Self.names {
        await base.lose(to: StoredRecord(version: 1, bytes: [1]), named: name)
      }
      // What broke off there goes on, with the mark of it, too.
      #expect(try await start().opening == .known)
    case .gone: break
    case .swapped:
      let store = SealedStore(MemoryStore(), keys: try SealedStoreTests.keys())
      _ = try await store.open(documents: [])
      _ = try await store.replace("a.json", version: 0, with: [1])
      before = try await store.base.record(named: ".store")
    }
    if replay != .sealing {
      let (store, _) = try await start()
      _ = try await store.replace("a.json", version: 0, with: [1])
    }
    // Its name was not in the older one: without the mark it would be a first sight.
    await base.lose(to: nil, named: "a.json")
    let good = try await own()
    await base.lose(to: before, named: ".store")
    let (reader, opening) = try await start()
    #expect(opening == .fault(replay.fault))
    await #expect(throws: StoreError.seal(replay.fault)) {
      try await reader.record(named: "a.json")
    }
    await #expect(throws: StoreError.seal(replay.fault)) {
      try await reader.replace("a.json", version: 0, with: [2])
    }
    #expect(try await reader.lead() == nil)
    #expect(try await reader.fault(of: []) == replay.fault)
    #expect(try await base.record(named: ".store") == before)
    // The control: the right one is believed again, and what is gone is told.
    await base.lose(to: good, named: ".store")
    await #expect(throws: StoreError.seal(.vanished(record: "a.json"))) {
      try await reader.record(named: "a.json")
    }
    #expect(try await start().opening == .known)
  }

  @Test("does not keep a server from a store that others wrote to while it was away")
  func lagging() async throws {
    _ = try await start(in: "one")
    let (other, _) = try await start(in: "other")
    for name in Self.names { _ = try await other.replace(name, version: 0, with: [1]) }
    #expect(try await start(in: "one").opening == .known)
    // It has caught up: what the other saw last it refuses as well.
    let last = try await own()
    let (one, _) = try await start(in: "one")
    _ = try await one.replace("c.json", version: 0, with: [1])
    await base.lose(to: last, named: ".store")
    #expect(try await start(in: "one").opening == .fault(.broken(record: ".store", .older)))
    // The mark of the other lags by that record, which is all that it can lag by.
    #expect(try await start(in: "other").opening == .known)
  }

  @Test("has a running server write its own record again, above all that went before, and say so")
  func whileRunning() async throws {
    let (store, _) = try await start()
    let first = try await own()
    _ = try await store.replace("a.json", version: 0, with: [1])
    #expect(try await !store.check())
    for lost in [nil, first] {
      let before = try await own()
      await base.lose(to: lost, named: ".store")
      #expect(try await store.check())
      #expect(try await !store.check())
      #expect(try await start().opening == .known)
      let written = try await own()
      // What it was before is older now, whatever its version.
      await base.lose(to: before, named: ".store")
      #expect(try await start().opening == .fault(.broken(record: ".store", .older)))
      await base.lose(to: nil, named: "a.json")
      await base.lose(to: written, named: ".store")
      await #expect(throws: StoreError.seal(.vanished(record: "a.json"))) {
        try await start().store.record(named: "a.json")
      }
      #expect(try await store.replace("a.json", version: 0, with: [1]) == .replaced(version: 1))
    }
    // Another store is none that it lost.
    let other = SealedStore(MemoryStore(), keys: try SealedStoreTests.keys())
    _ = try await other.open(documents: [])
    await base.lose(to: try await other.base.record(named: ".store"), named: ".store")
    await #expect(throws: StoreError.seal(.broken(record: ".store", .otherStore))) {
      try await store.check()
    }
  }

  @Test("takes no record for an older one that was the newest when it was read")
  func overtaken() async throws {
    let (store, _) = try await start()
    let (other, _) = try await start()
    let (reads, seen) = (Gate(), store.mark.seen)
    await base.hold(answersToReadsAt: reads)
    let checking = Task { try await store.check() }
    #expect(await eventually { reads.count == 1 })
    await base.hold(answersToReadsAt: nil)
    // One with the same `tls.dir`, or another task of this one.
    _ = try await other.replace("a.json", version: 0, with: [1])
    #expect(other.mark.seen != seen)
    reads.open()
    #expect(try await !checking.value)
    #expect(try await !store.check())
    let record = try #require(SealedRecord(parsing: try await own().bytes))
    #expect(StoreIdentity(decoding: record.content)?.returns == 0)
  }

  @Test("keeps names that a restored record lacks: what they stand for is still no first sight")
  func names() async throws {
    let (store, _) = try await start(in: "one")
    let first = try await own()
    _ = try await store.replace("a.json", version: 0, with: [1])
    // A server that saw only the older record goes on from it.
    await base.lose(to: nil, named: "a.json")
    await base.lose(to: first, named: ".store")
    let (stranger, _) = try await start(in: "other")
    for name in ["b.json", "c.json"] { _ = try await stranger.replace(name, version: 0, with: [1]) }
    let (reader, opening) = try await start(in: "one")
    #expect(opening == .known)
    await #expect(throws: StoreError.seal(.vanished(record: "a.json"))) {
      try await reader.record(named: "a.json")
    }
    // And so it is in the store again, for all.
    _ = try await reader.replace("d.json", version: 0, with: [1])
    await #expect(throws: StoreError.seal(.vanished(record: "a.json"))) {
      try await start(in: "third").store.record(named: "a.json")
    }
  }
}
