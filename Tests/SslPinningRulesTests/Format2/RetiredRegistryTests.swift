import SslPinningRules
import Testing

/// What goes on counting of a statement that retires, of hosts across epochs, and of shipped roots.
@Suite("What outlives a statement, and what does not")
struct RetiredRegistryTests {
  private static let start = RegistrySimulator.start
  private static let day = RegistrySimulator.day

  private func restarted(_ client: TrustedRegistry) throws -> TrustedRegistry {
    try TrustedRegistry(
      restoring: StoredState(decoding: client.state.encoded), under: RegistrySimulator.trust(),
      at: Self.start)
  }

  @Test("what a retired statement removes goes at once, with its document and with later ones")
  func removed() throws {
    var registry = RegistrySimulator()
    registry.pins = [("a.example", 1), ("b.example", 2), ("c.example", 3), ("d.example", 4)]
    var client = try registry.client()
    (registry.version, registry.isRetired) = (2, true)
    registry.removed = ["b.example", "c.example"]
    registry.pins.remove(at: 1)
    client = try client.update(with: registry).registry
    #expect(try client.verdict("b.example", path: [2, 90]).outcome == .unlisted)
    // A pattern that is listed stays listed.
    #expect(try client.accepts("c.example", leaf: 3))
    registry.isStripped = true
    registry.pins = [("a.example", 1)]
    client = try client.update(with: registry).registry
    for client in [client, try restarted(client)] {
      #expect(try client.verdict("b.example", path: [2, 90]).outcome == .unlisted)
      #expect(try client.verdict("c.example", path: [3, 90]).outcome == .unlisted)
      // The control: nobody removed this one.
      #expect(try client.accepts("d.example", leaf: 4))
    }
  }

  @Test("what a retired statement demanded of a vanished host outlives a restart")
  func settings() throws {
    var registry = RegistrySimulator()
    (registry.version, registry.isRetired) = (2, true)
    registry.hosts = [HostSettings(try HostPattern("b.example"), ca: [.test(90)])]
    var client = try registry.client()
    // A list without a statement, under the key of format 1.
    registry.isStripped = true
    registry.pins = [("a.example", 1), ("b.example", 2)]
    client = try client.update(with: registry).registry
    // The next retired statement speaks of the host no more, nor does its list.
    registry.isStripped = false
    (registry.version, registry.hosts, registry.pins) = (3, [], [("a.example", 1)])
    client = try client.update(with: registry).registry
    for client in [client, try restarted(client), try restarted(restarted(client))] {
      #expect(try client.verdict("b.example", path: [2, 90]).decision == .accept)
      #expect(try client.verdict("b.example", path: [2, 80]).outcome == .mismatch(.ca))
    }
  }

  @Test("a retirement that was ended before the app was built lets nothing in, and nothing stay")
  func ended() throws {
    let minimum = RegistryMinimum(epoch: 0, issued: Self.start + 5)
    let trust = try RegistrySimulator.trust(minimum: minimum)
    var registry = RegistrySimulator()
    let before = try registry.client()
    (registry.version, registry.isRetired) = (2, true)
    let retired = try before.update(with: registry).registry
    let refusal = RegistryError.olderThanShipped(minimum)
    // Whether the update comes before that statement or after it.
    #expect(
      before.update(with: try registry.document(), under: trust, at: Self.start).refusal == refusal)
    registry.isStripped = true
    #expect(try retired.update(with: registry).refusal == nil, "the control")
    let list = try registry.document()
    #expect(retired.update(with: list, under: trust, at: Self.start).refusal == refusal)
    // The app starts with what it has, as long as the list could have lived that the minimum is of.
    let end = (minimum.issued / Self.day + 90) * Self.day
    let state = try retired.update(with: registry).registry.state
    let stored = try TrustedRegistry(restoring: state, under: trust, at: end - 1)
    #expect(try stored.accepts("a.example", leaf: 1))
    #expect(throws: refusal) { try TrustedRegistry(restoring: state, under: trust, at: end) }
    // The cure.
    (registry.version, registry.isStripped, registry.isRetired) = (3, false, false)
    registry.issued = minimum.issued
    #expect(stored.update(with: try registry.document(), under: trust, at: end - 1).refusal == nil)
    // A registry that is retired while the app is built goes on.
    registry.isRetired = true
    let built = try registry.client(under: trust)
    registry.isStripped = true
    #expect(built.update(with: try registry.document(), under: trust, at: end).refusal == nil)
    let kept = try TrustedRegistry(restoring: built.state, under: trust, at: end + 1000 * Self.day)
    #expect(kept.statement?.isRetired == true)
  }

  @Test("a client jumps to no set that its own root did not sign, whatever the ids")
  func jump() throws {
    let trust = try RegistrySimulator.trust(root: SimulatedKeys.role([4]))
    var registry = RegistrySimulator()
    let blind = try RoleKey(
      algorithm: "ML-DSA-44", spki: SimulatedKeys.roleKey(4).spki, crypto: PlatformCrypto.shared)
    try registry.add(
      root: KeyRole(keys: [blind], threshold: 1), online: SimulatedKeys.role([6]), signedBy: [4])
    (registry.epoch, registry.online) = (1, [6])
    #expect(
      throws: RegistryError.invalidKeySet(epoch: 1, .notSigned(by: .ownRoot))
    ) { try registry.client(under: trust) }
    // It is passed over, and leads nobody astray who meets the set behind it.
    try registry.add(
      root: SimulatedKeys.role([4]), online: SimulatedKeys.role([2]), signedBy: [4])
    (registry.epoch, registry.online) = (2, [2])
    #expect(try registry.client(under: trust).keySetEpoch == 2)
  }

  @Test(
    "merging two epochs keeps the vanished hosts that the newer epoch's online keys signed for",
    arguments: [(2, true), (4, false)])
  func merged(online key: Int, isKept: Bool) throws {
    var registry = RegistrySimulator()
    try registry.beginEpoch(online: 2)
    registry.pins = [("a.example", 1), ("c.example", 3)]
    var older = try registry.client()
    // One host vanished already, one does with the new epoch.
    (registry.version, registry.pins) = (2, [("a.example", 1), ("b.example", 2)])
    older = try older.update(with: registry).registry
    try registry.beginEpoch(online: key)
    registry.pins = [("a.example", 1)]
    let newer = try registry.client()
    for (one, other) in [(older, newer), (newer, older)] {
      let both = one.merged(with: other, at: Self.start)
      for client in [both, try restarted(both)] {
        #expect(client.stamp.version == .init(epoch: 2, version: 1))
        #expect(try client.accepts("b.example", leaf: 2) == isKept)
        #expect(try client.accepts("c.example", leaf: 3) == isKept)
        #expect(try client.verdict("b.example", path: [9]).outcome == .unlisted || isKept)
      }
    }
    // The same as if the newer one had come in after the older.
    let updated = try older.update(with: registry).registry
    #expect(try updated.accepts("b.example", leaf: 2) == isKept)
    // What the newer one removes goes.
    registry.removed = ["b.example"]
    let removing = try registry.client().merged(with: older, at: Self.start)
    #expect(try removing.verdict("b.example").outcome == .unlisted)
  }
}
