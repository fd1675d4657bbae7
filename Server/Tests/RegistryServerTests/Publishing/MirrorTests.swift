import CanonicalJSON
import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@testable import RegistryCore
@testable import RegistryServer
@testable import RegistryStores

@Suite("Mirrors, and keys besides") struct MirrorTests {
  private static let now: Int64 = 1_780_000_000
  private static let file = "www.example.com.json"

  private let directory: TemporaryDirectory

  init() throws { directory = try makeKeyDirectory() }

  private func signer(_ mirrors: [String] = []) throws -> DocumentSigner {
    try DocumentSigner(
      directory: directory.path(), publishing: PublishingConfiguration(mirrors: mirrors))
  }

  @Test(
    "a document's name is appended to a mirror's URL",
    arguments: [
      ("https://m.example", "a.json", "https://m.example/a.json"),
      ("https://m.example/x/", "a.json", "https://m.example/x/a.json"),
      ("https://m.example/x", "a b?é.json", "https://m.example/x/a%20b%3F%C3%A9.json"),
    ])
  func url(_ base: String, _ file: String, _ url: String) throws {
    #expect(try PublishingConfiguration.mirror(of: file, at: base).description == url)
  }

  @Test("another list of mirrors is published at once, after a restart too; the same one never")
  func published() async throws {
    let document = try #require(
      try configuration("keys: [{fqdn: www.example.com, domainName: www.example.com}]")
        .documents.first)
    let endpoint = try #require(document.endpoints.first)
    let settings = CoordinatorSettings(document, tls: TLSConfiguration(confirmations: 1))
    let store = MemoryStore()
    func coordinator(
      _ signer: DocumentSigner
    ) async throws -> (coordinator: DocumentCoordinator, published: PublishedDocuments) {
      let published = PublishedDocuments(files: [Self.file])
      let coordinator = DocumentCoordinator(
        settings,
        services: CoordinatorServices(
          signing: Locked(signer), store: store, published: published, health: ServiceHealth(),
          log: .silent))
      try await coordinator.open()
      return (coordinator, published)
    }
    func mirrors(_ published: PublishedDocuments) throws -> (JSONValue?, Int64?) {
      let document = try #require(published.document(Self.file))
      let json = try JSONValue(parsing: document.bytes).objectValue
      return (json?["statement"]?.objectValue?["mirrors"], document.number?.version)
    }
    let first = try await coordinator(try signer())
    _ = await first.coordinator.enter(.accepted(pin(1)), of: endpoint, at: Self.now)
    #expect(try mirrors(first.published) == (nil, Self.now))
    first.coordinator.services.signing.withLock { [new = try signer(["https://m.example/"])] in
      $0 = new
    }
    await first.coordinator.reconfigure(settings)
    await first.coordinator.upkeep(at: Self.now + 60)
    let list = JSONValue.array([.string("https://m.example/" + Self.file)])
    #expect(try mirrors(first.published) == (list, Self.now + 60))
    // The same list in another process, then none.
    for (bases, version) in [(["https://m.example"], Self.now + 60), ([], Self.now + 120)] {
      let next = try await coordinator(try signer(bases))
      await next.coordinator.upkeep(at: Self.now + 120)
      _ = await next.coordinator.enter(.accepted(pin(1)), of: endpoint, at: Self.now + 180)
      #expect(try mirrors(next.published) == (bases.isEmpty ? nil : list, version))
    }
  }

  @Test("keys that a key set asks for besides sign, too, and one that is missing is told")
  func besides() throws {
    let shipped = try TrustSigningKey(file: directory.file("prv.pem"))
    let other = try TrustSigningKey.generate(.ed25519)
    var list = KeySetList(registry: Self.file)
    let role = try KeyRole(keys: [shipped.roleKey], threshold: 1)
    try list.append(root: role, online: role)
    let newest = try #require(list.newest)
    var keySet = newest.keySet.json
    var online = try #require(keySet["online"]?.objectValue)
    online["also"] = .object([
      "threshold": .number(1),
      "keys": .array([
        .object([
          "alg": .string("EdDSA"),
          "spki": .string(StrictBase64.encode(other.roleKey.spki)),
        ])
      ]),
    ])
    keySet["online"] = .object(online)
    let signature = try shipped.signature(.keySet, over: keySet)
    try FileManager.default.createDirectory(
      at: directory.file("keysets"), withIntermediateDirectories: true)
    try directory.write(
      JSONValue.array([
        .object(["keySet": .object(keySet), "signatures": .array([signature.json])])
      ]).canonicalBytes, to: "keysets/" + Self.file)
    var state = DocumentState()
    let endpoint = WatchedEndpoint(fqdn: HostName.literal("www.example.com"))
    state.keysByEndpoint[endpoint.id] = EndpointKeys(
      keys: [KnownKey(pin: pin(1), firstSeen: Self.now, lastSeen: Self.now)])
    let content = DocumentContent(state, endpoints: [endpoint])
    #expect(throws: SigningProblem.self) {
      try signer().sign(content, file: Self.file, after: DocumentState(), at: Self.now)
    }
    #expect(try signer().problem(of: Self.file, after: DocumentState(), at: Self.now) != nil)
    try FileManager.default.createDirectory(
      at: directory.file("online"), withIntermediateDirectories: true)
    try other.write(to: directory.file("online/1.pem"))
    let document = try #require(
      try signer().sign(content, file: Self.file, after: DocumentState(), at: Self.now))
    let key = try SigningKey(file: directory.file("prv.pem"))
    let trust = try RegistryTrust(
      registry: Self.file, signingKey: try VerificationKey(key.publicKeyPEM),
      requiresStatement: true)
    #expect(throws: Never.self) {
      try TrustedRegistry(accepting: document.bytes, under: trust, at: Self.now)
    }
  }
}
