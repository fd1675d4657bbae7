import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@testable import RegistryServer

/// One keeper over a record that somebody edited in its place, under the version that it had.
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
    let keeper = DocumentKeeper(
      KeeperSettings(document, tls: TLSConfiguration(looks: 1)),
      services: KeeperServices(
        signing: Locked(DocumentSigner(key: try testSigningKey.get())), store: store,
        published: published, health: health, log: .silent))
    try await keeper.open(at: Self.now)
    _ = await keeper.enter(.accepted(pin(1)), of: endpoint, at: Self.now)
    let signed = try #require(published.document(Self.file))
    let good = try #require(await base.record(named: Self.file))
    var bytes = good.bytes
    bytes[bytes.count - 20] ^= 1
    await base.lose(to: StoredRecord(version: good.version, bytes: bytes), named: Self.file)
    await keeper.refresh(at: Self.now + 60)
    #expect(await keeper.fault == .broken(record: Self.file, .changed))
    let late = Self.now + 2 * DocumentSigner.renewal
    _ = await keeper.enter(.accepted(pin(2)), of: endpoint, at: late)
    await keeper.upkeep(at: late)
    await #expect(throws: AdministrationError.self) {
      try await keeper.perform(at: late) { state, _ throws(AdministrationError) in
        state.denied.append(DocumentState.Denial(pin: pin(9), at: late, by: "ada", why: ""))
        return [HistoryEntry(time: late, event: "key_denied", who: "ada")]
      }
    }
    await keeper.close(at: late)
    #expect(published.document(Self.file)?.bytes == signed.bytes)
    #expect(try await base.record(named: Self.file)?.bytes == bytes)
    #expect(!health.readiness(of: published).isReady)
    #expect(await keeper.snapshot.state.alerts[""]?.map(\.kind) == [.sealBroken])
    await base.lose(to: good, named: Self.file)
    await keeper.refresh(at: late)
    #expect(await keeper.fault == nil)
    #expect(await keeper.snapshot.state.alerts[""] == nil)
    _ = await keeper.enter(.accepted(pin(2)), of: endpoint, at: late)
    #expect(published.content(Self.file)?.entries.map(\.pin) == [pin(1), pin(2)])
    #expect(health.readiness(of: published).reasons.isEmpty)
  }
}
