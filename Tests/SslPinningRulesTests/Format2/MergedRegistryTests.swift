import CanonicalJSON
import SslPinningPlatform
import SslPinningRules
import Testing

@Suite("What two registries know together")
struct MergedRegistryTests {
  private static let start = RegistrySimulator.start
  private static let day = RegistrySimulator.day

  /// Merged both ways: it must not matter who asks.
  private func merged(_ a: TrustedRegistry, _ b: TrustedRegistry) throws -> TrustedRegistry {
    let one = a.merged(with: b, at: Self.start + 100)
    let other = b.merged(with: a, at: Self.start + 100)
    #expect(one.state.encoded == other.state.encoded)
    return one
  }

  @Test("the highest epoch and version wins, whichever is asked")
  func versions() throws {
    var registry = RegistrySimulator()
    try registry.beginEpoch(online: 1)
    let first = try registry.client()
    registry.version = 2
    registry.pins = [("a.example", 2)]
    let second = try registry.client()
    #expect(try merged(first, second).accepts(leaf: 2))
    try registry.beginEpoch(online: 3)
    registry.pins = [("a.example", 3)]
    let third = try registry.client()
    #expect(third.stamp.version == .init(epoch: 2, version: 1))
    #expect(try merged(second, third).accepts(leaf: 3))
    #expect(try merged(second, third).update(with: registry).refusal == nil)
  }

  @Test("of the same number, the one that was confirmed later counts")
  func confirmed() throws {
    let registry = try RegistrySimulator().client()
    let later = registry.confirmed(at: Self.start + 50)
    #expect(try merged(registry, later).stamp.confirmed == Self.start + 50)
  }

  @Test("of two statements with one number the stored one stays, and the next number ends both")
  func oneNumber() throws {
    var registry = RegistrySimulator()
    registry.denied = [7]
    let stored = try registry.client()
    (registry.denied, registry.issued) = ([], Self.start + 50)
    let clock = Self.start + 100
    let shipped = try TrustedRegistry(
      bundled: try registry.document(), under: try RegistrySimulator.trust(), at: clock)
    for both in [
      stored.merged(with: shipped, at: clock), shipped.merged(withStored: stored, at: clock),
    ] {
      #expect(both.isSameDocument(as: stored))
      #expect(try both.verdict(path: [1, 7], at: clock).outcome == .denied(.test(7)))
      // As it is told when such a one is fetched.
      #expect(both.stamp.fork != nil)
    }
    registry.version = 2
    let newer = try registry.client(at: clock)
    for both in [
      stored.merged(with: newer, at: clock), newer.merged(withStored: stored, at: clock),
    ] {
      #expect(both.isSameDocument(as: newer))
      #expect(try both.verdict(path: [1, 7], at: clock).decision == .accept)
    }
  }

  @Test(
    "in format 1, what was confirmed under a clock that ran ahead does not win over what is newer")
  func clockPutBack() throws {
    var registry = RegistrySimulator()
    registry.isStripped = true
    let old = try registry.client().confirmed(at: Self.start + 400 * Self.day)
    registry.pins = [("a.example", 2)]
    let newer = try registry.client(at: Self.start + 50)
    #expect(try merged(old, newer).accepts(leaf: 2))
  }

  @Test(
    "in format 1, a list that an update of the app ships counts if an entry is dated after the stored one was confirmed",
    arguments: [(1, true), (100, true), (0, false), (-5, false), (101, false)])
  func shippedInFormat1(_ dated: Int64, _ isNewer: Bool) throws {
    var registry = RegistrySimulator()
    registry.isStripped = true
    registry.pins = [("a.example", 1), ("b.example", 9)]
    let stored = try registry.client()
    registry.pins = [("a.example", 2)]
    registry.entryMembers = ",\"date\":\"\(RFC3339.text(Self.start + dated))\""
    let shipped = try TrustedRegistry(
      bundled: try registry.document(), under: try RegistrySimulator.trust(), at: Self.start)
    var both = try merged(stored, shipped)
    #expect(try both.accepts(leaf: 2) == isNewer)
    #expect(try both.accepts(leaf: 1) != isNewer)
    #expect(both.stamp.confirmed == (isNewer ? 0 : Self.start))
    guard isNewer else { return }
    // What it leaves out vanishes, as if it had been fetched, and no start with the same list begins the 30 days again.
    #expect(try both.accepts("b.example", leaf: 9))
    for days in [20, 30] as [Int64] {
      both = both.merged(with: shipped, at: Self.start + 100 + days * Self.day)
      #expect(try both.accepts("b.example", leaf: 9))
    }
    let over = Self.start + 101 + 30 * Self.day
    both = both.merged(with: shipped, at: over)
    #expect(try both.verdict("b.example", at: over).outcome == .unlisted)
  }

