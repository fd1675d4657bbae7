import CanonicalJSON
import SslPinningRules
import TestSupport
import Testing

/// Every attack of the TUF conformance suite (`Vectors/tuf/scenarios.tsv`) on a signed registry.
@Suite("Attacks on a signed registry")
struct AttackScenarioTests {
  typealias Run = @Sendable () throws -> Void

  /// By the row's id. The rows that are about time, keys and signatures stand in files beside.
  static let runs: [String: Run] = rollback.merging(freeze) { $1 }
    .merging(signatures) { $1 }.merging(substitution) { $1 }

  @Test("every row of the table has its test, and no test is without a row")
  func complete() throws {
    let rows = try AttackScenario.all()
    #expect(rows.count == 32)
    #expect(Set(rows.map(\.id)) == Set(Self.runs.keys))
  }

  @Test("is met as the table says", arguments: try AttackScenario.all())
  func attack(scenario: AttackScenario) throws {
    let run = try #require(Self.runs[scenario.id])
    try run()
  }

  /// Expects a refusal that leaves the client with what it had.
  static func expectRefused(
    _ client: TrustedRegistry, _ document: [UInt8], _ refusal: RegistryError,
    under trust: RegistryTrust? = nil, at clock: Int64 = RegistrySimulator.start,
    epoch: Int64 = 0, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let update = client.update(
      with: document, under: try trust ?? RegistrySimulator.trust(), at: clock)
    #expect(update.refusal == refusal, sourceLocation: sourceLocation)
    #expect(update.registry.registry == client.registry, sourceLocation: sourceLocation)
    let (stamp, before) = (update.registry.stamp, client.stamp)
    #expect(stamp.version == before.version, sourceLocation: sourceLocation)
    #expect(stamp.payloadDigest == before.payloadDigest, sourceLocation: sourceLocation)
    #expect(stamp.confirmed == before.confirmed, sourceLocation: sourceLocation)
    #expect(update.registry.keySetEpoch == epoch, sourceLocation: sourceLocation)
    #expect(!refusal.description.isEmpty)
  }

  static let rollback: [String: Run] = [
    "R1": {
      var registry = RegistrySimulator()
      registry.version = 2
      let client = try registry.client()
      registry.version = 1
      registry.pins = [("a.example", 2)]
      try expectRefused(
        client, try registry.document(),
        .rolledBack(to: .init(epoch: 0, version: 1), from: .init(epoch: 0, version: 2)))
      registry.version = 3
      #expect(try client.update(with: registry).refusal == nil)
    },
    // There are no counters of single entries: the digest binds one payload to one statement.
    "R2": {
      var registry = RegistrySimulator()
      let client = try registry.client()
      let older = registry
      registry.version = 2
      registry.pins = [("a.example", 2)]
      let statement = try registry.statement()
      let signatures = try registry.signatures(over: statement)
      #expect(
        client.update(
          with: try registry.document(statement, signatures), under: try RegistrySimulator.trust(),
          at: RegistrySimulator.start
        ).refusal == nil)
      try expectRefused(client, try older.document(statement, signatures), .otherPayload)
    },
    // Key set and statement are newer, the payload is not; the key set stays believed.
    "R3": {
      var registry = RegistrySimulator()
      let client = try registry.client()
      let older = registry
      registry.pins = [("a.example", 2)]
      try registry.beginEpoch(online: 1)
      let statement = try registry.statement()
      var mixed = older
      mixed.keySets = registry.keySets
      try expectRefused(
        client, try mixed.document(statement, try registry.signatures(over: statement)),
        .otherPayload, epoch: 1)
      #expect(try client.update(with: registry).refusal == nil)
    },
    "R4": {
      var registry = RegistrySimulator()
      registry.pins = [("a.example", 1), ("b.example", 2)]
      var client = try registry.client()
      registry.version = 2
      registry.pins = [("b.example", 2)]
      client = try client.update(with: registry).registry
      #expect(try client.accepts("a.example", leaf: 1))
      #expect(!(try client.accepts("a.example", leaf: 2)))
      #expect(
        client.registry.problems
          == [.vanished(try HostPattern("a.example"), since: RegistrySimulator.start)])
      registry.version = 3
      registry.removed = ["a.example"]
      client = try client.update(with: registry).registry
      #expect(try client.verdict("a.example").outcome == .unlisted)
      #expect(client.registry.problems.isEmpty)
    },
    "R5": {
      var registry = RegistrySimulator()
      try registry.beginEpoch(online: 1)
      registry.version = JSONNumber.greatestInteger
      registry.issued = RegistrySimulator.start + 4000 * RegistrySimulator.day
      let client = try registry.client()
      // The thief's counter and clock are in force: nothing of the same epoch gets past them.
      registry.version = 1
      registry.issued = RegistrySimulator.start
      let burnt = try client.update(with: registry)
      #expect(
        burnt.refusal
          == .rolledBack(
            to: .init(epoch: 1, version: 1),
            from: .init(epoch: 1, version: JSONNumber.greatestInteger)))
      try registry.beginEpoch(online: 2)
      registry.pins = [("a.example", 5)]
      let healed = try client.update(with: registry)
      #expect(healed.refusal == nil)
      #expect(healed.registry.stamp.version == .init(epoch: 2, version: 1))
      #expect(healed.registry.time(at: 5).later == RegistrySimulator.start)
      #expect(try healed.registry.accepts(leaf: 5))
      // Without the root keys there is no new epoch.
      var forged = registry
      forged.keySets.removeLast()
      try forged.add(
        root: SimulatedKeys.role([0]), online: SimulatedKeys.role([2]), signedBy: [1, 2])
      try expectRefused(
        client, try forged.document(),
        .invalidKeySet(epoch: 2, .notSigned(by: .root(epoch: 1))), epoch: 1)
    },
    "R6": {
      var registry = RegistrySimulator()
      let client = try registry.client()
      let same = try registry.document()
      registry.pins = [("a.example", 2)]
      try expectRefused(client, try registry.document(), .invalidStatement(.conflict))
      // Other spacing and other signatures are no other statement.
      let spaced = [UInt8](
        String(decoding: same, as: UTF8.self).replacing(",", with: " ,\n").utf8)
      let update = client.update(
        with: spaced, under: try RegistrySimulator.trust(), at: RegistrySimulator.start + 5)
      #expect(update.refusal == nil)
      #expect(update.registry.stamp.confirmed == RegistrySimulator.start + 5)
      registry.pins = [("a.example", 1)]
      let statement = try registry.statement()
      let resigned = try SimulatedKeys.signatures(
        [0, 3], over: DocumentSignature.Domain.statement.bytes(over: statement))
      #expect(
        client.update(
          with: try registry.document(statement, resigned), under: try RegistrySimulator.trust(),
          at: RegistrySimulator.start
        ).refusal == nil)
    },
  ]
}
