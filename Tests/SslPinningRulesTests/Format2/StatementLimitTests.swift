import SslPinningRules
import Testing

/// How long a statement may live, who ends a registry, and what an app ships against old copies.
@Suite("What no online key decides")
struct StatementLimitTests {
  private static let start = RegistrySimulator.start
  private static let day = RegistrySimulator.day

  private func trust(_ epoch: Int64, _ issued: Int64) throws -> RegistryTrust {
    try RegistrySimulator.trust(minimum: RegistryMinimum(epoch: epoch, issued: issued))
  }

  @Test("a statement lives for 400 days at most, a retired one for as long as it says")
  func longestLife() throws {
    var registry = RegistrySimulator()
    registry.lifetime = 400 * Self.day
    let client = try registry.client()
    registry.version = 2
    registry.lifetime += 1
    let update = try client.update(with: registry)
    #expect(update.refusal == .invalidStatement(.livesTooLong(days: 400)))
    #expect(update.registry.stamp == client.stamp)
    #expect(throws: RegistryError.invalidStatement(.livesTooLong(days: 400))) {
      try registry.client()
    }
    registry.isRetired = true
    registry.lifetime = 40_000 * Self.day
    #expect(try client.update(with: registry).refusal == nil)
  }

  @Test("as many root keys as a key set takes retire a registry, and online keys count for none")
  func retirement() throws {
    var registry = RegistrySimulator()
    try registry.add(
      root: SimulatedKeys.role([0, 4], threshold: 2), online: SimulatedKeys.role([2]),
      signedBy: [0, 4])
    (registry.epoch, registry.online) = (1, [2])
    let client = try registry.client()
    (registry.version, registry.isRetired) = (2, true)
    let tooFew = DocumentFault.tooFewSignatures(of: .root(epoch: 1), count: 1, threshold: 2)
    for (signers, refusal) in [
      ([2], .invalidStatement(.notSigned(by: .root(epoch: 1)))),
      ([2, 0], .invalidStatement(tooFew)), ([2, 6, 4], .invalidStatement(tooFew)),
      ([4, 0], nil), ([2, 0, 4], nil),
    ] as [([Int], RegistryError?)] {
      registry.root = signers
      #expect(try client.update(with: registry).refusal == refusal, "\(signers)")
    }
  }

  @Test("nothing older than what the app ships is believed as a first document")
  func minimum() throws {
    let minimum = RegistryMinimum(epoch: 1, issued: Self.start)
    let trust = try trust(1, Self.start)
    let refusal = RegistryError.olderThanShipped(minimum)
    #expect(refusal.description.contains("hint: "))
    var zero = RegistrySimulator()
    zero.issued = Self.start + 100
    #expect(throws: refusal, "an older epoch") { try zero.client(under: trust) }
    var registry = RegistrySimulator()
    try registry.beginEpoch(online: 2)
    registry.issued = Self.start - 1
    #expect(throws: refusal, "an older statement") { try registry.client(under: trust) }
    registry.issued = Self.start
    let client = try registry.client(under: trust)
    // Issued far ahead by a thief: the next epoch counts from its own time.
    try registry.beginEpoch(online: 4)
    registry.issued = Self.start - 80 * Self.day
    #expect(throws: Never.self) { try registry.client(under: trust) }
    #expect(try client.update(with: registry, under: trust).refusal == nil)
    // A document without a statement has no time at all.
    registry.isStripped = true
    #expect(throws: RegistryError.statementRequired) { try registry.client(under: trust) }
  }

  @Test("the minimum holds for what is bundled and what retires, not for what is stored")
  func minimumAtHand() throws {
    var registry = RegistrySimulator()
    registry.issued = Self.start - 5
    let refusal = RegistryError.olderThanShipped(.init(epoch: 0, issued: Self.start))
    let trust = try trust(0, Self.start)
    let state = try registry.client().state
    // An app that is updated while its registry cannot be reached starts with what it has, and within that
    // epoch goes on by its number. If the minimum is of a later one, what it has is over.
    let stored = try TrustedRegistry(restoring: state, under: trust, at: Self.start)
    registry.version = 2
    let next = try registry.document()
    #expect(stored.update(with: next, under: trust, at: Self.start).refusal == nil)
    let later = try self.trust(1, Self.start - 9)
    #expect(
      try TrustedRegistry(restoring: state, under: later, at: Self.start)
        .update(with: next, under: later, at: Self.start).refusal
        == .olderThanShipped(.init(epoch: 1, issued: Self.start - 9)))
    let document = try registry.document()
    #expect(throws: refusal) {
      try TrustedRegistry(bundled: document, under: trust, at: Self.start)
    }
    registry.isRetired = true
    #expect(throws: refusal) { try registry.client(under: trust) }
    // The control.
    registry.issued = Self.start
    #expect(throws: Never.self) { try registry.client(under: trust) }
  }

  @Test("a minimum of a time to come holds up nothing that follows a statement which met it")
  func minimumAhead() throws {
    var registry = RegistrySimulator()
    registry.issued = Self.start + 400 * 86400
    let trust = try trust(0, registry.issued)
    let client = try registry.client(under: trust)
    (registry.version, registry.issued) = (2, Self.start)
    let second = client.update(with: try registry.document(), under: trust, at: Self.start)
    #expect(second.refusal == nil)
    // Nor what follows that one, which did not meet it itself.
    (registry.version, registry.issued) = (3, Self.start + 5)
    #expect(
      second.registry.update(with: try registry.document(), under: trust, at: Self.start).refusal
        == nil)
    // The control: a first document of that age.
    #expect(throws: RegistryError.self) { try registry.client(under: trust) }
  }

  @Test("a document that is kept for a vanished host may be older than the minimum")
  func minimumAndVanished() throws {
    var registry = RegistrySimulator()
    registry.pins = [("a.example", 1), ("b.example", 2)]
    registry.issued = Self.start - 5
    var client = try registry.client()
    (registry.version, registry.issued, registry.pins) = (2, Self.start, [("a.example", 1)])
    client = try client.update(with: registry).registry
    let restored = try TrustedRegistry(
      restoring: client.state, under: trust(0, Self.start), at: Self.start)
    #expect(try restored.accepts("b.example", leaf: 2))
  }
}
