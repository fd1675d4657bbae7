import CanonicalJSON
import Foundation
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@testable import RegistryServer

@Suite("What a store has, for those beside the server", .timeLimit(.minutes(2)))
struct StoredDocumentsTests {
  /// Set 1 of a document, by the key that apps ship.
  private func writeSet(in directory: TemporaryDirectory, online: TrustSigningKey) throws {
    let shipped = try TrustSigningKey(file: directory.file("prv.pem"))
    var list = KeySetList(registry: "a.json")
    try list.append(
      root: KeyRole(keys: [shipped.roleKey], threshold: 1),
      online: KeyRole(keys: [online.roleKey], threshold: 1))
    try list.sign(with: shipped)
    for name in ["keysets", "online"] {
      try FileManager.default.createDirectory(
        at: directory.file(name), withIntermediateDirectories: true)
    }
    try online.write(to: directory.file("online/1.pem"))
    try directory.write(list.json.canonicalBytes, to: "keysets/a.json")
  }

  @Test(
    "tells the key sets of a document, and config check one that is not what was published",
    arguments: ["{type: fs, dump_dir: \"DIR/state\"}", "{type: sqlite, dsn: \"DIR/store.db\"}"])
  func keySets(storage: String) async throws {
    let server = try ScriptedService(keys: "[{fqdn: a.test, file: a.json}]", storage: storage)
    let path = server.directory.path()
    let configuration = try configuration(
      """
      keys: [{fqdn: a.test, file: a.json}]
      server: {listen: "127.0.0.1:0"}
      storage: \(storage.replacing("DIR", with: path))
      tls: {dir: "\(path)"}
      """)
    func told() async throws -> [String] {
      try await ConfigurationTrial(configuration, at: server.clock.now()).warnings
    }
    try writeSet(
      in: server.directory, online: TrustSigningKey(file: server.directory.file("prv.pem")))
    server.observer.show(.accepted(pin(1)), at: "a.test")
    try await server.start()
    #expect(server.service.currentDocument("a.json")?.keySetEpoch == 1)
    await server.service.stop()
    func count(_ file: String) async -> Int? {
      switch try? await StoredDocuments.keySets(of: file, in: configuration) {
      case .told(let sets): sets.count
      case .unknown, nil: nil
      }
    }
    #expect(await count("a.json") == 1)
    #expect(await count("b.json") == 0)
    // A store that is gone, or another one, tells nothing as long as sealed-store is there.
    let mark = server.directory.file("sealed-store")
    let id = try Data(contentsOf: mark)
    try Data("0123\n".utf8).write(to: mark)
    #expect(await count("a.json") == nil)
    #expect(await count("b.json") == nil)
    try id.write(to: mark)
    let store = try #require(
      ["state", "store.db"].map(server.directory.file).first {
        FileManager.default.fileExists(atPath: $0.path(percentEncoded: false))
      })
    let aside = server.directory.file("aside")
    try FileManager.default.moveItem(at: store, to: aside)
    #expect(await count("a.json") == nil)
    try FileManager.default.moveItem(at: aside, to: store)
    #expect(try await told() == [])
    for name in ["keysets", "online"] {
      try FileManager.default.removeItem(at: server.directory.file(name))
    }
    try writeSet(in: server.directory, online: .generate(.ed25519))
    let warning = try #require(try await told().first)
    #expect(warning.contains("key set 1 is another one than was published; hint: "))
    #expect(
      warning.contains("keysets/a.json must go on from the keySets of the published document"))
  }
}