  @Test(
    "so it does beside a retired statement that both have, however long ago that was issued",
    arguments: [(1, true), (100, true), (0, false), (101, false)])
  func shippedBesideRetired(_ dated: Int64, _ isNewer: Bool) throws {
    var registry = RegistrySimulator()
    (registry.isRetired, registry.issued) = (true, Self.start - 50 * Self.day)
    registry.pins = [("a.example", 1), ("b.example", 9)]
    let statement = try registry.statement()
    let signatures = try registry.signatures(over: statement)
    let trust = try RegistrySimulator.trust()
    let stored = try TrustedRegistry(
      accepting: try registry.document(statement, signatures), under: trust, at: Self.start)
    registry.pins = [("a.example", 2)]
    registry.entryMembers = ",\"date\":\"\(RFC3339.text(Self.start + dated))\""
    let shipped = try TrustedRegistry(
      bundled: try registry.document(statement, signatures), under: trust, at: Self.start)
    var both = try merged(stored, shipped)
    #expect(try both.accepts(leaf: 2) == isNewer)
    #expect(try both.accepts(leaf: 1) != isNewer)
    #expect(try both.accepts("b.example", leaf: 9))
    guard isNewer else { return }
    // What it leaves out has 30 days from then on.
    for (days, isKept) in [(29, true), (31, false)] as [(Int64, Bool)] {
      let clock = Self.start + 100 + days * Self.day
      both = both.merged(with: shipped, at: clock)
      #expect(try (both.verdict("b.example", at: clock).outcome != .unlisted) == isKept)
    }
  }

  @Test(
    "in format 1, a shipped list that is older brings back no host that the stored one leaves out")
  func shippedBeforeInFormat1() throws {
    var registry = RegistrySimulator()
    registry.isStripped = true
    registry.entryMembers = ",\"date\":\"\(RFC3339.text(Self.start - 9))\""
    registry.pins = [("a.example", 1), ("b.example", 9)]
    let shipped = try TrustedRegistry(
      bundled: try registry.document(), under: try RegistrySimulator.trust(), at: Self.start)
    registry.pins = [("a.example", 2)]
    registry.entryMembers = ",\"date\":\"\(RFC3339.text(Self.start - 5))\""
    let both = try merged(try registry.client(), shipped)
    #expect(try both.accepts(leaf: 2))
    #expect(try both.verdict("b.example", at: Self.start + 100).outcome == .unlisted)
  }

  @Test(
    "without a number, under a clock that is behind the last confirmation, the list of the later date wins",
    arguments: [-90, -30, -2] as [Int64], [false, true])
  func slowClock(_ days: Int64, _ isRetired: Bool) throws {
    let trust = try RegistrySimulator.trust()
    let clock = Self.start + days * Self.day
    var registry = RegistrySimulator()
    (registry.isStripped, registry.isRetired) = (!isRetired, isRetired)
    registry.issued = Self.start - 80 * Self.day
    let statement = try registry.statement()
    let signatures = try registry.signatures(over: statement)
    func list(_ pin: UInt8, datedDays: Int64) throws -> [UInt8] {
      registry.pins = [("a.example", pin)]
      let date = RFC3339.text(Self.start + datedDays * Self.day)
      registry.entryMembers = ",\"date\":\"\(date)\""
      return try registry.document(statement, signatures)
    }
    let fetched = try TrustedRegistry(
      accepting: list(2, datedDays: -1), under: trust, at: Self.start)
    let stored = try TrustedRegistry(
      restoring: StoredState(decoding: fetched.state.encoded), under: trust, at: clock)
    // The day on which the app was built: before the fetched list, or, in an update, after it.
    for (built, isNewer) in [(-60, false), (1, true)] as [(Int64, Bool)] {
      let shipped = try TrustedRegistry(
        bundled: list(1, datedDays: built), under: trust, at: clock)
      for both in [
        stored.merged(with: shipped, at: clock), shipped.merged(with: stored, at: clock),
      ] {
        #expect(both.isSameDocument(as: isNewer ? shipped : stored), "built on day \(built)")
      }
      // Once the clock is right, a date in the future wins over nothing that was confirmed.
      #expect(fetched.merged(with: shipped, at: Self.start).isSameDocument(as: fetched))
    }
  }

  @Test("a registry with a statement wins over one without, and is never without again")
  func statement() throws {
    var registry = RegistrySimulator()
    let stated = try registry.client()
    registry.isStripped = true
    let bare = try registry.client(at: Self.start + 9)
    let both = try merged(bare, stated)
    #expect(both.statement != nil)
    #expect(try both.update(with: registry).refusal == .statementStripped)
  }

