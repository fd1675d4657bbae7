import SslPinningPlatform
import SslPinningRules
import TestSupport
import Testing

@Suite("Believing registries")
struct TrustedRegistryTests {
  static let day: Int64 = 86400
  static let start: Int64 = 1_800_000_000

  private func first(
    _ pins: [(host: String, pin: UInt8)], limits: RegistryLimits = .standard
  ) throws -> TrustedRegistry {
    try TrustedRegistry(
      accepting: SignedDocument.of(pins), verifiedBy: TestKey.own,
      at: Self.start, limits: limits)
  }

  private func after(
    _ registry: TrustedRegistry, _ pins: [(host: String, pin: UInt8)], day: Int64
  ) throws -> TrustedRegistry {
    try registry.accepting(
      SignedDocument.of(pins), verifiedBy: TestKey.own,
      at: Self.start + day * Self.day)
  }

  /// The pins of each listed host, by host.
  private func pins(_ registry: TrustedRegistry) throws -> [String: [SPKIPin]] {
    let policy = try registry.policy()
    var found: [String: [SPKIPin]] = [:]
    for name in ["a.example", "b.example", "c.example"] {
      found[name] = policy.entry(for: try HostName(name))?.leaf.pins.map(\.spki)
    }
    return found
  }

  @Test("a document under the right key is believed, with its digest and time")
  func believed() throws {
    let registry = try first([("a.example", 1), ("a.example", 2)])
    #expect(try pins(registry) == ["a.example": [.test(1), .test(2)]])
    #expect(registry.stamp.confirmed == Self.start)
    #expect(registry.stamp.version == nil)
    #expect(registry.stamp.payloadDigest.utf8.count == 64)
    #expect(
      registry.stamp.payloadDigest
        == (try first([("a.example", 1), ("a.example", 2)])).stamp.payloadDigest)
    #expect(registry.stamp.payloadDigest != (try first([("a.example", 1)])).stamp.payloadDigest)
    #expect(try registry.policy().registry == registry.stamp)
  }

  @Test("a refused update changes nothing, and says why")
  func refusedUpdate() throws {
    let registry = try first([("a.example", 1)])
    let updates: [(String, [UInt8], RegistryError)] = [
      ("another key", try SignedDocument.of([("a.example", 9)], by: .other), .badSignature),
      (
        "one changed byte",
        [UInt8](
          String(decoding: try SignedDocument.of([("a.example", 9)]), as: UTF8.self)
            .replacing("a.example", with: "b.example").utf8), .badSignature
      ),
      ("an empty list", try SignedDocument.of(entries: []), .noUsableKey),
      (
        "no readable pin",
        try SignedDocument.of(entries: ["{\"domainName\":\"a.example\",\"key\":\"AAAA\"}"]),
        .noUsableKey
      ),
      ("no list", try SignedDocument.of(payload: "{}"), .missingMember("payload.keys")),
      ("nothing", [], .malformed(.unexpectedEnd(offset: 0))),
    ]
    for (name, bytes, error) in updates {
      #expect(throws: error, "\(name)") {
        try registry.accepting(
          bytes, verifiedBy: TestKey.own, at: Self.start + 9)
      }
      #expect(throws: error, "\(name)") {
        try TrustedRegistry(
          accepting: bytes, verifiedBy: TestKey.own, at: Self.start)
      }
    }
    #expect(try pins(registry) == ["a.example": [.test(1)]])
    #expect(registry.stamp.confirmed == Self.start)
  }

  @Test("a host's new pins replace its old ones")
  func replaced() throws {
    let registry = try after(first([("a.example", 1)]), [("a.example", 2)], day: 1)
    #expect(try pins(registry) == ["a.example": [.test(2)]])
    #expect(registry.registry.problems.isEmpty)
  }

  @Test("a vanished host keeps its last pins for 30 days and is reported, then it goes")
  func vanished() throws {
    let both = try first([("a.example", 1), ("a.example", 2), ("b.example", 3)])
    var registry = try after(both, [("b.example", 4)], day: 1)
    let since = Self.start + Self.day
    let pattern = try HostPattern("a.example")
    let kept: [String: [SPKIPin]] = [
      "a.example": [.test(1), .test(2)], "b.example": [.test(4)],
    ]
    #expect(try pins(registry) == kept)
    #expect(registry.registry.problems == [.vanished(pattern, since: since)])
    registry = try after(registry, [("b.example", 4)], day: 20)
    #expect(try pins(registry) == kept)
    #expect(registry.registry.problems == [.vanished(pattern, since: since)])
    registry = try after(registry, [("b.example", 4)], day: 31)
    #expect(try pins(registry) == kept)
    // A confirmation and a new document count alike.
    let confirmed = registry.confirmed(at: since + 30 * Self.day + 1)
    let renewed = try registry.accepting(
      SignedDocument.of([("b.example", 4)]), verifiedBy: TestKey.own,
      at: since + 30 * Self.day + 1)
    for registry in [confirmed, renewed] {
      #expect(try pins(registry) == ["b.example": [.test(4)]])
      #expect(registry.registry.problems.isEmpty)
    }
    #expect(try pins(registry.confirmed(at: since + 30 * Self.day)) == kept)
  }

  @Test("a host that comes back has its new pins only")
  func back() throws {
    var registry = try first([("a.example", 1), ("b.example", 3)])
    registry = try after(registry, [("b.example", 3)], day: 1)
    registry = try after(registry, [("a.example", 5), ("b.example", 3)], day: 2)
    #expect(try pins(registry) == ["a.example": [.test(5)], "b.example": [.test(3)]])
    #expect(registry.registry.problems.isEmpty)
    // And vanishes again with those, from then on.
    registry = try after(registry, [("b.example", 3)], day: 25)
    registry = try after(registry, [("b.example", 3)], day: 54)
    #expect(try pins(registry) == ["a.example": [.test(5)], "b.example": [.test(3)]])
  }

  @Test("an older document played back unlists no host")
  func rollback() throws {
    let old = try first([("a.example", 1)])
    let new = try after(old, [("a.example", 2), ("b.example", 3)], day: 1)
    let back = try after(new, [("a.example", 1)], day: 2)
    #expect(try pins(back)["b.example"] == [.test(3)])
  }

  @Test("a host whose pin becomes unreadable has not vanished: it is listed and refused")
  func unreadable() throws {
    let registry = try first([("a.example", 1), ("b.example", 3)]).accepting(
      SignedDocument.of(entries: [
        "{\"domainName\":\"a.example\",\"key\":\"AAAA\"}", SignedDocument.entry("b.example", 3),
      ]), verifiedBy: TestKey.own, at: Self.start)
    #expect(try pins(registry) == ["a.example": [], "b.example": [.test(3)]])
  }

  @Test("a clock that ran ahead hides no age, and lets no vanished host go early once it is right")
  func clock() throws {
    let registry = try first([("a.example", 1), ("b.example", 2)])
    let ahead = registry.confirmed(at: Self.start + 400 * 86_400)
    #expect(ahead.stamp.isStale(at: Self.start))
    let right = ahead.confirmed(at: Self.start)
    #expect(!right.stamp.isStale(at: Self.start))
    #expect(right.stamp.isStale(at: Self.start + 8 * 86_400))
    let gone = try ahead.accepting(
      SignedDocument.of(entries: [SignedDocument.entry("a.example", 1)]),
      verifiedBy: TestKey.own, at: Self.start)
    #expect(gone.registry.problems == [.vanished(try HostPattern("b.example"), since: Self.start)])
    #expect(gone.confirmed(at: Self.start + 29 * 86_400).registry.problems.count == 1)
    #expect(gone.confirmed(at: Self.start + 31 * 86_400).registry.problems.isEmpty)
  }

  @Test("keeps vanished hosts as long as the limits say, and no number of days traps")
  func limits() throws {
    for (days, kept) in [
      (0, false), (1, true), (.max, true), (-1, false), (.min, false),
    ] as [(Int64, Bool)] {
      let registry = try first(
        [("a.example", 1), ("b.example", 2)], limits: RegistryLimits(vanishedHostDays: days))
      let without = try after(registry, [("b.example", 2)], day: 0)
        .confirmed(at: Self.start + 1)
      #expect(try pins(without)["a.example"] == (kept ? [.test(1)] : nil), "\(days)")
    }
    let extreme = try TrustedRegistry(
      accepting: SignedDocument.of([("a.example", 1), ("b.example", 2)]),
      verifiedBy: TestKey.own, at: .min)
    let later = try extreme.accepting(
      SignedDocument.of([("b.example", 2)]), verifiedBy: TestKey.own,
      at: .max)
    #expect(later.confirmed(at: .max).stamp.age(at: .min) == 0)
    #expect(extreme.stamp.age(at: .max) == .max)
  }
}
