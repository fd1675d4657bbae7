import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@testable import RegistryCore
@testable import RegistryServer

@Suite("A document whose store is in trouble")
struct StoreTroubleTests {
  private static let now: Int64 = 1_780_000_000
  private static let file = "www.example.com.json"

  private let store = TroubledStore()
  private let published = PublishedDocuments(files: [Self.file])
  private let log = LogCollector()
  private let coordinator: DocumentCoordinator
  private let endpoint: WatchedEndpoint

  init() throws {
    let document = try #require(
      try configuration("keys: [{fqdn: www.example.com, domainName: www.example.com}]")
        .documents.first)
    endpoint = try #require(document.endpoints.first)
    coordinator = DocumentCoordinator(
      CoordinatorSettings(document, tls: TLSConfiguration(confirmations: 1)),
      services: CoordinatorServices(
        signing: Locked(DocumentSigner(key: try testSigningKey.get())), store: store,
        published: published,
        health: ServiceHealth(), log: log.log))
  }

  private var pins: [SPKIPin]? {
    published.content(Self.file)?.entries.map(\.pin)
  }

  @Test("is not published before it is stored: a crash would take back what clients have seen")
  func failing() async throws {
    try await coordinator.open()
    await store.fail(true)
    _ = await coordinator.enter(.accepted(pin(1)), of: endpoint, at: Self.now)
    #expect(pins == nil)
    await store.fail(false)
    _ = await coordinator.enter(.accepted(pin(1)), of: endpoint, at: Self.now + 60)
    #expect(pins == [pin(1)])
    await store.fail(true)
    let before = published.document(Self.file)?.bytes
    _ = await coordinator.enter(.accepted(pin(2)), of: endpoint, at: Self.now + 120)
    #expect(published.document(Self.file)?.bytes == before)
    #expect(await coordinator.snapshot.state.alerts[""]?.map(\.kind) == [.storing])
    // What was learnt meanwhile is not lost.
    await store.fail(false)
    _ = await coordinator.enter(.unreachable(reason: "test"), of: endpoint, at: Self.now + 180)
    #expect(pins == [pin(1), pin(2)])
    #expect(await coordinator.snapshot.state.alerts[""] == nil)
    #expect(log.events("document_not_stored").count == 2)
  }

  @Test("is told for as long as the store cannot be read, and no longer")
  func unreadable() async throws {
    try await coordinator.open()
    _ = await coordinator.enter(.accepted(pin(1)), of: endpoint, at: Self.now)
    await store.failReading(true)
    await coordinator.refresh(at: Self.now + 60)
    #expect(await coordinator.snapshot.state.alerts[""]?.map(\.kind) == [.storing])
    await store.failReading(false)
    await coordinator.refresh(at: Self.now + 120)
    #expect(await coordinator.snapshot.state.alerts[""] == nil)
  }

  @Test("gives readers no older document where the store goes back to one, and the clock with it")
  func older() async throws {
    try await coordinator.open()
    _ = await coordinator.enter(.accepted(pin(1)), of: endpoint, at: Self.now)
    let old = try #require(await store.record(named: Self.file))
    let day = Self.now + DocumentSigner.renewal
    await coordinator.upkeep(at: day)
    let newer = try #require(published.document(Self.file))
    #expect(newer.signed == day)
    await store.goBack(to: old, named: Self.file)
    await coordinator.upkeep(at: Self.now + 60)
    #expect(try #require(published.document(Self.file)).signed >= newer.signed)
  }
}