  @Test("in format 1, a host whose vanishing only one of them saw keeps its pins for its 30 days")
  func vanishedInFormat1() throws {
    var registry = RegistrySimulator()
    registry.isStripped = true
    let other = try registry.client()
    registry.pins = [("a.example", 1), ("b.example", 2)]
    var knowing = try registry.client()
    registry.pins = [("a.example", 1)]
    knowing = try knowing.update(with: registry, at: Self.start + 50).registry
    let later = try other.update(with: registry, at: Self.start + 90).registry
    #expect(try merged(knowing, later).accepts("b.example", leaf: 2))
    let over = Self.start + 50 + 30 * Self.day + 1
    let late = knowing.merged(with: later.confirmed(at: over), at: over)
    #expect(try late.verdict("b.example", at: over).outcome == .unlisted)
  }

  @Test("a vanished host keeps the pins of the newest document that listed it, whoever saw that")
  func vanishedNewest() throws {
    var registry = RegistrySimulator()
    registry.pins = [("a.example", 1), ("b.example", 9)]
    let absent = try registry.client()
    registry.version = 2
    registry.pins = [("a.example", 2), ("b.example", 9)]
    let before = try absent.update(with: registry).registry
    registry.version = 3
    registry.pins = [("b.example", 9)]
    let present = try before.update(with: registry, at: Self.start + 10).registry
    let late = try absent.update(with: registry, at: Self.start + 50).registry
    for both in [try merged(present, late), try merged(before, late)] {
      #expect(try both.accepts(leaf: 2))
      #expect(try !both.accepts(leaf: 1))
    }
  }

  @Test("so it does across epochs, if the newer one's online keys signed both lists")
  func vanishedNewestAcrossEpochs() throws {
    var registry = RegistrySimulator()
    try registry.beginEpoch(online: 1)
    registry.pins = [("a.example", 1), ("b.example", 9)]
    let absent = try registry.client()
    try registry.beginEpoch(online: 1)
    registry.pins = [("a.example", 2), ("b.example", 9)]
    let before = try absent.update(with: registry).registry
    registry.version = 2
    registry.pins = [("b.example", 9)]
    let late = try absent.update(with: registry, at: Self.start + 50).registry
    let both = try merged(before, late)
    #expect(try both.accepts(leaf: 2))
    #expect(try !both.accepts(leaf: 1))
  }

  @Test(
    "a list beside a retired statement is as new as that statement, for its vanished hosts",
    arguments: [false, true], [false, true])
  func vanishedBesideRetired(isNewer: Bool, isStripped: Bool) throws {
    let trust = try RegistrySimulator.trust()
    func restarted(_ client: TrustedRegistry) throws -> TrustedRegistry {
      try TrustedRegistry(
        restoring: StoredState(decoding: client.state.encoded), under: trust, at: Self.start)
    }
    var registry = RegistrySimulator()
    registry.pins = [("a.example", 1), ("b.example", 9)]
    let first = try registry.client()
    // One process meets the retired statement: the list comes with it, or after it.
    var retired = registry
    (retired.version, retired.isRetired) = (isNewer ? 3 : 2, true)
    if !isStripped { retired.pins[0].pin = 3 }
    var beside = try first.update(with: retired).registry
    if isStripped {
      retired.isStripped = true
      retired.pins[0].pin = 3
      beside = try beside.update(with: retired).registry
    }
    // The other one meets another statement, and both see the host vanish.
    registry.version = isNewer ? 2 : 3
    registry.pins[0].pin = 2
    let stated = try first.update(with: registry).registry
    registry.version = 4
    registry.pins.removeFirst()
    let one = try stated.update(with: registry).registry
    let other = try beside.update(with: registry).registry
    let both = try merged(one, other)
    let pins: (kept: UInt8, gone: UInt8) = isNewer ? (3, 2) : (2, 3)
    for client in [both, try restarted(both), try merged(restarted(one), restarted(other))] {
      #expect(try client.accepts(leaf: pins.kept))
      #expect(try !client.accepts(leaf: pins.gone))
    }
    // What a retired statement's list had lasts for 30 days, and the other for as long as statements do.
    let over = Self.start + 31 * Self.day
    let outcome: PinEvaluation.Outcome = isNewer ? .unlisted : .matched
    #expect(try both.confirmed(at: over).verdict(path: [2, 90, 91], at: over).outcome == outcome)
  }

