import CanonicalJSON
import Foundation
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@testable import RegistryServer
@testable import RegistryStores

/// `tls.dir` from an archive that is older than the last `keys rotate`, beside copies that are newer.
@Suite("A store whose server has lost a key set", .timeLimit(.minutes(2)))
struct LostKeySetTests {
  private static let file = StoreTransferTests.file

  /// Gives the server its next online key, as `keys rotate` does.
  @discardableResult
  static func rotate(_ directory: TemporaryDirectory) throws -> TrustSigningKey {
    let shipped = try TrustSigningKey(file: directory.file("prv.pem"))
    let online = try TrustSigningKey.generate(.ed25519)
    let chain = try? JSONValue(
      parsing: [UInt8](Data(contentsOf: directory.file("keysets/" + file))))
    var list = try chain.map { try KeySetList($0) } ?? KeySetList(registry: file)
    try list.append(
      root: KeyRole(keys: [shipped.roleKey], threshold: 1),
      online: KeyRole(keys: [online.roleKey], threshold: 1))
    try list.sign(with: shipped)
    for name in ["keysets", "online"] {
      try FileManager.default.createDirectory(
        at: directory.file(name), withIntermediateDirectories: true)
    }
    try online.write(to: directory.file("online/\(list.sets.count).pem"))
    try directory.write(list.json.canonicalBytes, to: "keysets/" + file)
    return online
  }

  /// What was lost beside the key set.
  enum Loss: CaseIterable, Sendable { case storeAndMark, storeButForTheBackup, storeAndNewestMark }

  @Test(
    "is not taken back behind the copy that the lost set signed, nor is that written over",
    arguments: Loss.allCases)
  func lostKeySet(_ loss: Loss) async throws {
    let (server, base, _) = try await StoreTransferTests.stage(
      .sqlite, more: StoreTransferTests.copies)
    _ = try await StoreTransferTests.backUp(server, to: "backup")
    let directory = server.directory
    let mark = try Data(contentsOf: directory.file(SealMark.fileName))
    try Self.rotate(directory)
    try await StoreTransferTests.deny(pin(8), server)
    let last = try #require(server.service.currentDocument(Self.file))
    try #require(last.number?.epoch == 1)
    await server.service.stop()
    await base.close()
    for name in [SealMark.fileName, "registry.db", "registry.db-wal", "registry.db-shm"] {
      try? FileManager.default.removeItem(at: directory.file(name))
    }
    for name in ["keysets", "online"] {
      try FileManager.default.removeItem(at: directory.file(name))
    }
    switch loss {
    case .storeAndMark: break
    case .storeAndNewestMark: try directory.write([UInt8](mark), to: SealMark.fileName)
    case .storeButForTheBackup:
      await #expect(
        throws: StoreTransferError.older("publish.dir has a newer \(Self.file)")
      ) { try await StoreTransferTests.restore(server, from: "backup") }
      try await StoreTransferTests.restore(server, from: "backup", isOlderMeant: true)
    }
    let second = try StoreTransferTests.next(
      "{type: sqlite, dsn: \"DIR/registry.db\"}", after: server, more: StoreTransferTests.copies)
    try await second.start()
    #expect(second.service.currentDocument(Self.file)?.number == last.number)
    #expect(try ReplayedStoreTests.denied(second).contains(pin(8).base64))
    #expect(!second.log.events("signing_impossible").isEmpty)
    await second.service.stop()
    #expect(
      try [UInt8](Data(contentsOf: directory.file("public/" + Self.file))) == last.bytes)
  }

  @Test("has no copy by a set that nobody known here has signed, and tells of it at a restore")
  func strangersKeySet() async throws {
    let (server, base, _) = try await StoreTransferTests.stage(
      .sqlite, more: StoreTransferTests.copies)
    let directory = server.directory
    _ = try await StoreTransferTests.backUp(server, to: "backup")
    let good = try #require(server.service.currentDocument(Self.file))
    await server.service.stop()
    await base.close()
    // The payload is the server's own, and the rest is somebody's who has other root keys.
    let stranger = try TrustSigningKey.generate(.ed25519)
    var members = try #require(try JSONValue(parsing: good.bytes).objectValue)
    var statement = try #require(members["statement"]?.objectValue)
    (statement["epoch"], statement["version"]) = (.integer(1), .integer(1_900_000_000))
    statement["denied"] = .array([.string(pin(1).base64)])
    members["statement"] = .object(statement)
    let role = try KeyRole(keys: [stranger.roleKey], threshold: 1)
    var list = KeySetList(registry: Self.file)
    try list.append(root: role, online: role)
    try list.sign(with: stranger)
    members["keySets"] = list.json
    let signature = try stranger.signature(.statement, over: statement)
    members["statementSignatures"] = .array([signature.json])
    try directory.write(JSONValue.object(members).canonicalBytes, to: "public/" + Self.file)
    for name in [SealMark.fileName, "registry.db", "registry.db-wal", "registry.db-shm"] {
      try? FileManager.default.removeItem(at: directory.file(name))
    }
    await #expect(
      throws: StoreTransferError.older(
        "publish.dir has a newer \(Self.file), under other keys than those in tls.dir")
    ) { try await StoreTransferTests.restore(server, from: "backup") }
    try await StoreTransferTests.restore(server, from: "backup", isOlderMeant: true)
    let second = try StoreTransferTests.next(
      "{type: sqlite, dsn: \"DIR/registry.db\"}", after: server, more: StoreTransferTests.copies)
    try await second.start()
    #expect(try !ReplayedStoreTests.denied(second).contains(pin(1).base64))
    #expect(try await second.get("/readyz").status == 200)
    await second.service.stop()
  }
}

