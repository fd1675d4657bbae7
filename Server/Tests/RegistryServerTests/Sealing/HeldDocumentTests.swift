import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@testable import RegistryCore
@testable import RegistryServer
@testable import RegistryStores

/// One coordinator over a record that somebody edited in its place, under the version that it had.
@Suite("A document whose record is not believed") struct HeldDocumentTests {
  private static let now: Int64 = 1_780_000_000
  private static let file = "www.example.com.json"

  @Test(
    "is neither decided about, nor changed by people, nor signed again, nor written, until it is restored"
  )
  func held() async throws {
    let document = try #require(
      try configuration("keys: [{fqdn: www.example.com, domainName: www.example.com}]")
        .documents.first)
    let endpoint = try #require(document.endpoints.first)
    let base = TroubledStore()
    let store = SealedStore(base, keys: try SealedStoreTests.keys())
    _ = try await store.open(documents: [Self.file])
    let (published, health) = (PublishedDocuments(files: [Self.file]), ServiceHealth())
    let coordinator = DocumentCoordinator(
      CoordinatorSettings(document, tls: TLSConfiguration(confirmations: 1)),
      services: CoordinatorServices(
        signing: Locked(DocumentSigner(key: try testSigningKey.get())), store: store,
        published: published, health: health, log: .silent))
    try await coordinator.open(at: Self.now)
    _ = await coordinator.enter(.accepted(pin(1)), of: endpoint, at: Self.now)
    let signed = try #require(published.document(Self.file))
    let good = try #require(await base.record(named: Self.file))
    var bytes = good.bytes
    bytes[bytes.count - 20] ^= 1
    await base.lose(to: StoredRecord(version: good.version, bytes: bytes), named: Self.file)
    await coordinator.refresh(at: Self.now + 60)
    #expect(await coordinator.fault == .broken(record: Self.file, .changed))
    let late = Self.now + 2 * DocumentSigner.renewal
    _ = await coordinator.enter(.accepted(pin(2)), of: endpoint, at: late)
    await coordinator.upkeep(at: late)
    await #expect(throws: AdministrationError.self) {
      try await coordinator.perform(at: late) { state, _ throws(AdministrationError) in
        state.denied.append(DocumentState.Denial(pin: pin(9), at: late, by: "ada", why: ""))
        return [HistoryEntry(time: late, event: "key_denied", who: "ada")]
      }
    }
    await coordinator.close(at: late)
    #expect(published.document(Self.file)?.bytes == signed.bytes)
    #expect(try await base.record(named: Self.file)?.bytes == bytes)
    #expect(!health.readiness(of: published).isReady)
    #expect(await coordinator.snapshot.state.alerts[""]?.map(\.kind) == [.sealBroken])
    await base.lose(to: good, named: Self.file)
    await coordinator.refresh(at: late)
    #expect(await coordinator.fault == nil)
    #expect(await coordinator.snapshot.state.alerts[""] == nil)
    _ = await coordinator.enter(.accepted(pin(2)), of: endpoint, at: late)
    #expect(published.content(Self.file)?.entries.map(\.pin) == [pin(1), pin(2)])
    #expect(health.readiness(of: published).reasons.isEmpty)
  }

  @Test("denies what was denied meanwhile elsewhere before it signs anything again")
  func deniedMeanwhile() async throws {
    let yaml = "keys: [{fqdn: a.test, file: a.json}, {fqdn: b.test, file: b.json}]"
    let documents = try configuration(yaml).documents
    let base = TroubledStore()
    let store = SealedStore(base, keys: try SealedStoreTests.keys())
    let files = documents.map(\.file)
    _ = try await store.open(documents: files)
    let published = PublishedDocuments(files: files)
    let services = CoordinatorServices(
      signing: Locked(DocumentSigner(key: try testSigningKey.get())), store: store,
      published: published, health: ServiceHealth(), log: .silent)
    let coordinators = documents.map {
      DocumentCoordinator(
        CoordinatorSettings($0, tls: TLSConfiguration(confirmations: 1)), services: services)
    }
    for (coordinator, document) in zip(coordinators, documents) {
      try await coordinator.open(at: Self.now)
      let endpoint = try #require(document.endpoints.first)
      for (key, time) in [(UInt8(1), Self.now), (2, Self.now + 5)] {
        _ = await coordinator.enter(.accepted(pin(key)), of: endpoint, at: time)
      }
      #expect(Set(published.content(document.file)?.entries.map(\.pin) ?? []) == [pin(1), pin(2)])
    }
    let good = try #require(await base.record(named: "b.json"))
    var bytes = good.bytes
    bytes[bytes.count - 20] ^= 1
    await base.lose(to: StoredRecord(version: good.version, bytes: bytes), named: "b.json")
    await coordinators[1].refresh(at: Self.now + 60)
    #expect(await coordinators[1].fault != nil)
    // By a call that fails, since this document cannot take it. What the other one took is told all the same.
    let administration = RegistryAdministration(
      coordinators: { coordinators }, store: store,
      clock: SteadyClock(TestClock(Self.now + 70)), changed: { _ in })
    var noted: [String] = []
    await #expect(throws: AdministrationError.self) {
      _ = try await administration.perform(.deny(pin(1), force: true), by: "ada", why: "stolen") {
        noted += $0.map(\.event)
      }
    }
    #expect(noted == ["key_denied"])
    await base.lose(to: good, named: "b.json")
    await coordinators[1].upkeep(at: Self.now + 80)
    #expect(await coordinators[1].fault == nil)
    #expect(Set(published.content("b.json")?.entries.map(\.pin) ?? []) == [pin(2)])
    #expect(await coordinators[1].state.deniedPins == [pin(1)])
    let stored = try #require(try await store.record(named: "b.json"))
    #expect(try DocumentState(decoding: stored.bytes, file: "b.json").deniedPins == [pin(1)])
  }
}
