import CanonicalJSON
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@testable import ssl_pinning

/// What is said of two lists, held against clients that believe the one and then the other.
@Suite("what a new list does to each host")
struct HostChangesTests {
  /// The forms of a list.
  enum Form: CaseIterable, Sendable {
    case format1, statement, retired
  }

  /// The SplitMix64 generator: the same lists in every run.
  private struct Numbers: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
      state &+= 0x9e37_79b9_7f4a_7c15
      var bits = state
      bits = (bits ^ (bits >> 30)) &* 0xbf58_476d_1ce4_e5b9
      bits = (bits ^ (bits >> 27)) &* 0x94d0_49bb_1331_11eb
      return bits ^ (bits >> 31)
    }

    /// One time of so many.
    mutating func isOne(of count: Int) -> Bool { Int.random(in: 0..<count, using: &self) == 0 }

    mutating func some<Element>(_ most: Int, of all: [Element]) -> [Element] {
      Array(all.shuffled(using: &self).prefix(Int.random(in: 0...most, using: &self)))
    }
  }

  /// A list, and what stands beside it.
  private struct Draft {
    var keys: [RegistryKey]
    var hosts: [HostSettings] = []
    var denied: [SPKIPin] = []
    var removed: [HostPattern] = []
  }

  private static let now: Int64 = 1_800_000_000
  private static let day: Int64 = 86_400
  private static let leaves = (1...3).map { SPKIPin(computed: Digest.sha256([UInt8($0)])) }
  private static let cas = (4...5).map { SPKIPin(computed: Digest.sha256([UInt8($0)])) }
  private static let stranger = SPKIPin(computed: Digest.sha256([6]))

  private static func patterns() throws -> [HostPattern] {
    try [
      "a.example", "b.a.example", "*.example", "**.example", "*.a.example", "**.a.example",
      "**.b.a.example",
    ].map { try HostPattern($0) }
  }

  private static func hosts() throws -> [HostName] {
    try [
      "example", "a.example", "b.example", "b.a.example", "c.a.example", "c.b.a.example",
      "d.c.b.example", "d.c.b.a.example",
    ].map { try HostName($0) }
  }

  private static func draft(_ form: Form, _ numbers: inout Numbers) throws -> Draft {
    let patterns = try patterns()
    let ends: [Int64?] = [nil, nil, nil, now - 40 * day, now - 3600, now - 3 * day, now + day]
    let keys = (0...Int.random(in: 0...4, using: &numbers)).map { _ in
      RegistryKey(
        pattern: patterns.randomElement(using: &numbers) ?? patterns[0],
        pin: .success(leaves.randomElement(using: &numbers) ?? stranger),
        expires: ends.randomElement(using: &numbers) ?? nil)
    }
    guard form != .format1 else { return Draft(keys: keys) }
    return Draft(
      keys: keys,
      hosts: numbers.some(2, of: patterns).map {
        HostSettings($0, ca: numbers.some(2, of: cas), match: numbers.isOne(of: 2) ? .any : .all)
      },
      denied: numbers.isOne(of: 5) ? numbers.some(1, of: leaves + cas) : [],
      removed: numbers.isOne(of: 4) ? numbers.some(2, of: patterns) : [])
  }

  private static func document(_ draft: Draft, _ form: Form, version: Int64) -> RegistryDocument {
    let issued = now - (2 - version) * 10 * day
    return RegistryDocument(
      registry: "app.json", keys: draft.keys,
      terms: form == .format1
        ? nil
        : .init(
          number: .init(epoch: 0, version: version), issued: issued, expires: issued + 90 * day,
          hosts: draft.hosts, denied: draft.denied, removed: draft.removed,
          isRetired: form == .retired))
  }

  /// Whether a client lets in a server with this leaf key and these above it.
  private static func accepts(
    _ client: TrustedRegistry, _ host: HostName, _ path: [SPKIPin]
  ) throws -> Bool {
    let chain = try #require(ValidatedChain(host: host, path: path))
    let evidence = ChainEvidence(presented: path, validation: .success(chain))
    return try client.policy().evaluate(evidence, host: host, at: client.time(at: now)).decision
      == .accept
  }

  /// The hosts of which some server that was let in is refused. That a key is denied which stands on a path and is
  /// not pinned is said in its own words, and no host's affair.
  private static func refusing(
    _ before: TrustedRegistry, _ after: TrustedRegistry
  ) throws -> Set<HostName> {
    let above: [[SPKIPin]] = [[], [cas[0]], [cas[1]], cas]
    return Set(
      try hosts().filter { host in
        let pinned = try before.policy().entry(for: host)
        let denied = Set(after.statement?.denied ?? [])
        let asLeaf = denied.subtracting(pinned?.leaf.pins.map(\.spki) ?? [])
        let asCA = denied.subtracting(pinned?.ca.pins.map(\.spki) ?? [])
        return try (leaves + [stranger]).contains { leaf in
          try above.contains { ca in
            guard !asLeaf.contains(leaf), asCA.isDisjoint(with: ca) else { return false }
            let path = [leaf] + ca + [stranger]
            return try accepts(before, host, path) && !accepts(after, host, path)
          }
        }
      })
  }

  @Test(
    "tells each host of which a server is refused that was let in, and no other one",
    arguments: Form.allCases)
  func told(form: Form) throws {
    var numbers = Numbers(state: 20)
    let key = try Keys.signing.get()
    let trust = try RegistryTrust(
      registry: "app.json", signingKey: try VerificationKey(key.publicKeyPEM),
      requiresStatement: form != .format1)
    var count = (refused: 0, spared: 0)
    for number in 0..<120 {
      var drafts = [try Self.draft(form, &numbers), try Self.draft(form, &numbers)]
      if form == .retired {
        let keys = drafts[1].keys
        drafts[1] = drafts[0]
        drafts[1].keys = keys
      }
      let first = Self.document(drafts[0], form, version: 1)
      var next = Self.document(drafts[1], form, version: 2)
      if form == .retired { next.terms = nil }
      let online = form == .format1 ? [] : [key.trustKey]
      let signed = try first.signed(format1Key: key, onlineKeys: online)
      var later = try next.signed(format1Key: key, onlineKeys: form == .statement ? online : [])
      // What is retired stays so, beside each list.
      for name in ["statement", "statementSignatures"] where form == .retired {
        later[name] = signed[name]
      }
      let held = try TrustedRegistry(
        accepting: JSONValue.object(signed).canonicalBytes, under: trust,
        at: Self.now - 5 * Self.day)
      let update = held.update(
        with: JSONValue.object(later).canonicalBytes, under: trust, at: Self.now)
      try #require(update.refusal == nil)
      let refusing = try Self.refusing(held, update.registry)
      let changes = try HostChanges(
        from: [try #require(StatedList(first.payload, under: first.statement))],
        to: try #require(
          StatedList(next.payload, under: form == .retired ? first.statement : next.statement)),
        at: Self.now)
      let patterns = Set((drafts[0].keys + drafts[1].keys).map(\.pattern))
        .union((drafts[0].hosts + drafts[1].hosts).map(\.pattern))
      for host in try Self.hosts() {
        // Hosts that the same patterns match are one to every list.
        let told = changes.all.filter { change in
          patterns.allSatisfy { $0.matches(change.host) == $0.matches(host) }
        }
        let isTold = told.contains { !$0.lost.isEmpty }
        #expect(isTold == refusing.contains(host), "\(number): \(host)")
        if isTold { count.refused += 1 } else { count.spared += 1 }
      }
    }
    // Both happen often, or this would show nothing.
    #expect(count.refused > 100 && count.spared > 100, "\(count)")
  }
}
