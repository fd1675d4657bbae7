import CanonicalJSON
import Foundation
import RegistryCore
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@testable import RegistryServer
@testable import RegistryStores

/// A `publish.dir` that does not answer, as that of a file server that is away.
@Suite("Copies that cannot be read", .timeLimit(.minutes(3)))
struct SilentCopiesTests {
  private static let file = StoreTransferTests.file
  private static let host = StoreTransferTests.host
  private static let sqlite = "{type: sqlite, dsn: 'DIR/registry.db'}"

  /// How the copies are out of reach.
  enum Silence: String, CaseIterable, Sendable { case hangs, unreadable }

  /// Has reads of the copies wait until it ends, or fail.
  private final class Absence: Sendable {
    private let silence: Silence
    private let directory: String
    private let reader: CopyReader
    private let gate = DispatchSemaphore(value: 0)

    init(_ silence: Silence = .hangs, of server: ScriptedService) throws {
      self.silence = silence
      directory = try #require(server.configuration.publishing.directory)
      reader = CopyReader.at(directory)
      switch silence {
      case .hangs: reader.queue.async { [gate] in gate.wait() }
      case .unreadable:
        try FileManager.default.moveItem(atPath: directory, toPath: directory + ".away")
        // A link to itself is an error to everybody, root included.
        try FileManager.default.createSymbolicLink(
          atPath: directory, withDestinationPath: directory)
      }
    }

    /// Returns once all that waited is read.
    func end() async throws {
      if silence == .unreadable {
        try FileManager.default.removeItem(atPath: directory)
        try FileManager.default.moveItem(atPath: directory + ".away", toPath: directory)
      }
      gate.signal()
      await withCheckedContinuation { continuation in
        reader.queue.async { continuation.resume() }
      }
    }

    // A test that fails must not leave a thread behind.
    deinit { gate.signal() }
  }

  /// What happens once a minute.
  private static func upkeep(of server: ScriptedService) async {
    for coordinator in server.service.duty.coordinators {
      await coordinator.upkeep(at: server.clock.now())
    }
  }

  private static func server(
    _ storage: String, after last: ScriptedService? = nil
  ) throws -> ScriptedService {
    let server = try ScriptedService(
      storage: storage, more: StoreTransferTests.copies, sharing: last)
    server.observer.show(.accepted(pin(1)), at: host)
    return server
  }

  private static func reasons(_ server: ScriptedService) -> [String] {
    server.log.events("seal_broken").compactMap { $0["reason"]?.stringValue }
  }

