import SslPinningRules
import Testing

extension AttackScenarioTests {
  static let freeze: [String: Run] = [
    "F1": {
      var registry = RegistrySimulator()
      let client = try registry.client()
      registry.version = 2
      let end = registry.issued + registry.lifetime
      try expectRefused(client, try registry.document(), .statementExpired(at: end), at: end)
      #expect(try client.update(with: registry, at: end - 1).refusal == nil)
    },
    // The key set is fresh and is believed, the statement under it is not.
    "F2": {
      var registry = RegistrySimulator()
      let client = try registry.client()
      try registry.beginEpoch(online: 1)
      let end = registry.issued + registry.lifetime
      try expectRefused(
        client, try registry.document(), .statementExpired(at: end), at: end, epoch: 1)
    },
    // The innermost level are pins: one that had expired when its statement was issued is dead, and
    // the statement does not revive it.
    "F3": {
      var registry = RegistrySimulator()
      registry.entryMembers = ",\"expire\":\(registry.issued - 27 * 3600)"
      let dead = try registry.client()
      #expect(try dead.verdict().outcome == .noLivePin)
      registry.entryMembers = ",\"expire\":\(registry.issued)"
      let live = try registry.client()
      #expect(try live.verdict().outcome == .matched)
    },
    // The chain is walked to its end; only the last set's expiry counts.
    "F4": {
      var registry = RegistrySimulator()
      let client = try registry.client()
      let past = RegistrySimulator.start - 5
      try registry.beginEpoch(online: 1, expires: past)
      try registry.beginEpoch(online: 2, expires: past)
      try expectRefused(
        client, try registry.document(), .keySetExpired(epoch: 2, at: past), epoch: 2)
      #expect(throws: RegistryError.keySetExpired(epoch: 2, at: past)) { try registry.client() }
      // A statement of the epoch before is not believed either: its keys are withdrawn.
      registry.epoch = 1
      registry.online = [1]
      try expectRefused(
        client, try registry.document(),
        .invalidStatement(.notSigned(by: .onlineKeys(epoch: 2))), epoch: 2)
      registry.keySets.removeLast()
      try expectRefused(
        client, try registry.document(), .keySetExpired(epoch: 1, at: past), epoch: 1)
      registry.keySets = []
      try registry.beginEpoch(online: 1, expires: past)
      try registry.beginEpoch(online: 2)
      #expect(try client.update(with: registry).refusal == nil)
    },
    "F5": {
      var registry = RegistrySimulator()
      let end = RegistrySimulator.start + 10
      try registry.beginEpoch(online: 1, expires: end)
      let client = try registry.client()
      registry.version = 2
      #expect(try client.update(with: registry, at: end - 1).refusal == nil)
      try expectRefused(
        client, try registry.document(), .keySetExpired(epoch: 1, at: end), at: end, epoch: 1)
      try registry.beginEpoch(online: 2)
      #expect(try client.update(with: registry, at: end).refusal == nil)
    },
    "F6": {
      var registry = RegistrySimulator()
      let client = try registry.client()
      let later = registry.issued + 100 * RegistrySimulator.day
      #expect(client.isExpired(at: later))
      #expect(!(try client.accepts(at: later)))
      registry.version = 2
      registry.issued = later
      let update = try client.update(with: registry, at: later)
      #expect(update.refusal == nil)
      #expect(!update.registry.isExpired(at: later))
      #expect(try update.registry.accepts(at: later))
    },
    "F7": {
      let registry = RegistrySimulator()
      let end = registry.issued + registry.lifetime
      #expect(throws: RegistryError.statementExpired(at: end)) { try registry.client(at: end) }
      let client = try registry.client(at: end - 1)
      #expect(try client.accepts(at: end - 1))
      #expect(try client.verdict(at: end).outcome == .registryExpired(at: end))
      #expect(!client.isExpired(at: end - 1))
      #expect(client.isExpired(at: end))
    },
  ]
}
