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

@Suite("A key set that ends", .timeLimit(.minutes(2)))
struct KeySetEndTests {
  private static let file = "a.json"
  private static let day: Int64 = 86_400

  /// Set 1 of a document, by the key that apps ship, in the server's directory.
  private func writeSet(in directory: TemporaryDirectory, expires: Int64) throws {
    let shipped = try TrustSigningKey(file: directory.file("prv.pem"))
    let role = try KeyRole(keys: [shipped.roleKey], threshold: 1)
    var list = KeySetList(registry: Self.file)
    try list.append(root: role, online: role, expires: expires)
    try list.sign(with: shipped)
    try FileManager.default.createDirectory(
      at: directory.file("keysets"), withIntermediateDirectories: true)
    try directory.write(list.json.canonicalBytes, to: "keysets/" + Self.file)
  }

  @Test(
    "is told 30 days ahead, and once it is over nothing is signed under it and everybody is told")
  func ends() async throws {
    let directory = try makeKeyDirectory()
    let log = LogCollector()
    let begun: Int64 = 1_780_000_000
    let end = begun + 40 * Self.day
    try writeSet(in: directory, expires: end)
    let document = try #require(
      try configuration("keys: [{fqdn: a.test, file: a.json}]").documents.first)
    let endpoint = try #require(document.endpoints.first)
    let published = PublishedDocuments(files: [Self.file])
    let health = ServiceHealth()
    let coordinator = DocumentCoordinator(
      CoordinatorSettings(document, tls: TLSConfiguration(confirmations: 1)),
      services: CoordinatorServices(
        signing: Locked(try DocumentSigner(directory: directory.path())), store: MemoryStore(),
        published: published, health: health, log: log.log))
    try await coordinator.open()
    await coordinator.checkSigning(at: begun)
    _ = await coordinator.enter(.accepted(pin(1)), of: endpoint, at: begun)
    #expect(published.document(Self.file)?.keySetEpoch == 1)
    #expect(log.events("key_set_ends").isEmpty)
    await coordinator.upkeep(at: begun + 11 * Self.day)
    #expect(log.events("key_set_ends").count == 1)
    #expect(await coordinator.state.alerts[""]?.map(\.kind) == [.signing])
    #expect(published.document(Self.file)?.signed == begun + 11 * Self.day)
    #expect(log.events("signing_impossible").isEmpty)
    await coordinator.upkeep(at: end)
    #expect(log.events("signing_impossible").count == 1)
    #expect(published.document(Self.file)?.signed == begun + 11 * Self.day)
    #expect(health.reason(of: Self.file)?.hasPrefix("key set 1 is expired since ") == true)
    let state = await coordinator.state
    await #expect(throws: AdministrationError.self) {
      try await coordinator.perform(at: end) { next, _ throws(AdministrationError) in
        try next.stage(pin(2), at: endpoint.id, .init(who: "ada", at: end, why: ""))
      }
    }
    #expect(await coordinator.state.keysByEndpoint == state.keysByEndpoint)
  }

  @Test("like a document that clients refuse for its size, is told before that happens")
  func size() async throws {
    let directory = try makeKeyDirectory()
    let signer = try DocumentSigner(directory: directory.path())
    let most = RegistryLimits.standard.maximumBytes
    var state = DocumentState()
    for (bytes, isTold) in [(most / 4 * 3, false), (most / 4 * 3 + 1, true), (most + 1, true)] {
      state.document = [UInt8](repeating: 0x20, count: bytes)
      let problem = signer.problem(of: Self.file, after: state, at: 1_780_000_000)
      #expect((problem?.event == "document_large") == isTold, "\(bytes)")
      // Apps may take more, so it is signed all the same.
      #expect(problem?.isAhead ?? true)
    }
    let log = LogCollector()
    let document = try #require(
      try configuration("keys: [{fqdn: a.test, file: a.json}]").documents.first)
    let coordinator = DocumentCoordinator(
      CoordinatorSettings(document, tls: TLSConfiguration(confirmations: 1)),
      services: CoordinatorServices(
        signing: Locked(signer), store: MemoryStore(),
        published: PublishedDocuments(files: [Self.file]), health: ServiceHealth(), log: log.log))
    for (signed, bytes) in [(1, most), (2, most + 1)] as [(Int64, Int)] {
      await coordinator.publish(
        PublishedDocument(
          file: Self.file, bytes: [UInt8](repeating: 0x20, count: bytes), document: [:],
          signed: signed
        ).signedCopy, says: nil)
      #expect(log.events("document_large").count == (bytes > most ? 1 : 0))
    }
  }

  @Test("is told by /readyz once it is over, whatever else is stored meanwhile")
  func readiness() async throws {
    let directory = try makeKeyDirectory()
    let end: Int64 = 1_780_000_000
    try writeSet(in: directory, expires: end)
    let document = try #require(
      try configuration("keys: [{fqdn: a.test, file: a.json}]").documents.first)
    let endpoint = try #require(document.endpoints.first)
    let published = PublishedDocuments(files: [Self.file])
    let health = ServiceHealth()
    let coordinator = DocumentCoordinator(
      CoordinatorSettings(document, tls: TLSConfiguration(confirmations: 1)),
      services: CoordinatorServices(
        signing: Locked(try DocumentSigner(directory: directory.path())), store: MemoryStore(),
        published: published, health: health, log: LogCollector().log))
    try await coordinator.open()
    _ = await coordinator.enter(.accepted(pin(1)), of: endpoint, at: end - 3600)
    await coordinator.upkeep(at: end)
    let refused = ProbeResult.refused(reason: "expired", presented: nil)
    _ = await coordinator.enter(refused, of: endpoint, at: end + 60)
    #expect(await coordinator.state.alerts[endpoint.id]?.map(\.kind) == [.chainRefused])
    let report = health.facts(of: published).readiness
    #expect(report.reasons.first?.hasPrefix("a.json: key set 1 is expired since ") == true)
    #expect(report.isGood && report.kinds == [.signing])
  }

  @Test(
    "keeps the server from signing from its last second on",
    arguments: [(-1, false, true), (0, false, true), (1, true, true), (40 * day, true, false)]
      as [(Int64, Bool, Bool)])
  func expired(left: Int64, signs: Bool, isTold: Bool) throws {
    let directory = try makeKeyDirectory()
    let now: Int64 = 1_780_000_000
    try writeSet(in: directory, expires: now + left)
    let signer = try DocumentSigner(directory: directory.path())
    let endpoint = WatchedEndpoint(fqdn: HostName.literal("a.test"))
    var state = DocumentState()
    state.keysByEndpoint[endpoint.id] = EndpointKeys(
      keys: [KnownKey(pin: pin(1), firstSeen: now, lastSeen: now)])
    let content = DocumentContent(state, endpoints: [endpoint])
    let problem = signer.problem(of: Self.file, after: DocumentState(), at: now)
    #expect((problem != nil) == isTold)
    #expect(problem.map(\.isAhead) ?? true == signs)
    if signs {
      let document = try #require(
        try signer.sign(content, file: Self.file, after: DocumentState(), at: now))
      #expect(document.keySetExpires == now + left)
    } else {
      #expect(throws: SigningProblem.self) {
        try signer.sign(content, file: Self.file, after: DocumentState(), at: now)
      }
    }
  }

  @Test(
    "is told of a directory of keys or key sets that may not be probed",
    arguments: ["online", "keysets"])
  func unreadable(name: String) throws {
    let directory = try makeKeyDirectory()
    // A file in the place of a directory: to root, too, that is neither absent nor readable.
    try directory.write("x", to: name)
    if name == "online" {
      #expect(throws: DocumentSignerError.self) {
        try DocumentSigner(directory: directory.path(), publishing: PublishingConfiguration())
      }
      let keys = try makeKeyDirectory()
      let other = try DocumentSigner(directory: keys.path())
      let log = LogCollector()
      let path = directory.path()
      KeyCare.warn(
        of: try configuration("keys: [{fqdn: a.test}]\ntls: {dir: \"\(path)\"}"), signer: other,
        log.log)
      #expect(log.events("online_keys_unreadable").count == 1)
    } else {
      let signer = try DocumentSigner(directory: directory.path())
      let problem = signer.problem(of: Self.file, after: DocumentState(), at: 1)
      #expect(problem.map { "\($0)" }?.contains("keysets/a.json cannot be used") == true)
    }
  }
}
