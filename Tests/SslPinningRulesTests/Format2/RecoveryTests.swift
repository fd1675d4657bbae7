import CanonicalJSON
import Testing

@testable import SslPinningRules

/// What a thief listed, and how long it outlives him.
@Suite("The first statement of an epoch")
struct RecoveryTests {
  private static let start = RegistrySimulator.start
  private static let day = RegistrySimulator.day

  /// A genuine registry of epoch 1 and a client that believes it.
  private func scene() throws -> (registry: RegistrySimulator, client: TrustedRegistry) {
    var registry = RegistrySimulator()
    try registry.beginEpoch(online: 1)
    return (registry, try registry.client())
  }

  /// The root keys begin epoch 2, whose first statement lists every host. On its first day nothing of
  /// the thief's counts, in the process that met him and after a restart.
  private func expectHealed(
    _ client: TrustedRegistry, by genuine: RegistrySimulator, at clock: Int64 = start
  ) throws {
    var next = genuine
    try next.beginEpoch(online: 2)
    let update = try client.update(with: next, at: clock)
    #expect(update.refusal == nil)
    let restarted = try TrustedRegistry(
      restoring: update.registry.state, under: RegistrySimulator.trust(), at: clock)
    for healed in [update.registry, restarted] {
      #expect(try healed.accepts(leaf: 1, at: clock))
      #expect(try !healed.accepts(leaf: 66, at: clock))
      #expect(try healed.verdict("evil.example", path: [66, 66, 66]).outcome == .unlisted)
    }
  }

  @Test(
    "is asked once whether it vouches for a document, however many hosts that had",
    .timeLimit(.minutes(1)))
  func manyHosts() throws {
    func document(_ number: UInt8) -> AcceptedDocument {
      AcceptedDocument(
        bytes: [], signed: [UInt8](repeating: 1, count: 4 << 20) + [number], digest: [number],
        payloadDigest: "the same", registry: Registry(keys: [], settings: []), statement: nil)
    }
    // Of one payload and one length, as with hosts in the statement.
    let documents = (0..<8).map(document)
    var vanished = VanishedHosts()
    for (number, source) in documents.enumerated() {
      for host in 0..<5000 {
        try vanished.restore(
          HostPattern("h\(host).d\(number).example"),
          .init(source: source, last: source.registry, since: 0))
      }
    }
    var asked: [UInt8] = []
    vanished.keep { document in
      asked += document.digest
      return document.digest == [2]
    }
    #expect(asked.sorted() == Array(0..<8))
    #expect(vanished.hosts.count == 5000)
    #expect(vanished.hosts.keys.allSatisfy { "\($0)".hasSuffix(".d2.example") })
  }