  @Test("are not waited for longer than for a while, and not at all until the read that hangs ends")
  func reads() async throws {
    let due = Locked<[@Sendable () -> Void]>([])
    let reader = CopyReader(later: { _, work in due.withLock { $0.append(work) } })
    @Sendable func pass() {
      let works = due.withLock { due in
        defer { due = [] }
        return due
      }
      for work in works { work() }
    }
    #expect(await reader.read { 1 } == 1)
    pass()
    let (gate, answers) = (DispatchSemaphore(value: 0), Locked<[Int?]>([]))
    let hanging = [true, false].map { isHanging in
      Task {
        let answer = await reader.read { () -> Int in
          if isHanging { gate.wait() }
          return 2
        }
        answers.withLock { $0.append(answer) }
      }
    }
    // The one that does not hang may have been first.
    #expect(
      await eventually {
        pass()
        return answers.withLock { $0.contains(nil) && $0.count == 2 }
      })
    #expect(await reader.read { 3 } == nil)
    gate.signal()
    for task in hanging { await task.value }
    await withCheckedContinuation { continuation in
      reader.queue.async { continuation.resume() }
    }
    #expect(await reader.read { 4 } == 4)
  }

  @Test(
    "are none if their directory is not there, and are not known if it cannot be read",
    arguments: ["nowhere", "file", "loop"])
  func directory(_ name: String) async throws {
    let (directory, signer) = (
      try TemporaryDirectory(), DocumentSigner(key: try testSigningKey.get())
    )
    try directory.write("in the way", to: "file")
    let place = directory.path("loop")
    try FileManager.default.createSymbolicLink(atPath: place, withDestinationPath: place)
    let copies = LastCopies(store: nil, directory: directory.path(name), signer: { signer })
    #expect(await copies.find(Self.file).isAnswered == (name != "loop"))
    #expect(await copies.all(but: [], beside: [:])?.isEmpty == true)
  }

  /// What is known of a document that left, whose copy cannot be read.
  struct Left: Sendable, CustomTestStringConvertible {
    let testDescription: String
    var noted: Int64?
    var recorded: Int64?
    let isNeeded: Bool

    static let all = [
      Left(testDescription: "nothing", isNeeded: false),
      Left(testDescription: "a copy", noted: 3, isNeeded: true),
      Left(testDescription: "a copy, and an older record", noted: 3, recorded: 2, isNeeded: true),
      Left(testDescription: "a copy, and a record as new", noted: 3, recorded: 3, isNeeded: false),
    ]
  }

  @Test(
    "are waited for if one that was written, and is newer than its record, cannot be read",
    arguments: Left.all, [false, true])
  func needed(_ left: Left, isWholeFolder: Bool) async throws {
    let (directory, signer) = (
      try TemporaryDirectory(), DocumentSigner(key: try testSigningKey.get())
    )
    let place = directory.path(isWholeFolder ? "public" : "public/left.json")
    if !isWholeFolder { try directory.write("", to: "public/index.html") }
    try FileManager.default.createSymbolicLink(atPath: place, withDestinationPath: place)
    let mark = SealMark(directory: nil)
    mark.note(SealMark.Seen(id: String(repeating: "a", count: 32)))
    if let noted = left.noted {
      mark.note(copies: ["left.json": .init(epoch: 0, version: noted)], areWritten: false)
    }
    var records: [String: DocumentState] = [:]
    if let recorded = left.recorded {
      var state = DocumentState()
      state.number = .init(epoch: 0, version: recorded)
      records["left.json"] = state
    }
    let copies = LastCopies(
      store: SealedStore(MemoryStore(), keys: try SealedStoreTests.keys(), mark: mark),
      directory: directory.path("public"), signer: { signer })
    let all = await copies.all(but: ["new.json"], beside: records)
    #expect((all == nil) == left.isNeeded)
    // One that is configured is looked for by itself.
    #expect(await copies.all(but: ["left.json"], beside: [:])?.isEmpty == true)
  }

  @Test(
    "are out of reach if a disk or a file server fails, and may never have been there otherwise")
  func reasons() {
    for code in [EIO, ENOTCONN, ESTALE, ETIMEDOUT, EHOSTDOWN, EMFILE] {
      #expect(LastCopies.Found.Unknown(code) == .silent, "\(code)")
    }
    for code in [EACCES, EPERM, ELOOP] {
      #expect(LastCopies.Found.Unknown(code) == .unreadable, "\(code)")
    }
  }

  @Test("keep a document that has no record waiting, also if only its own copy fails to be read")
  func failing() throws {
    let signer = DocumentSigner(key: try testSigningKey.get())
    let copies = LastCopies(store: nil, directory: "unused", signer: { signer })
    func fault(_ unknown: LastCopies.Found.Unknown?) -> SealFault? {
      copies.fault(of: LastCopies.Found(unknown: unknown), Self.file, beside: nil, after: nil)
    }
    #expect(fault(.silent) == .copySilent(of: Self.file))
    #expect(fault(.unreadable) == nil)
    #expect(fault(nil) == nil)
  }

  @Test(
    "hold no document up if none was ever written, and the failed copy is told",
    arguments: ["{type: memory}", sqlite])
  func everUnreadable(_ storage: String) async throws {
    let server = try Self.server(storage)
    let directory = try #require(server.configuration.publishing.directory)
    try FileManager.default.createSymbolicLink(atPath: directory, withDestinationPath: directory)
    try await server.start()
    await server.service.probe(Self.host)
    #expect(try await server.pins(in: Self.file)[Self.host] == [pin(1)])
    #expect(await eventually { server.log.events("file_not_written").count == 1 })
    #expect(Self.reasons(server).isEmpty)
    await server.service.stop()
    // Nor at the next start, by which a copy was to be written.
    let second = try Self.server(storage, after: server)
    try await second.start()
    await second.service.probe(Self.host)
    #expect(try await second.pins(in: Self.file)[Self.host] == [pin(1)])
    #expect(Self.reasons(second).isEmpty)
    await second.service.stop()
  }

  @Test(
    "keep no server from its start whose store is well, and people are answered while a document waits"
  )
  func well() async throws {
    let first = try Self.server(Self.sqlite)
    try await first.start()
    try await StoreTransferTests.deny(pin(8), first)
    await first.service.stop()
    let second = try Self.server(Self.sqlite, after: first)
    second.observer.show(.accepted(pin(2)), at: "b.test")
    let absence = try Absence(of: second)
    try await second.start()
    #expect(try ReplayedStoreTests.denied(second) == [pin(8).base64])
    // A document that comes may have a copy there.
    try await second.reload(
      keys: "[{fqdn: \(Self.host)}, {fqdn: b.test}]", storage: Self.sqlite,
      more: StoreTransferTests.copies, judged: true)
    await second.service.probe("b.test")
    #expect(second.service.currentDocument("b.test.json") == nil)
    let told = Self.reasons(second)
    #expect(told.count == 1 && told.allSatisfy { $0.hasPrefix("publish.dir does not answer") })
    // It counts in the document that can have it, and 503 leaves open whether it does in the other.
    let denial = #"{"pin": "\#(pin(9).base64)", "why": "leaked", "force": true}"#
    let administered = AdministeredService(scripted: second)
    #expect(try await administered.call("POST", "/denials", denial).status == 503)
    #expect(
      try Set(ReplayedStoreTests.denied(second)) == [pin(8).base64, pin(9).base64])
    try await absence.end()
    await Self.upkeep(of: second)
    try await StoreTransferTests.deny(pin(9), second)
    #expect(second.log.events("store_believed").count == 1)
    await second.service.probe("b.test")
    #expect(try await second.pins(in: "b.test.json")["b.test"] == [pin(2)])
    await second.service.stop()
  }

  @Test(
    "are no first start for a store that forgets: it goes on from them once they can be read",
    arguments: Silence.allCases)
  func inMemory(_ silence: Silence) async throws {
    let first = try Self.server("{type: memory}")
    try await first.start()
    try await StoreTransferTests.deny(pin(8), first)
    await first.service.stop()
    let second = try Self.server("{type: memory}", after: first)
    let absence = try Absence(silence, of: second)
    try await second.start()
    await second.service.probe(Self.host)
    #expect(second.service.currentDocument(Self.file) == nil)
    #expect(try await second.get("/readyz").status == 503)
    #expect(Self.reasons(second).count == 1)
    #expect(Self.reasons(second).allSatisfy { $0.hasPrefix("publish.dir does not answer, or") })
    try await absence.end()
    await Self.upkeep(of: second)
    #expect(try ReplayedStoreTests.denied(second) == [pin(8).base64])
    await second.service.stop()
  }

  @Test(
    "beside which somebody's file cannot be read are gone on from, and are waited for if it is one of them",
    arguments: [false, true])
  func neighbour(isCopy: Bool) async throws {
    let first = try Self.server("{type: memory}")
    try await first.start()
    try await StoreTransferTests.deny(pin(8), first)
    await first.service.stop()
    let directory = try #require(first.configuration.publishing.directory)
    let (copy, place) = (
      directory + "/" + Self.file, directory + (isCopy ? "/" + Self.file : "/htpasswd")
    )
    if isCopy { try FileManager.default.moveItem(atPath: copy, toPath: directory + ".away") }
    try FileManager.default.createSymbolicLink(atPath: place, withDestinationPath: place)
    let second = try ScriptedService(
      keys: "[{fqdn: \(Self.host), file: renamed.json}]", more: StoreTransferTests.copies,
      sharing: first)
    second.observer.show(.accepted(pin(1)), at: Self.host)
    try await second.start()
    await second.service.probe(Self.host)
    #expect((second.service.currentDocument("renamed.json") == nil) == isCopy)
    #expect(Self.reasons(second).count == (isCopy ? 1 : 0))
    if isCopy {
      try FileManager.default.removeItem(atPath: copy)
      try FileManager.default.moveItem(atPath: directory + ".away", toPath: copy)
      await Self.upkeep(of: second)
      await second.service.probe(Self.host)
    }
    #expect(try ReplayedStoreTests.denied(second, "renamed.json") == [pin(8).base64])
    await second.service.stop()
  }

  @Test(
    "are waited for by a document whose record is older than the last copy, and it is not served",
    arguments: Silence.allCases)
  func behind(_ silence: Silence) async throws {
    let stage = try await ReplayedStoreTests.Stage(more: StoreTransferTests.copies)
    let older = try await stage.record()
    try await stage.deny(pin(8))
    await stage.server.service.stop()
    try stage.put(older)
    let second = try Self.server(stage.yaml, after: stage.server)
    let absence = try Absence(silence, of: second)
    try await second.start()
    #expect(second.service.currentDocument(Self.file) == nil)
    #expect(Self.reasons(second).count == 1)
    #expect(Self.reasons(second).allSatisfy { $0.hasPrefix("publish.dir does not answer, or") })
    try await absence.end()
    await Self.upkeep(of: second)
    #expect(try ReplayedStoreTests.denied(second) == [pin(8).base64])
    #expect(second.log.events("store_went_back").count == 1)
    await second.service.stop()
    await stage.end()
  }

  @Test(
    "are waited for by a store that is lost, and stand in for it then", arguments: Silence.allCases)
  func lost(_ silence: Silence) async throws {
    let stage = try await ReplayedStoreTests.Stage(more: StoreTransferTests.copies)
    try await stage.deny(pin(8))
    await stage.server.service.stop()
    for name in [Self.file, ".store"] { try stage.delete(name) }
    let second = try Self.server(stage.yaml, after: stage.server)
    let absence = try Absence(silence, of: second)
    try await second.service.start()
    let told = second.log.events("store_away").compactMap { $0["reason"]?.stringValue }
    try #require(told.count == 1 && told.allSatisfy { $0.contains("publish.dir") })
    #expect(second.service.currentDocument(Self.file) == nil)
    let repair = try StoreRepair(second.configuration)
    await #expect(throws: StoreRepairError.store(LastCopies.silence)) {
      _ = try await repair.reset(".store", to: .anew, at: second.clock.now())
    }
    await repair.close()
    try await absence.end()
    #expect(await eventually { second.log.events("store_came").count == 1 })
    #expect(second.log.events("store_lost").count == 1)
    #expect(try ReplayedStoreTests.denied(second) == [pin(8).base64])
    await second.service.stop()
    await stage.end()
  }
}

