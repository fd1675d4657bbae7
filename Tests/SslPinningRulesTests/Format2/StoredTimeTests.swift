import SslPinningPlatform
import SslPinningRules
import Testing

@Suite("Times in a stored state, under a clock that is not right")
struct StoredTimeTests {
  private static let day = RegistrySimulator.day
  private static let start = RegistrySimulator.start

  private static func restored(
    _ registry: TrustedRegistry, at clock: Int64
  ) throws -> TrustedRegistry {
    try TrustedRegistry(
      restoring: StoredState(decoding: registry.state.encoded), under: RegistrySimulator.trust(),
      at: clock)
  }

  /// A client without statements, of whose hosts b.example vanished.
  private func format1Client(members: String = "") throws -> TrustedRegistry {
    var registry = RegistrySimulator()
    registry.isStripped = true
    registry.pins = [("a.example", 1), ("b.example", 2)]
    registry.entryMembers = members
    let client = try registry.client()
    registry.pins = [("a.example", 1)]
    return try client.update(with: registry).registry
  }

  @Test("a start with a dead battery does not end the 30 days of a vanished host")
  func behindOnce() throws {
    let awake = try Self.restored(Self.restored(format1Client(), at: 4000), at: Self.start)
    for (days, accepts) in [(29, true), (31, false)] as [(Int64, Bool)] {
      let now = Self.start + days * Self.day
      #expect(try awake.confirmed(at: now).accepts("b.example", leaf: 2, at: now) == accepts)
    }
  }

  @Test("nor does what other processes and the app itself bring at that start")
  func behindMerged() throws {
    var registry = RegistrySimulator()
    registry.isStripped = true
    let client = try Self.restored(format1Client(), at: 4000)
    let others = [
      client,
      try TrustedRegistry(bundled: registry.document(), under: RegistrySimulator.trust(), at: 4000),
    ]
    for other in others {
      for merged in [client.merged(with: other, at: 4000), other.merged(with: client, at: 4000)] {
        let awake = try Self.restored(merged, at: Self.start)
        for (days, accepts) in [(29, true), (31, false)] as [(Int64, Bool)] {
          let now = Self.start + days * Self.day
          #expect(try awake.confirmed(at: now).accepts("b.example", leaf: 2, at: now) == accepts)
        }
      }
    }
  }

  @Test("what ships with an app brings no host back that left beside a retired statement")
  func retiredBundle() throws {
    let trust = try RegistrySimulator.trust()
    var registry = RegistrySimulator()
    registry.pins = [("a.example", 1), ("b.example", 2)]
    let bundle = try registry.document()
    (registry.version, registry.isRetired, registry.pins) = (2, true, [("a.example", 1)])
    var client = try TrustedRegistry(bundled: bundle, under: trust, at: Self.start)
      .update(with: registry).registry
    for (days, accepts) in [(1, true), (29, true), (31, false), (62, false), (63, false)]
      as [(Int64, Bool)]
    {
      let now = Self.start + days * Self.day
      client = try Self.restored(client, at: now).merged(
        with: TrustedRegistry(bundled: bundle, under: trust, at: now), at: now
      ).confirmed(at: now)
      #expect(try client.accepts("b.example", leaf: 2, at: now) == accepts, "\(days)")
    }
  }

  @Test("a clock that was put back by two seconds leaves a statement's state confirmed")
  func secondsBack() throws {
    let client = try RegistrySimulator().client()
    for (seconds, isKnown) in [(0, true), (2, true), (3600, true), (3601, false)] as [(Int64, Bool)]
    {
      let now = client.stamp.confirmed - seconds
      let restored = try Self.restored(client, at: now)
      #expect(restored.stamp.confirmed == (isKnown ? now : 0), "\(seconds)")
    }
    // Of two lists of format 1 the one that was confirmed later wins: a time to come would always win.
    let list = try format1Client()
    #expect(try Self.restored(list, at: list.stamp.confirmed - 1).stamp.confirmed == 0)
  }

  @Test(
    "a confirmation from before the statement was issued was written by a slow clock, and is unknown"
  )
  func confirmedTooEarly() throws {
    let client = try RegistrySimulator().client()
    let issued = try #require(client.statement?.issued)
    for (seconds, isKnown) in [
      (-60, true), (0, true), (3600, true), (3601, false), (400 * Self.day, false),
    ]
      as [(Int64, Bool)]
    {
      let clock = issued - seconds
      let restored = try Self.restored(client.confirmed(at: clock), at: clock + 10)
      #expect(restored.stamp.confirmed == (isKnown ? clock : 0), "\(seconds)")
      #expect(restored.stamp.isStale(at: clock + 10) == !isKnown)
    }
    // Nothing tells in format 1.
    let list = try format1Client().confirmed(at: 4000)
    #expect(try Self.restored(list, at: 4000).stamp.confirmed == 4000)
  }

  @Test(
    "a list that all hosts but one left is not read anew for each of them, and a thousand are told",
    .timeLimit(.minutes(2)))
  func manyVanished() throws {
    var registry = RegistrySimulator()
    registry.isStripped = true
    registry.pins = (0..<3000).map { ("h\($0).example", 2) } + [("a.example", 1)]
    let client = try registry.client()
    registry.pins = [("a.example", 1)]
    let later = try client.update(with: registry).registry
    let restored = try Self.restored(later.confirmed(at: Self.start), at: Self.start)
    for client in [later, restored] {
      #expect(client.registry.keys.count == 3001)
      #expect(client.registry.problems.count == 1000)
    }
  }
}
