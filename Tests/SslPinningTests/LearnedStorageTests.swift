import Foundation
import SslPinningPlatform
import SslPinningRules
import Testing

@testable import SslPinning

@Suite("Key sets that are stored before there is a registry")
struct LearnedStorageTests {
  /// The key sets of a genuine document that is refused for its age.
  private func learned(_ epoch: Int, in stage: StoringStage) throws -> (LearnedKeySets, [UInt8]) {
    let late = try stage.registry.document(
      epoch: epoch, version: 1, hosts: ["a.example"], issued: StoringStage.now - 100 * 86_400)
    guard
      case .refused(_, let learned) = TrustedRegistry.first(
        late, under: stage.trust, at: StoringStage.now)
    else { throw RegistryError.unreadableState }
    return (learned, late)
  }

  @Test("are loaded again, and a registry that is stored later keeps the longer chain")
  func store() throws {
    let stage = try StoringStage()
    let (two, _) = try learned(2, in: stage)
    let (one, _) = try learned(1, in: stage)
    let (store, trust, now) = (stage.store, stage.trust, StoringStage.now)
    try store.save(two, under: trust, at: now)
    try store.save(one, under: trust, at: now)
    let loaded = try store.load(under: trust, at: now)
    #expect(loaded.registry == nil && loaded.learned.epoch == 2)
    let saved = try store.save(stage.believed(stage.document(1, 1)), under: trust, at: now)
    #expect(saved.keySetEpoch == 2)
    let registry = try store.load(under: trust, at: now).registry
    #expect(registry?.keySetEpoch == 2)
    #expect(registry?.stamp.version == .init(epoch: 1, version: 1))
  }

  @Test("go to a registry that another process stored meanwhile, and never write it over")
  func beside() throws {
    let stage = try StoringStage()
    let (store, trust, now) = (stage.store, stage.trust, StoringStage.now)
    _ = try store.save(stage.believed(stage.document(1, 1)), under: trust, at: now)
    try store.save(learned(2, in: stage).0, under: trust, at: now)
    let loaded = try store.load(under: trust, at: now).registry
    #expect(loaded?.keySetEpoch == 2)
    #expect(loaded?.stamp.version == .init(epoch: 1, version: 1))
  }

  @Test("outlast a state whose registry is not believed any longer")
  func refusedState() async throws {
    let stage = try StoringStage()
    let (store, trust, now) = (stage.store, stage.trust, StoringStage.now)
    _ = try store.save(stage.believed(stage.document(1, 1)), under: trust, at: now)
    try store.save(learned(2, in: stage).0, under: trust, at: now)
    try stage.edit { $0.replacingOccurrences(of: "a.example", with: "x.example") }
    do throws(StateStoreError) {
      _ = try store.load(under: trust, at: now)
      Issue.record("a payload that nobody signed is believed")
    } catch {
      guard case .refused(_, let learned) = error else { throw error }
      #expect(learned.epoch == 2)
    }
    // Withdrawn keys open neither this start nor the file.
    stage.publish(try stage.document(1, 9))
    await #expect(throws: SslPinningError.self) { try await stage.keeper() }
    let saved = try store.save(stage.believed(stage.document(1, 1)), under: trust, at: now)
    #expect(saved.keySetEpoch == 2)
  }

  @Test("outlast the start that failed: the next one refuses the older document")
  func start() async throws {
    let stage = try StoringStage()
    stage.publish(try learned(2, in: stage).1)
    await #expect(throws: SslPinningError.self) { try await stage.keeper() }
    stage.publish(try stage.document(1, 1))
    await #expect(throws: SslPinningError.self) { try await stage.keeper() }
    // A bundle stands in, and knows what was learned before it is stored with that.
    let (store, trust, now) = (stage.store, stage.trust, StoringStage.now)
    let bundle = try TrustedRegistry(bundled: stage.document(1, 1), under: trust, at: now)
    let first = try InitialRegistry(
      stored: store.load(under: trust, at: now), bundled: bundle, at: now)
    #expect(first?.registry.keySetEpoch == 2)
    let bundled = try await stage.keeper(bundle: stage.document(1, 1))
    #expect(bundled.versionInForce == "1.1" && bundled.trusted.keySetEpoch == 2)
    stage.publish(try stage.document(1, 9, ["a.example", "thief.example"]))
    _ = await bundled.refresh(bypassingCaches: true)
    #expect(bundled.versionInForce == "1.1")
    stage.publish(try stage.document(2, 1))
    let keeper = try await stage.keeper()
    _ = await keeper.refresh(bypassingCaches: true)
    #expect(keeper.versionInForce == "2.1")
  }
}