/// A store that forgets, and copies that somebody removed.
@Suite("Copies that are gone", .timeLimit(.minutes(2)))
struct GoneCopyTests {
  private static let file = StoreTransferTests.file

  @Test("are told at a start that has nothing else to go on from, and not where there was none")
  func told() async throws {
    var last: ScriptedService?
    for isGone in [false, false, true, false] {
      if isGone, let last {
        try FileManager.default.removeItem(at: last.directory.file("public"))
        // What begins anew has a number by the clock, which is above the last one's by then.
        last.clock.advance(60)
      }
      let server = try ScriptedService(more: StoreTransferTests.copies, sharing: last)
      server.observer.show(.accepted(pin(1)), at: StoreTransferTests.host)
      try await server.start()
      await server.service.probe(StoreTransferTests.host)
      try await Self.untilBegun(server)
      let told = server.log.events("last_copy_gone").compactMap { $0["file"]?.stringValue }
      #expect(told == (isGone ? [Self.file] : []))
      #expect(server.service.currentDocument(Self.file) != nil)
      // The next one is to find it.
      while await !server.service.documents.finishCopies().isEmpty {}
      await server.service.stop()
      last = server
    }
  }

  /// On a machine with much to do a start may not wait for the copy until it is read: then the document begins with what is due each
  /// minute.
  private static func untilBegun(_ server: ScriptedService) async throws {
    let directory = try #require(server.configuration.publishing.directory)
    while server.service.currentDocument(file) == nil {
      await withCheckedContinuation { continuation in
        CopyReader.at(directory).queue.async { continuation.resume() }
      }
      for coordinator in server.service.duty.coordinators {
        await coordinator.upkeep(at: server.clock.now())
      }
      await server.service.probe(StoreTransferTests.host)
    }
  }
}