  @Test(
    "beyond the limit the newest list of vanished hosts is kept, beside a retired statement or not",
    arguments: [false, true])
  func limitBesideRetired(isNewer: Bool) throws {
    let trust = try RegistrySimulator.trust(limits: RegistryLimits(maximumOlderDocuments: 1))
    var registry = RegistrySimulator()
    registry.pins = [("a.example", 1), ("b.example", 9), ("c.example", 5)]
    let first = try registry.client(under: trust)
    var retired = registry
    (retired.version, retired.isRetired) = (isNewer ? 3 : 2, true)
    retired.pins = [("a.example", 3), ("b.example", 9), ("d.example", 7)]
    let beside = try first.update(with: retired, under: trust).registry
    registry.version = isNewer ? 2 : 3
    registry.pins[0].pin = 2
    let stated = try first.update(with: registry, under: trust).registry
    registry.version = 4
    registry.pins = [("b.example", 9)]
    let both = try merged(
      stated.update(with: registry, under: trust).registry,
      beside.update(with: registry, under: trust).registry)
    #expect(try both.accepts("a.example", leaf: isNewer ? 3 : 2))
    let (kept, gone) = isNewer ? ("d.example", "c.example") : ("c.example", "d.example")
    #expect(try both.accepts(kept, leaf: isNewer ? 7 : 5))
    #expect(try both.verdict(gone).outcome == .unlisted)
  }

  @Test("key sets that one of them has seen stay seen: withdrawn keys do not come back")
  func keySets() throws {
    var registry = RegistrySimulator()
    try registry.beginEpoch(online: 1)
    registry.version = 7
    let ahead = try registry.client()
    registry.version = 5
    var knowing = try registry.client()
    var next = registry
    try next.beginEpoch(online: 2)
    // The document is refused, its key sets are believed.
    var refused = next
    refused.online = [9]
    knowing = try knowing.update(with: refused).registry
    #expect(knowing.keySetEpoch == 2)
    let both = try merged(ahead, knowing)
    #expect(both.stamp.version == .init(epoch: 1, version: 7))
    registry.version = 8
    #expect(try ahead.update(with: registry).refusal == nil)
    #expect(try both.update(with: registry).refusal != nil)
    #expect(try both.update(with: next).refusal == nil)
  }

  @Test("what is merged is read again, though other key sets stand beside its document")
  func jumped() throws {
    var registry = RegistrySimulator()
    for key in 1...3 { try registry.beginEpoch(online: key) }
    registry.version = 10
    let walked = try registry.client()
    // At a first start somebody kept the first set from another process, which begins behind it.
    var cut = registry
    (cut.version, cut.keySets[0]) = (11, .object([:]))
    let jumped = try cut.client()
    // This one learns a set from a document that it refuses.
    var next = registry
    try next.beginEpoch(online: 4)
    next.online = [9]
    let both = try merged(jumped, try walked.update(with: next).registry)
    let restored = try TrustedRegistry(
      restoring: StoredState(decoding: both.state.encoded), under: RegistrySimulator.trust(),
      at: Self.start)
    for client in [both, restored] {
      #expect(client.keySetEpoch == 4)
      #expect(client.stamp.version == .init(epoch: 3, version: 11))
      #expect(try client.accepts())
    }
  }

  @Test("within an epoch hosts and enforcement of the older one stay; the time is the newer one's")
  func tightening() throws {
    var registry = RegistrySimulator()
    registry.pins = [("a.example", 1), ("b.example", 2), ("c.example", 3)]
    registry.hosts = [HostSettings(try HostPattern("a.example"), enforces: true)]
    registry.issued = Self.start + 20
    let older = try registry.client()
    registry.version = 2
    registry.issued = Self.start + 10
    registry.pins = [("a.example", 1)]
    registry.hosts = []
    registry.removed = ["c.example"]
    let newer = try registry.client()
    let both = try merged(older, newer)
    #expect(both.time(at: 0).floor == Self.start + 10)
    #expect(try both.accepts("b.example", leaf: 2))
    #expect(try both.verdict("c.example", path: [3, 90, 91]).outcome == .unlisted)
    let reporting = try both.verdict(path: [8, 90, 91], enforcement: .reportOnly)
    #expect(reporting.decision == .refuse)
    #expect(try newer.verdict(path: [8, 90, 91], enforcement: .reportOnly).decision == .accept)
    #expect(both.registry.problems.count == 1)
  }

  @Test("across epochs nothing of the older one is kept, for its keys may be stolen")
  func epochs() throws {
    var registry = RegistrySimulator()
    try registry.beginEpoch(online: 1)
    registry.pins = [("a.example", 1), ("evil.example", 66)]
    let stolen = try registry.client()
    try registry.beginEpoch(online: 2)
    registry.pins = [("a.example", 1)]
    let both = try merged(stolen, try registry.client())
    #expect(try both.verdict("evil.example", path: [66, 90, 91]).outcome == .unlisted)
  }
}
