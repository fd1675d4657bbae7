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
  private static func rotate(_ directory: TemporaryDirectory) throws {
    let shipped = try TrustSigningKey(file: directory.file("prv.pem"))
    let online = try TrustSigningKey.generate(.ed25519)
    var list = KeySetList(registry: file)
    try list.append(
      root: KeyRole(keys: [shipped.roleKey], threshold: 1),
      online: KeyRole(keys: [online.roleKey], threshold: 1))
    try list.sign(with: shipped)
    for name in ["keysets", "online"] {
      try FileManager.default.createDirectory(
        at: directory.file(name), withIntermediateDirectories: true)
    }
    try online.write(to: directory.file("online/1.pem"))
    try directory.write(list.json.canonicalBytes, to: "keysets/" + file)
  }

  @Test(
    "is not taken back behind the copy that the lost set signed, nor is that written over",
    arguments: [false, true])
  func lostKeySet(isRestored: Bool) async throws {
    let (server, base, _) = try await StoreTransferTests.stage(
      .sqlite, more: StoreTransferTests.copies)
    _ = try await StoreTransferTests.backUp(server, to: "backup")
    let directory = server.directory
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
    if isRestored {
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