/// A store that forgets, under another `prv.pem` than its copies.
@Suite("Copies that another signing key signed", .timeLimit(.minutes(2)))
struct FormerKeyCopyTests {
  private static let file = StoreTransferTests.file

  private static func start(after last: ScriptedService? = nil) async throws -> ScriptedService {
    let server = try ScriptedService(more: StoreTransferTests.copies, sharing: last)
    server.observer.show(.accepted(pin(1)), at: StoreTransferTests.host)
    try await server.start()
    await server.service.probe(StoreTransferTests.host)
    return server
  }

  /// Puts a key in the place of `prv.pem`.
  private static func put(_ key: SigningKey, in directory: TemporaryDirectory) throws {
    for name in ["prv.pem", "pub.pem"] {
      try FileManager.default.removeItem(at: directory.file(name))
    }
    try key.write(to: directory.file("prv.pem"))
    try key.writePublicKey(to: directory.file("pub.pem"))
  }

  @Test("are gone on from while prv.old.pem is there, if key sets vouch for them")
  func former() async throws {
    let first = try await Self.start()
    let directory = first.directory
    try LostKeySetTests.rotate(directory)
    try await StoreTransferTests.deny(pin(8), first)
    let last = try #require(first.service.currentDocument(Self.file)?.number)
    try #require(last.epoch == 1)
    await first.service.stop()
    try testSigningKey.get().write(to: directory.file("prv.old.pem"))
    let key = try otherSigningKey.get()
    try Self.put(key, in: directory)
    let second = try await Self.start(after: first)
    #expect(second.log.events("last_copy_taken").count == 1)
    #expect(try ReplayedStoreTests.denied(second) == [pin(8).base64])
    let document = try #require(second.service.currentDocument(Self.file))
    #expect(try #require(document.number) > last)
    #expect(
      LastCopies.document(document.bytes, Self.file, signedBy: key.publicKeyPEM) != nil)
    await second.service.stop()
  }

  @Test("keep a document from beginning anew without prv.old.pem, until a person decides")
  func stranger() async throws {
    let first = try await Self.start()
    let directory = first.directory
    try await StoreTransferTests.deny(pin(8), first)
    await first.service.stop()
    try Self.put(try otherSigningKey.get(), in: directory)
    let second = try await Self.start(after: first)
    let reasons = second.log.events("seal_broken").compactMap { $0["reason"]?.stringValue }
    #expect(reasons.count == 1 && reasons.allSatisfy { $0.contains("no key here signed it") })
    #expect(second.service.currentDocument(Self.file) == nil)
    #expect(try await second.get("/readyz").status == 503)
    await second.service.stop()
    try Self.put(try testSigningKey.get(), in: directory)
    let third = try await Self.start(after: second)
    #expect(try ReplayedStoreTests.denied(third) == [pin(8).base64])
    await third.service.stop()
  }
}
