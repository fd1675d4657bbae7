import CanonicalJSON
import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@testable import RegistryServer

/// What becomes of a store when `prv.pem` is another one.
@Suite("Another signing key", .timeLimit(.minutes(3)))
struct SigningKeyChangeTests {
  static let file = SealedServiceTests.file
  static let host = SealedServiceTests.host

  /// A service that starts with another key on the store, and beside the files of this one.
  ///
  /// - Parameter former: whether the key before is there as `prv.old.pem`.
  static func other(
    than first: ScriptedService, _ yaml: String, former: Bool
  ) throws -> ScriptedService {
    let directory = first.directory
    let place = URL(filePath: directory.path("other"))
    try? FileManager.default.removeItem(at: place)
    try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
    try otherSigningKey.get().write(to: place.appending(path: "prv.pem"))
    if former { try testSigningKey.get().write(to: place.appending(path: "prv.old.pem")) }
    return try ScriptedService(storage: yaml, tls: "other", sharing: first)
  }

  @Test(
    "serves the last copy, signs nothing, does not lead, is not ready and alerts, until it is adopted",
    arguments: StoreKind.shared)
  func otherKey(_ kind: StoreKind) async throws {
    let (first, base, yaml, ground) = try await SealedServiceTests.stage(kind)
    let published = try await first.get("/api/v1/\(Self.file)").body
    await first.service.stop()
    let second = try Self.other(than: first, yaml, former: true)
    second.observer.show(.accepted(pin(3)), at: Self.host)
    try await second.start(isLeading: false)
    await second.service.probe(Self.host)
    second.clock.advance(2 * DocumentSigner.renewal)
    await second.service.probe(Self.host)
    try await expectOtherKey(second, published)
    #expect(second.observer.probes(at: Self.host) > 0)
    #expect(try await !second.isLeader)
    // The operator's word, once.
    let repair = try StoreRepair(second.configuration)
    await #expect(throws: StoreRepairError.otherKey(own: try Self.id(otherSigningKey))) {
      try await repair.adopt(pin(1), believingUnverified: false)
    }
    let names = try await repair.adopt(Self.id(otherSigningKey), believingUnverified: false)
    #expect(names == [Self.file])
    // No key set leads apps from the key before to this one.
    #expect(await repair.documentsWithoutKeySets() == [Self.file])
    #expect(try await repair.adopt(Self.id(otherSigningKey), believingUnverified: false) == [])
    await repair.close()
    #expect(await eventually { second.log.events("leading").count == 1 })
    #expect(
      await eventually {
        let bytes = second.service.currentDocument(Self.file)?.bytes ?? []
        return bytes != published
          && LastCopies.document(
            bytes, Self.file, signedBy: (try? otherSigningKey.get().publicKeyPEM) ?? "") != nil
      })
    await second.service.stop()
    // The key before is no more needed, and not believed alone.
    try FileManager.default.removeItem(at: first.directory.file("other/prv.old.pem"))
    let third = try ScriptedService(storage: yaml, tls: "other", sharing: first)
    third.observer.show(.accepted(pin(3)), at: Self.host)
    try await third.start()
    #expect(try await third.get("/readyz").status == 200)
    await third.service.stop()
    let back = try ScriptedService(storage: yaml, sharing: first)
    try await back.start(isLeading: false)
    #expect(back.log.events("other_signing_key").count == 1)
    await back.service.stop()
    await base.close()
    withExtendedLifetime(ground) {}
  }

  private func expectOtherKey(_ server: ScriptedService, _ published: [UInt8]) async throws {
    let document = try await server.get("/api/v1/\(Self.file)")
    #expect(document.status == 200 && document.body == published)
    #expect(try await server.get("/readyz").status == 503)
    let events = server.log.events("other_signing_key")
    #expect(events.count == 1)
    let reason = events.first?["reason"]?.stringValue ?? ""
    #expect(reason.contains("ssl-pinning keys adopt \(try Self.id(otherSigningKey).base64)"))
    let page = String(decoding: try await server.get("/metrics").body, as: UTF8.self)
    #expect(page.contains("ssl_pinning_alerts{kind=\"other-signing-key\"} 1"))
  }

  private static func id(_ key: Result<SigningKey, any Error>) throws -> SPKIPin {
    try key.get().trustKey.roleKey.id
  }

  @Test(
    "without the key before nothing verifies the store: it takes the operator's word for that, too")
  func lostKey() async throws {
    let (first, base, yaml, _) = try await SealedServiceTests.stage(.sqlite)
    await first.service.stop()
    let second = try Self.other(than: first, yaml, former: false)
    let repair = try StoreRepair(second.configuration)
    let id = try Self.id(otherSigningKey)
    await #expect(throws: StoreRepairError.unverifiable(try Self.id(testSigningKey))) {
      try await repair.adopt(id, believingUnverified: false)
    }
    #expect(try await repair.adopt(id, believingUnverified: true) == [Self.file])
    await repair.close()
    second.observer.show(.accepted(pin(1)), at: Self.host)
    try await second.start()
    #expect(try await second.get("/readyz").status == 200)
    await second.service.stop()
    await base.close()
  }

  @Test("an edited record is not adopted")
  func editedRecord() async throws {
    let (first, base, yaml, _) = try await SealedServiceTests.stage(.sqlite)
    await first.service.stop()
    let record = try #require(try await base.record(named: Self.file))
    var bytes = record.bytes
    bytes[bytes.count - 20] ^= 1
    _ = try await base.replace(Self.file, version: record.version, with: bytes)
    let second = try Self.other(than: first, yaml, former: true)
    let repair = try StoreRepair(second.configuration)
    #expect(
      try await repair.adopt(Self.id(otherSigningKey), believingUnverified: true) == [])
    await repair.close()
    try await second.start()
    #expect(second.log.events("seal_broken").count == 1)
    await second.service.stop()
    await base.close()
  }

  @Test(
    "two servers in mid-rotation read what either wrote, and the one out of force writes nothing",
    arguments: StoreKind.shared)
  func midRotation(_ kind: StoreKind) async throws {
    let (old, base, yaml, ground) = try await SealedServiceTests.stage(kind)
    let new = try Self.other(than: old, yaml, former: true)
    new.observer.show(.accepted(pin(1)), at: Self.host)
    try await new.start(isLeading: false)
    #expect(try await new.get("/readyz").status == 503)
    // The old key is in force: what its server publishes goes on.
    old.observer.show(.accepted(pin(2)), at: Self.host)
    await old.service.probe(Self.host)
    #expect(try await old.pins(in: Self.file)[Self.host] == [pin(1), pin(2)])
    #expect(try await old.get("/readyz").status == 200)
    // Now the new one is.
    let repair = try StoreRepair(new.configuration)
    _ = try await repair.adopt(Self.id(otherSigningKey), believingUnverified: false)
    await repair.close()
    #expect(await eventually { new.log.events("leading").count == 1 })
    #expect(await eventually { old.log.events("other_signing_key").count == 1 })
    #expect(await eventually { old.log.events("not_leading").count == 1 })
    let last = old.service.currentDocument(Self.file)?.bytes
    old.observer.show(.accepted(pin(4)), at: Self.host)
    await old.service.probe(Self.host)
    #expect(old.service.currentDocument(Self.file)?.bytes == last)
    #expect(try await old.get("/readyz").status == 503)
    #expect(await eventually { new.log.events("store_believed").count == 1 })
    new.observer.show(.accepted(pin(3)), at: Self.host)
    await new.service.probe(Self.host)
    let document = try #require(new.service.currentDocument(Self.file))
    let text = String(decoding: document.bytes, as: UTF8.self)
    for key in [pin(1), pin(2), pin(3)] { #expect(text.contains(key.base64)) }
    #expect(!text.contains(pin(4).base64))
    await new.service.stop()
    await old.service.stop()
    await base.close()
    withExtendedLifetime(ground) {}
  }

  @Test("tells at its start, and in what it shows, where the root key is on the server")
  func rootOnServer() async throws {
    let first = try ScriptedService()
    first.observer.show(.accepted(pin(1)), at: Self.host)
    try await first.start()
    #expect(first.log.events("root_key_on_server").count == 1)
    let shown = try await AdministeredService(scripted: first).call("GET", "/keysets")
    #expect(shown["documents", "0", "rootHeld"] == true)
    await first.service.stop()
    // A root key that is nowhere here, and an online key that is.
    let (root, online) = (
      try TrustSigningKey.generate(.ed25519), try TrustSigningKey.generate(.p256)
    )
    var list = KeySetList(registry: Self.file)
    try list.append(
      root: KeyRole(keys: [root.roleKey], threshold: 1),
      online: KeyRole(keys: [online.roleKey], threshold: 1))
    for key in [root, try testSigningKey.get().trustKey] { try list.sign(with: key) }
    for folder in ["keysets", "online"] {
      try FileManager.default.createDirectory(
        at: first.directory.file(folder), withIntermediateDirectories: true)
    }
    try online.write(to: first.directory.file("online/first.pem"))
    try Data(list.json.canonicalBytes).write(to: first.directory.file("keysets/" + Self.file))
    let second = try ScriptedService(sharing: first)
    second.observer.show(.accepted(pin(1)), at: Self.host)
    try await second.start()
    #expect(second.log.events("root_key_on_server").isEmpty)
    let apart = try await AdministeredService(scripted: second).call("GET", "/keysets")
    #expect(apart["documents", "0", "rootHeld"] == false)
    await second.service.stop()
  }

  @Test("private files that others can read are told at the start and at each reading")
  func exposedFiles() async throws {
    let server = try ScriptedService()
    server.observer.show(.accepted(pin(1)), at: Self.host)
    func told() -> Int { server.log.events("private_file_exposed").count }
    try FileManager.default.setAttributes(
      [.posixPermissions: 0o644], ofItemAtPath: server.directory.path("prv.pem"))
    try await server.start()
    #expect(told() == 1)
    await server.service.readAgain { () throws(ConfigurationError) in server.configuration }
    #expect(told() == 2)
    try FileManager.default.setAttributes(
      [.posixPermissions: 0o600], ofItemAtPath: server.directory.path("prv.pem"))
    await server.service.readAgain { () throws(ConfigurationError) in server.configuration }
    #expect(told() == 2)
    await server.service.stop()
  }

  @Test("at SIGHUP another prv.pem is refused and said; the adopted one is taken")
  func signal() async throws {
    let (server, base, yaml, _) = try await SealedServiceTests.stage(.sqlite)
    let keys = server.directory
    for file in ["prv.pem", "pub.pem"] { try FileManager.default.removeItem(at: keys.file(file)) }
    try otherSigningKey.get().write(to: keys.file("prv.pem"))
    await server.service.readAgain { () throws(ConfigurationError) in server.configuration }
    let refused = server.log.events("configuration_refused")
    #expect(refused.first?["reason"]?.stringValue?.contains("the store is sealed under") == true)
    server.observer.show(.accepted(pin(2)), at: Self.host)
    await server.service.probe(Self.host)
    #expect(try await server.pins(in: Self.file)[Self.host] == [pin(1), pin(2)])
    #expect(try await server.get("/readyz").status == 200)
    try testSigningKey.get().write(to: keys.file("prv.old.pem"))
    let repair = try StoreRepair(server.configuration)
    _ = try await repair.adopt(Self.id(otherSigningKey), believingUnverified: false)
    await repair.close()
    await server.service.readAgain { () throws(ConfigurationError) in server.configuration }
    #expect(server.log.events("configuration_read_again").count == 1)
    #expect(
      await eventually {
        LastCopies.document(
          server.service.currentDocument(Self.file)?.bytes ?? [], Self.file,
          signedBy: (try? otherSigningKey.get().publicKeyPEM) ?? "") != nil
      })
    #expect(try await server.get("/readyz").status == 200)
    await server.service.stop()
    await base.close()
    _ = yaml
  }
}

extension ScriptedService {
  /// Whether the service says that it leads.
  fileprivate var isLeader: Bool {
    get async throws {
      String(decoding: try await get("/metrics").body, as: UTF8.self)
        .contains("\nssl_pinning_leader 1")
    }
  }
}