  @Test("ends what a thief had enforced, which until then is bounded and drives nothing out")
  func manyEnforced() throws {
    var registry = RegistrySimulator()
    registry.hosts = [HostSettings(try HostPattern("a.example"), enforces: true)]
    let trust = try RegistrySimulator.trust()
    let genuine = try registry.client()
    var state = genuine.state
    state.enforced += try (0..<20_000).map { try HostPattern("h\($0).example") }
    let restored = try TrustedRegistry(restoring: state, under: trust, at: Self.start)
    let most = TrustedRegistry.Standing.mostEnforced
    #expect(restored.state.enforced.count == most)
    #expect(genuine.merged(with: restored, at: Self.start).state.enforced.count == most)
    registry.version = 2
    registry.pins = [("a.example", 1), ("b.example", 2)]
    registry.hosts = [HostSettings(try HostPattern("b.example"), enforces: true)]
    let next = try restored.update(with: registry).registry
    #expect(next.stamp.version?.version == 2)
    #expect(next.state.enforced.count == most)
    for host in ["a.example", "b.example"] {
      #expect(try next.verdict(host, path: [8], enforcement: .reportOnly).decision == .refuse)
    }
    // A thief's statement in force has as many of its own: after a restart as before it.
    registry.version = 3
    registry.hosts = try (0..<most).map {
      HostSettings(try HostPattern("t\($0).example"), enforces: true)
    }
    let stolen = try genuine.update(with: registry).registry
    let again = try TrustedRegistry(restoring: stolen.state, under: trust, at: Self.start)
    (registry.version, registry.hosts) = (4, [])
    for client in [stolen, again] {
      let later = try client.update(with: registry).registry
      #expect(later.stamp.version?.version == 4)
      #expect(
        try later.verdict(path: [8], enforcement: .reportOnly).decision == .refuse)
    }
    try registry.beginEpoch(online: 1)
    #expect(try next.update(with: registry).registry.state.enforced.isEmpty)
  }

  @Test("older documents are bounded by their bytes and hosts, too")
  func boundedBytes() throws {
    var vanished = VanishedHosts()
    for number in 0..<6 as Range<UInt8> {
      let source = AcceptedDocument(
        bytes: [], signed: [UInt8](repeating: number, count: 400), digest: [number],
        payloadDigest: "",
        registry: Registry(keys: [], settings: []), statement: nil)
      try vanished.restore(
        HostPattern("h\(number).example"),
        .init(source: source, last: source.registry, since: Int64(number)))
    }
    vanished.keepNewest(RegistryLimits(maximumBytes: 600))
    #expect(vanished.ordered.map(\.host.since) == [3, 4, 5])
    let source = try #require(vanished.hosts[HostPattern("h4.example")]).source
    let limits = RegistryLimits(maximumBytes: 600)
    for number in 0..<limits.maximumOlderEntries {
      try vanished.restore(
        HostPattern("n\(number).example"), .init(source: source, last: source.registry, since: 4))
    }
    vanished.keepNewest(limits)
    #expect(vanished.ordered.map(\.host.since) == [5])
  }

  @Test("of a long list the hosts of many versions are kept; settings count as well as keys")
  func longList() throws {
    let pin = SPKIPin(computed: [UInt8](repeating: 1, count: 32))
    let pattern = try HostPattern("a.example")
    let key = RegistryKey(pattern: pattern, pin: .success(pin))
    let long = Registry(keys: Array(repeating: key, count: 9500), settings: [])
    let odd = Registry(keys: [], settings: Array(repeating: HostSettings(pattern), count: 300_000))
    for (registry, kept) in [(long, 8), (odd, 0)] {
      var vanished = VanishedHosts()
      for number in 0..<8 as Range<UInt8> {
        let source = AcceptedDocument(
          bytes: [], signed: [UInt8](repeating: number, count: 1 << 20), digest: [number],
          payloadDigest: "",
          registry: registry, statement: nil)
        try vanished.restore(
          HostPattern("h\(number).example"),
          .init(source: source, last: registry, since: Int64(number)))
      }
      vanished.keepNewest(.standard)
      #expect(vanished.hosts.count == kept)
    }
  }

  @Test(
    "hosts that vanished stay, whatever whoever hands out documents writes beside what is signed",
    arguments: [false, true])
  func padded(isFormat1: Bool) throws {
    var registry = RegistrySimulator()
    registry.isStripped = isFormat1
    let junk = String(repeating: "x", count: 3 << 20)
    let invented: [JSONValue] = (0..<600).map { number in
      .object([
        "keyId": .string("\(number)"), "note": .string("of nobody"),
        "signature": .string(StrictBase64.encode([UInt8](repeating: 7, count: 1024))),
      ])
    }
    func document() throws -> [UInt8] {
      let statement = try registry.statement()
      // Key 4 is that of an epoch to come.
      let signatures =
        try registry.signatures(over: statement)
        + SimulatedKeys.signatures(
          [4], over: DocumentSignature.Domain.statement.bytes(over: statement))
      let whole = try registry.document(statement, .array(signatures.map(\.json) + invented))
      return whole.dropLast() + Array(",\"junk\":\"\(junk)\"}".utf8)
    }
    var client: TrustedRegistry?
    for version in 1...6 as ClosedRange<UInt8> {
      registry.version = Int64(version)
      registry.pins = [("a.example", 1)] + (version..<6).map { ("h\($0).example", $0) }
      let bytes = try document()
      let trust = try RegistrySimulator.trust()
      client =
        try client?.update(with: bytes, under: trust, at: Self.start).registry
        ?? TrustedRegistry(accepting: bytes, under: trust, at: Self.start)
    }
    let state = try #require(client).state
    #expect(state.encoded.count < 2 * junk.utf8.count)
    let restored = try TrustedRegistry(
      restoring: state, under: RegistrySimulator.trust(), at: Self.start)
    #expect(restored.state.encoded == state.encoded)
    var next = registry
    next.isStripped = false
    try next.beginEpoch(online: 4)
    let healed = try restored.update(with: next).registry
    for number in 1..<6 as Range<UInt8> {
      #expect(try restored.accepts("h\(number).example", leaf: number))
      #expect(try healed.accepts("h\(number).example", leaf: number) == !isFormat1)
    }
  }

  @Test("takes no signature for a known key's whose name is another one that Swift calls equal")
  func namedAlike() throws {
    let number = try #require(
      try (0..<12).first { try SimulatedKeys.roleKey($0).id.base64.contains("K") })
    let role = try SimulatedKeys.role([number])
    let id = role.keys[0].id.base64
    let alike = id.replacing("K", with: "\u{212A}")
    #expect(alike == id)
    let registry = RegistrySimulator()
    let statement = try registry.statement()
    // More than is kept of a key that is not known.
    let signature = StrictBase64.encode([UInt8](repeating: 7, count: 2000))
    for (name, isKept) in [(id, true), (alike, false)] {
      let bytes = try registry.document(
        statement,
        .array([.object(["keyId": .string(name), "signature": .string(signature)])]))
      let part = try RegistryEnvelope(parsing: bytes).signedPart(
        Statement(statement, registry: registry.name), by: role)
      #expect(String(decoding: part, as: UTF8.self).contains(signature) == isKept)
    }
  }

  @Test("is judged by its part alone, however long the list is that it ends")
  func shortPart() throws {
    let (genuine, client) = try scene()
    let limits = RegistryLimits(maximumBytes: 4000)
    let trust = try RegistrySimulator.trust(limits: limits)
    var thief = genuine
    thief.version = 2
    thief.pins = [("a.example", 66)]
    // In canonical form each is four times as long.
    let numbers = (0..<200).map { _ in "1e20" }.joined(separator: ",")
    thief.entryMembers = ",\"x\":[\(numbers)]"
    let stolen = client.update(with: try thief.document(), under: trust, at: Self.start)
    #expect(stolen.refusal == nil)
    var next = genuine
    try next.beginEpoch(online: 2)
    next.pins = [("a.example", 3)]
    let statement = try next.statement()
    let bytes = JSONValue.object([
      "statement": .object(statement),
      "statementSignatures": .array(try next.signatures(over: statement).map(\.json)),
      "keySets": .array(next.keySets),
    ]).canonicalBytes
    let part = try #require(try StatementPart(parsing: bytes, limits: limits))
    let update = part.update(of: stolen.registry, under: trust, at: Self.start, by: .hand)
    #expect(update.refusal == nil)
    // The control: an older part is none.
    thief.version = 1
    let old = try thief.statement()
    let replayed = JSONValue.object([
      "statement": .object(old),
      "statementSignatures": .array(try thief.signatures(over: old).map(\.json)),
    ]).canonicalBytes
    let refused = try #require(try StatementPart(parsing: replayed, limits: limits))
      .update(of: stolen.registry, under: trust, at: Self.start, by: .hand)
    #expect(
      refused.refusal
        == .rolledBack(to: .init(epoch: 1, version: 1), from: .init(epoch: 1, version: 2)))
  }

  @Test("a thief of the online key retires nothing: the root keys alone do")
  func retiredByOnlineKey() throws {
    let (genuine, client) = try scene()
    var thief = genuine
    (thief.version, thief.isRetired, thief.root) = (2, true, [1])
    let update = try client.update(with: thief)
    #expect(update.refusal == .invalidStatement(.notSigned(by: .root(epoch: 1))))
    // Nor do the root keys sign what is not retired.
    var other = genuine
    (other.version, other.online) = (2, [0])
    #expect(
      try client.update(with: other).refusal
        == .invalidStatement(.notSigned(by: .onlineKeys(epoch: 1))))
    // The control.
    thief.root = [0]
    #expect(try client.update(with: thief).refusal == nil)
  }

  @Test("of copies of one statement the first stays, with its signatures")
  func copies() throws {
    var registry = RegistrySimulator()
    try registry.add(
      root: SimulatedKeys.role([0]), online: SimulatedKeys.role([2, 4]), signedBy: [0])
    (registry.epoch, registry.online) = (1, [2, 4])
    registry.pins = [("a.example", 1), ("b.example", 2)]
    let both = registry
    registry.online = [2]
    let client = try both.client()
    let stripped = try client.update(with: registry)
    #expect(stripped.refusal == nil)
    #expect(stripped.registry.state.encoded == client.state.encoded)
    // The next epoch is of the other key alone: what it had signed too is vouched for.
    var next = both
    try next.beginEpoch(online: 4)
    next.pins = [("a.example", 1)]
    let after = try stripped.registry.update(with: next)
    #expect(after.refusal == nil)
    #expect(try after.registry.accepts("b.example", leaf: 2))
    // The control: the stripped one alone.
    let other = try registry.client().update(with: next)
    #expect(try !other.registry.accepts("b.example", leaf: 2))
  }

  @Test("ends what stood in a retired statement")
  func retired() throws {
    let (genuine, client) = try scene()
    var thief = genuine
    thief.version = 2
    thief.isRetired = true
    thief.hosts = [HostSettings(try HostPattern("**.example"), ca: [.test(66)])]
    let poisoned = try client.update(with: thief).registry
    // The control: the thief locks the genuine host out.
    #expect(try !poisoned.accepts(leaf: 1))
    try expectHealed(poisoned, by: genuine)
  }

  @Test("ends it also where the pattern vanished under a date far ahead")
  func retiredAhead() throws {
    let (genuine, client) = try scene()
    var thief = genuine
    (thief.version, thief.isRetired, thief.issued) = (2, true, Self.start + 4000 * Self.day)
    thief.hosts = [HostSettings(try HostPattern("**.example"), ca: [.test(66)])]
    let first = try client.update(with: thief).registry
    (thief.version, thief.hosts) = (3, [])
    let poisoned = try first.update(with: thief).registry
    #expect(try poisoned.verdict("evil.example", path: [66, 66, 66]).outcome != .unlisted)
    try expectHealed(poisoned, by: genuine)
  }

  @Test("ends what a thief of the format-1 key listed beside a retired statement")
  func retiredList() throws {
    let (genuine, client) = try scene()
    var thief = genuine
    (thief.version, thief.isRetired) = (2, true)
    thief.pins = [("a.example", 1), ("**.example", 66)]
    let poisoned = try client.update(with: thief).registry
    #expect(try poisoned.accepts(leaf: 66))
    try expectHealed(poisoned, by: genuine)
  }

  @Test("ends what a stripped list said to a client that believed no statement yet")
  func stripped() throws {
    let (genuine, _) = try scene()
    var thief = RegistrySimulator()
    thief.isStripped = true
    thief.pins = [("a.example", 1), ("**.example", 66)]
    let poisoned = try thief.client()
    #expect(try poisoned.accepts(leaf: 66))
    try expectHealed(poisoned, by: genuine)
    // The first statement of all does it, too.
    let believed = try poisoned.update(with: genuine).registry
    #expect(try !believed.accepts(leaf: 66))
    #expect(try believed.verdict("evil.example", path: [66, 66, 66]).outcome == .unlisted)
  }

  @Test("a pattern that vanished says nothing of hosts that a listed one matches")
  func vanishedBeside() throws {
    var (registry, client) = try scene()
    registry.version = 2
    registry.pins = [("a.example", 1), ("**.example", 7)]
    registry.hosts = [HostSettings(try HostPattern("**.example"), ca: [.test(90)])]
    client = try client.update(with: registry).registry
    #expect(try client.accepts(leaf: 7) && !client.verdict(path: [1, 80]).isAccepted)
    (registry.version, registry.pins, registry.hosts) = (3, [("a.example", 1)], [])
    client = try client.update(with: registry).registry
    // Neither its pins nor its terms.
    #expect(try !client.accepts(leaf: 7))
    #expect(try client.verdict(path: [1, 80]).isAccepted)
    // The control: its own hosts keep both.
    #expect(try client.accepts("b.example", leaf: 7))
    #expect(try !client.verdict("b.example", path: [7, 80]).isAccepted)
  }

  @Test("in format 1, the time since when a host is missing is never later than now")
  func since() throws {
    var registry = RegistrySimulator()
    registry.isStripped = true
    registry.pins = [("a.example", 1), ("b.example", 2)]
    var client = try registry.client()
    registry.pins = [("a.example", 1)]
    client = try client.update(with: registry, at: Self.start + 4000 * Self.day).registry
    // The clock is put right.
    client = client.confirmed(at: Self.start)
    #expect(try client.accepts("b.example", leaf: 2))
    client = client.confirmed(at: Self.start + 30 * Self.day + 1)
    #expect(try client.verdict("b.example", path: [2, 90]).outcome == .unlisted)
  }

  @Test("in format 1, a clock that was behind once ends no 30 days: the list has a date")
  func behindOnce() throws {
    var registry = RegistrySimulator()
    registry.isStripped = true
    registry.entryMembers = ",\"date\":\"2027-01-15T08:00:00Z\""
    registry.pins = [("a.example", 1), ("b.example", 2)]
    var client = try registry.client()
    registry.pins = [("a.example", 1)]
    client = try client.update(with: registry, at: Self.start).registry
    client = client.confirmed(at: Self.start - 31 * Self.day)
    client = client.confirmed(at: Self.start + Self.day)
    #expect(try client.accepts("b.example", leaf: 2))
    client = client.confirmed(at: Self.start + 30 * Self.day + 1)
    #expect(try client.verdict("b.example", path: [2, 90]).outcome == .unlisted)
  }

  @Test(
    "a host that the payload lists must show a leaf pin that counts, whatever its key is",
    arguments: [
      ("expired", [("a.example", SPKIPin.test(1).base64, Int64?.some(1_700_000_000))], false),
      ("unreadable", [("a.example", "sha384/AAAA", nil)], false),
      ("denied", [("a.example", SPKIPin.test(9).base64, nil)], false),
      (
        "pinned by another entry",
        [("a.example", "sha384/AAAA", nil), ("*.example", SPKIPin.test(1).base64, nil)], true
      ),
    ])
  func leafDemanded(
    _ name: String, entries: [(String, String, Int64?)], isAccepted: Bool
  ) throws {
    for match in [PolicyEntry.Match.all, .any] {
      let keys = try entries.map { host, key, expires in
        RegistryKey(
          pattern: try HostPattern(host),
          pin: Result { () throws(PinSyntaxError) in try SPKIPin(base64: key) }, expires: expires)
      }
      let registry = Registry(
        keys: keys,
        settings: [HostSettings(try HostPattern("a.example"), ca: [.test(90)], match: match)])
      let policy = try PinningPolicy(entries: registry.policyEntries, denied: [.test(9)])
      let host = try HostName("a.example")
      let path = [SPKIPin.test(1), .test(90)]
      let chain = try #require(ValidatedChain(host: host, path: path))
      let verdict = policy.evaluate(
        ChainEvidence(presented: path, validation: .success(chain)), host: host, at: Self.start)
      #expect(verdict.isAccepted == (isAccepted || match == .any), "\(name), \(match)")
    }
  }
}

extension PinEvaluation {
  fileprivate var isAccepted: Bool { decision == .accept }
}