/// What a thief puts into `publish.dir` with keys that sign no longer.
@Suite("A copy that a withdrawn key signed", .timeLimit(.minutes(2)))
struct WithdrawnKeyCopyTests {
  private static let file = StoreTransferTests.file
  private static let storage = "{type: sqlite, dsn: \"DIR/registry.db\"}"
  private static let ahead: Int64 = 10_000_000

  private static func start(
    after last: ScriptedService? = nil, isLeading: Bool = true
  ) async throws -> ScriptedService {
    let server = try ScriptedService(
      storage: storage, more: StoreTransferTests.copies, sharing: last)
    server.observer.show(.accepted(pin(1)), at: StoreTransferTests.host)
    try await server.start(isLeading: isLeading)
    await server.service.probe(StoreTransferTests.host)
    return server
  }

  /// The document with a denial and a later number, signed anew.
  private static func planted(
    _ good: PublishedDocument, by key: TrustSigningKey
  ) throws -> [UInt8] {
    var members = try #require(try JSONValue(parsing: good.bytes).objectValue)
    var statement = try #require(members["statement"]?.objectValue)
    statement["version"] = .integer(try #require(good.number).version + ahead)
    statement["denied"] = .array([.string(pin(9).base64)])
    members["statement"] = .object(statement)
    members["statementSignatures"] = .array([
      try key.signature(.statement, over: statement).json
    ])
    return JSONValue.object(members).canonicalBytes
  }

  @Test("is not gone on from, and one of the newest key set's key is")
  func withdrawn() async throws {
    var last = try await Self.start()
    let directory = last.directory
    let stolen = try LostKeySetTests.rotate(directory)
    let newest = try LostKeySetTests.rotate(directory)
    let shipped = try TrustSigningKey(file: directory.file("prv.pem"))
    try await StoreTransferTests.deny(pin(8), last)
    await last.service.stop()
    for (key, isRight) in [(stolen, false), (shipped, false), (newest, true)] {
      let good = try #require(last.service.currentDocument(Self.file))
      let number = try #require(good.number)
      try #require(number.epoch == 2)
      try directory.write(try Self.planted(good, by: key), to: "public/" + Self.file)
      last = try await Self.start(after: last)
      #expect(try ReplayedStoreTests.denied(last).contains(pin(9).base64) == isRight)
      #expect(try ReplayedStoreTests.denied(last).contains(pin(8).base64))
      let next = try #require(last.service.currentDocument(Self.file)?.number)
      #expect((next.version >= number.version + Self.ahead) == isRight)
      await last.service.stop()
    }
  }

  @Test(
    "stands in for a lost store if it is the last one, though the next key set was made since",
    arguments: [false, true])
  func before(isPlanted: Bool) async throws {
    let first = try await Self.start()
    let directory = first.directory
    let online = try LostKeySetTests.rotate(directory)
    try await StoreTransferTests.deny(pin(8), first)
    await first.service.stop()
    let good = try #require(first.service.currentDocument(Self.file))
    try #require(good.number?.epoch == 1)
    try LostKeySetTests.rotate(directory)
    if isPlanted {
      try directory.write(try Self.planted(good, by: online), to: "public/" + Self.file)
    }
    for name in ["registry.db", "registry.db-wal", "registry.db-shm"] {
      try? FileManager.default.removeItem(at: directory.file(name))
    }
    let second = try await Self.start(after: first, isLeading: !isPlanted)
    #expect(second.log.events("store_lost").count == (isPlanted ? 0 : 1))
    if isPlanted {
      #expect(try await second.get("/readyz").status == 503)
    } else {
      try await StoreTransferTests.deny(pin(7), second)
      #expect(Set(try ReplayedStoreTests.denied(second)) == [pin(7).base64, pin(8).base64])
      #expect(second.service.currentDocument(Self.file)?.number?.epoch == 2)
    }
    await second.service.stop()
  }

  @Test("counts from before a key set where nobody noted which copy was the last")
  func unnoted() async throws {
    func start(_ last: ScriptedService?) async throws -> ScriptedService {
      let server = try ScriptedService(
        storage: "{type: memory}", more: StoreTransferTests.copies, sharing: last)
      server.observer.show(.accepted(pin(1)), at: StoreTransferTests.host)
      try await server.start()
      await server.service.probe(StoreTransferTests.host)
      return server
    }
    let first = try await start(nil)
    let directory = first.directory
    try LostKeySetTests.rotate(directory)
    try await StoreTransferTests.deny(pin(8), first)
    await first.service.stop()
    try #require(first.service.currentDocument(Self.file)?.number?.epoch == 1)
    try LostKeySetTests.rotate(directory)
    try FileManager.default.removeItem(at: directory.file("last-copies"))
    let second = try await start(first)
    #expect(try ReplayedStoreTests.denied(second) == [pin(8).base64])
    await second.service.stop()
  }
}
