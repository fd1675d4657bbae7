import CanonicalJSON
import SslPinningRules
import TestSupport
import Testing

@Suite("What statements do to pins")
struct StatementRuleTests {
  static let start = RegistrySimulator.start
  static let day = RegistrySimulator.day

  private func pattern(_ text: String) throws -> HostPattern { try HostPattern(text) }

  @Test("a first start may be given a document without a statement, unless the app demands one")
  func required() throws {
    var registry = RegistrySimulator()
    registry.isStripped = true
    let client = try registry.client()
    #expect(client.statement == nil)
    #expect(client.expires == nil)
    #expect(throws: RegistryError.statementRequired) {
      try registry.client(under: RegistrySimulator.trust(requiresStatement: true))
    }
    #expect(throws: RegistryError.noFormat1Key) {
      try registry.client(under: RegistrySimulator.trust(format1Key: nil))
    }
    #expect(throws: RegistryError.badSignature) {
      try registry.client(under: RegistrySimulator.trust(format1Key: .other))
    }
    // Format 1 goes on as ever, and the first statement ends it.
    registry.pins = [("a.example", 2)]
    let newer = try client.update(with: registry)
    #expect(newer.refusal == nil)
    #expect(try newer.registry.accepts(leaf: 2))
    var stated = registry
    stated.isStripped = false
    let held = try newer.registry.update(with: stated).registry
    #expect(held.stamp.version == .init(epoch: 0, version: 1))
    #expect(try held.update(with: registry).refusal == .statementStripped)
  }

  @Test("format-1 clients verify the very same document, and never see the statement")
  func format1() throws {
    var registry = RegistrySimulator()
    try registry.beginEpoch(online: 3)
    let document = try registry.document()
    let old = try TrustedRegistry(
      accepting: document, verifiedBy: TestKey.own, at: Self.start)
    #expect(try old.accepts())
    #expect(old.statement == nil)
    #expect(old.stamp.version == nil)
    let new = try registry.client()
    #expect(old.registry == new.registry)
    // What was believed for its statement does not go back to the format-1 signature alone.
    #expect(throws: RegistryError.statementStripped) {
      try new.accepting(
        document, verifiedBy: TestKey.own, at: Self.start)
    }
  }

  @Test("beside a statement the format-1 signature may be wrong, unreadable or missing")
  func ignoredSignature() throws {
    let text = String(decoding: try RegistrySimulator().document(), as: UTF8.self)
    let start = try #require(text.range(of: ",\"signature\":\"")).lowerBound
    let end = try #require(text.range(of: "\",\"statement\"")).lowerBound
    for signature in ["", ",\"signature\":\"AAAA\"", ",\"signature\":\"?\"", ",\"signature\":7"] {
      let rest = text[end...].dropFirst()
      let document = [UInt8]((text[..<start] + signature + rest).utf8)
      #expect(throws: Never.self, "\(signature)") {
        try TrustedRegistry(
          accepting: document, under: RegistrySimulator.trust(), at: Self.start)
      }
      #expect(throws: RegistryError.badSignature) {
        try TrustedRegistry(
          accepting: document, verifiedBy: TestKey.own, at: Self.start)
      }
    }
  }

  @Test("a retired statement opens the way back to format 1, and another number closes it again")
  func retired() throws {
    var registry = RegistrySimulator()
    registry.hosts = [HostSettings(try pattern("b.example"), ca: [.test(90)])]
    var client = try registry.client()
    registry.version = 2
    registry.isRetired = true
    registry.denied = [7]
    registry.hosts = []
    registry.removed = ["b.example"]
    let retired = registry
    client = try client.update(with: registry).registry
    #expect(client.statement?.isRetired == true)
    #expect(client.expires == nil)
    // Its payload is the format-1 signature's matter, and so may change under it, for ever.
    let statement = try retired.statement()
    let signatures = try retired.signatures(over: statement)
    var later = registry
    later.pins = [("a.example", 5)]
    let far = Self.start + 4000 * Self.day
    let beside = client.update(
      with: try later.document(statement, signatures), under: try RegistrySimulator.trust(),
      at: far)
    #expect(beside.refusal == nil)
    later.isStripped = true
    let stripped = try client.update(with: later, at: far)
    #expect(stripped.refusal == nil)
    for client in [beside.registry, stripped.registry] {
      #expect(try client.accepts(leaf: 5, at: far))
      #expect(try client.verdict(path: [5, 7], at: far).outcome == .denied(.test(7)))
    }
    // The state of a retired registry survives.
    let trust = try RegistrySimulator.trust(requiresStatement: true)
    let state = try StoredState(decoding: stripped.registry.state.encoded)
    let restored = try TrustedRegistry(restoring: state, under: trust, at: far)
    #expect(restored.registry == stripped.registry.registry)
    #expect(restored.statement?.isRetired == true)
    // A wrong format-1 signature is refused; an older statement is; a newer one ends retirement.
    #expect(
      stripped.registry.update(
        with: try SignedDocument.of([("a.example", 6)], by: .other), under: trust, at: far
      ).refusal == .badSignature)
    registry.isRetired = false
    registry.version = 1
    #expect(
      try restored.update(with: registry, at: Self.start).refusal
        == .rolledBack(to: .init(epoch: 0, version: 1), from: .init(epoch: 0, version: 2)))
    registry.version = 3
    let back = try restored.update(with: registry, at: Self.start)
    #expect(back.refusal == nil)
    later.isStripped = true
    #expect(try back.registry.update(with: later).refusal == .statementStripped)
  }

  @Test("an expired retired statement opens nothing to a client that never held it")
  func retiredExpired() throws {
    var registry = RegistrySimulator()
    registry.isRetired = true
    let end = registry.issued + registry.lifetime
    #expect(throws: RegistryError.statementExpired(at: end)) { try registry.client(at: end) }
  }

  @Test("issued in the future is no error; that time counts until a newer version lowers it")
  func future() throws {
    var registry = RegistrySimulator()
    let late = Self.start + 200 * Self.day
    registry.issued = late
    registry.entryMembers = ",\"expire\":\(Self.start + 5)"
    let client = try registry.client()
    #expect(client.time(at: Self.start).later == late)
    #expect(client.time(at: late + 1).later == late + 1)
    #expect(try client.verdict().outcome == .noLivePin)
    // It does not hold up the version that puts it right, and the pin counts again.
    registry.version = 2
    registry.issued = Self.start
    let newer = try client.update(with: registry)
    #expect(newer.refusal == nil)
    #expect(newer.registry.time(at: 0).floor == Self.start)
    #expect(try newer.registry.accepts())
  }

  @Test("a clock set back or ahead changes nothing that a statement vouches for")
  func clock() throws {
    let registry = RegistrySimulator()
    for offset: Int64 in [-400 * Self.day, -30 * 3600, 25 * 3600] {
      let client = try registry.client(at: Self.start + offset)
      #expect(try client.accepts(at: Self.start + offset))
      #expect(client.stamp.age(at: Self.start + offset) == 0)
    }
  }

  @Test("an active pin never expires before its statement; a dead one is not revived")
  func activePins() throws {
    var registry = RegistrySimulator()
    let end = registry.issued + registry.lifetime
    for (expire, alive) in [
      (registry.issued, true), (registry.issued + 5, true), (end + 1, true),
      (registry.issued - 1, false),
    ] {
      registry.entryMembers = ",\"expire\":\(expire)"
      let client = try registry.client()
      #expect(try client.accepts(at: end - 1) == alive, "\(expire)")
    }
    // Without a statement the pin's own time counts.
    registry.entryMembers = ",\"expire\":\(registry.issued + 5)"
    registry.isStripped = true
    let bare = try registry.client()
    #expect(!(try bare.accepts(at: end - 1)))
  }

  @Test(
    "after expiry everything is refused, or the last pins and denials stay in force, never looser")
  func whenExpired() throws {
    var registry = RegistrySimulator()
    registry.denied = [7]
    registry.entryMembers = ",\"expire\":\(registry.issued + 5)"
    let client = try registry.client()
    let later = registry.issued + 1000 * Self.day
    #expect(try client.accepts(at: later, whenExpired: .keepPinning))
    #expect(!(try client.accepts(leaf: 2, at: later, whenExpired: .keepPinning)))
    #expect(
      try client.verdict(path: [1, 7], at: later, whenExpired: .keepPinning).outcome
        == .denied(.test(7)))
    let verdict = try client.verdict(at: later)
    #expect(verdict.outcome == .registryExpired(at: registry.issued + registry.lifetime))
    #expect(verdict.decision == .refuse)
    #expect(verdict.couldChangeAfterRefresh)
    #expect(verdict.rule == "expired-registry")
    #expect(!verdict.description.isEmpty)
    // Report-only forgives nothing of that, and unlisted hosts are refused too.
    #expect(try client.verdict(at: later, enforcement: .reportOnly).decision == .refuse)
    let open = try client.policy(unlistedHosts: .systemTrust)
    #expect(open.expires == registry.issued + registry.lifetime)
    #expect(
      open.unchangedUntil(from: TrustTime(clock: Self.start))
        == registry.issued + registry.lifetime - 1)
    // A pin that was dead before stays dead.
    registry.entryMembers = ",\"expire\":\(registry.issued - 27 * 3600)"
    let dead = try registry.client()
    #expect(!(try dead.accepts(at: later, whenExpired: .keepPinning)))
  }

  @Test("a bundled document may have expired, and nothing older is believed after it")
  func bundled() throws {
    var registry = RegistrySimulator()
    registry.version = 5
    let later = registry.issued + 1000 * Self.day
    let document = try registry.document()
    let trust = try RegistrySimulator.trust()
    #expect(throws: RegistryError.self) {
      try TrustedRegistry(accepting: document, under: trust, at: later)
    }
    let client = try TrustedRegistry(bundled: document, under: trust, at: later)
    #expect(client.isExpired(at: later))
    #expect(!(try client.accepts(at: later)))
    #expect(try client.accepts(at: later, whenExpired: .keepPinning))
    registry.version = 4
    registry.issued = later
    #expect(
      try client.update(with: registry, at: later).refusal
        == .rolledBack(to: .init(epoch: 0, version: 4), from: .init(epoch: 0, version: 5)))
    registry.version = 6
    #expect(try client.update(with: registry, at: later).refusal == nil)
  }

  @Test("CA pins and match come from the statement")
  func hosts() throws {
    var registry = RegistrySimulator()
    registry.hosts = [HostSettings(try pattern("a.example"), ca: [.test(91)])]
    var client = try registry.client()
    #expect(try client.verdict(path: [1, 90, 91]).outcome == .matched)
    #expect(try client.verdict(path: [1, 90]).outcome == .mismatch(.ca))
    #expect(try client.verdict(path: [2, 90, 91]).outcome == .mismatch(.leaf))
    registry.hosts = [HostSettings(try pattern("a.example"), ca: [.test(91)], match: .any)]
    registry.version = 2
    client = try client.update(with: registry).registry
    #expect(try client.verdict(path: [2, 90, 91]).outcome == .matched)
    #expect(try client.verdict(path: [1, 90]).outcome == .matched)
    #expect(try client.verdict(path: [2, 90]).outcome == .mismatch(.leaf))
    // A host that has CA pins only, in a registry without one leaf pin.
    registry.pins = []
    registry.hosts = [HostSettings(try pattern("ca.example"), ca: [.test(91)])]
    let only = try registry.client()
    #expect(try only.verdict("ca.example", path: [5, 91]).outcome == .matched)
    #expect(try only.verdict("ca.example", path: [91, 5]).outcome == .mismatch(.ca))
    registry.hosts = []
    #expect(throws: RegistryError.noUsableKey) { try registry.client() }
  }

  @Test("a statement turns report-only into enforce, never back; only a new epoch begins anew")
  func enforce() throws {
    var registry = RegistrySimulator()
    var client = try registry.client()
    func forgives() throws -> Bool {
      try client.verdict(path: [2], enforcement: .reportOnly).decision == .accept
    }
    #expect(try forgives())
    #expect(!(try client.accepts(leaf: 2)))
    registry.version = 2
    registry.hosts = [HostSettings(try pattern("a.example"), enforces: true)]
    client = try client.update(with: registry).registry
    #expect(!(try forgives()))
    for (version, hosts) in [
      (3, [HostSettings(try pattern("a.example"), enforces: false)]), (4, []),
    ] {
      registry.version = Int64(version)
      registry.hosts = hosts
      client = try client.update(with: registry).registry
      #expect(client.stamp.version?.version == Int64(version))
      #expect(!(try forgives()))
      let state = try StoredState(decoding: client.state.encoded)
      client = try TrustedRegistry(
        restoring: state, under: RegistrySimulator.trust(), at: Self.start)
      #expect(!(try forgives()))
    }
    try registry.beginEpoch(online: 1)
    client = try client.update(with: registry).registry
    #expect(try forgives())
    #expect(!(try client.accepts(leaf: 2)))
  }

  @Test(
    "a host that was enforced stays so in the epoch, whichever pattern lists it by then",
    arguments: [
      ("a.example", "**.a.example", "b.a.example"), ("**.a.example", "**.example", "b.example"),
      ("*.example", "**.example", "a.b.example"),
    ])
  func enforcedByAnother(before: String, after: String, other: String) throws {
    var registry = RegistrySimulator()
    registry.pins = [(before, 1)]
    registry.hosts = [HostSettings(try pattern(before), enforces: true)]
    let client = try registry.client()
    (registry.version, registry.pins, registry.hosts) = (2, [(after, 1)], [])
    let next = try client.update(with: registry).registry
    #expect(next.stamp.version?.version == 2)
    func forgives(_ host: String) throws -> Bool {
      try next.verdict(host, path: [2], enforcement: .reportOnly).decision == .accept
    }
    #expect(try !forgives("a.example"))
    #expect(try forgives(other))
  }

  @Test(
    "refuses a statement that can be read only in part, and keeps the one before",
    arguments: [
      ("type", .null), ("registry", .number(1)), ("epoch", .string("0")), ("epoch", .number(-1)),
      ("version", .string("2")), ("version", .null), ("issued", .null), ("issued", .number(-5)),
      ("expires", .null), ("expires", .string("never")), ("payloadDigest", .string("AAAA")),
      ("payloadDigest", .null), ("hosts", .null), ("hosts", .array([.number(1)])),
      ("hosts", .array([.object(["domainName": .string("*.*.example")])])),
      ("hosts", .array([.object(["domainName": .string("a.example"), "ca": .null])])),
      (
        "hosts",
        .array([.object(["domainName": .string("a.example"), "ca": .array([.string("AAAA")])])])
      ),
      ("hosts", .array([.object(["domainName": .string("a.example"), "match": .string("one")])])),
      ("hosts", .array([.object(["domainName": .string("a.example"), "enforce": .number(1)])])),
      (
        "hosts",
        .array([
          .object(["domainName": .string("a.example")]),
          .object(["domainName": .string("A.example.")]),
        ])
      ),
      ("denied", .null), ("denied", .array([.string("AAAA")])), ("denied", .array([.null])),
      ("removed", .string("a.example")), ("removed", .array([.string("*")])),
      ("retired", .string("yes")), ("retired", .null),
    ] as [(String, JSONValue)])
  func strict(member: String, value: JSONValue) throws {
    var registry = RegistrySimulator()
    let client = try registry.client()
    registry.version = 2
    #expect(try client.update(with: registry).refusal == nil)
    registry.extraStatementMembers = [(member, value)]
    let update = try client.update(with: registry)
    guard case .invalidStatement = update.refusal else {
      Issue.record("\(String(describing: update.refusal))")
      return
    }
    #expect(update.registry.registry == client.registry)
    #expect(update.registry.stamp == client.stamp)
  }

  @Test("refuses numbers at 2^53, where two readers read two numbers, and takes the one before")
  func greatNumbers() throws {
    var registry = RegistrySimulator()
    registry.version = JSONNumber.greatestInteger
    #expect(throws: Never.self) { try registry.client() }
    let great = try #require(JSONNumber(Double(1 << 53)))
    registry.extraStatementMembers = [("version", .number(great))]
    #expect(throws: RegistryError.invalidStatement(.member("version"))) { try registry.client() }
    registry.extraStatementMembers = [("version", .number(try #require(JSONNumber(1.5))))]
    #expect(throws: RegistryError.invalidStatement(.member("version"))) { try registry.client() }
    registry.extraStatementMembers = [
      ("expires", .number(try #require(JSONNumber(exactly: Self.start))))
    ]
    #expect(throws: RegistryError.invalidStatement(.expiresBeforeIssue)) { try registry.client() }
  }
}
