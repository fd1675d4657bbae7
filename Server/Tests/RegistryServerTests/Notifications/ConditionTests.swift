import SslPinningRules
import Testing

@testable import RegistryCore

@Suite("What people are told") struct ConditionTests {
  private static func state(_ kind: ServerAlert.Kind) -> DocumentState {
    var state = DocumentState()
    state.alerts["e:443"] = [
      ServerAlert(kind: kind, endpoint: "e:443", pin: pin(2), message: "m", since: 5)
    ]
    return state
  }

  private static func probe(_ shown: UInt8, notAfter: Int64 = 0) -> [String: LastProbe] {
    let leaf = SeenCertificate(pin: pin(shown), notAfter: notAfter)
    let probe = ProbeResult(observations: [
      ProbeObservation(outcome: .accepted(SeenChain(leaf: leaf)))
    ])
    return ["e:443": LastProbe(at: 5, probe: probe, failures: 0)]
  }

  @Test(
    "are refused now by a held key that is shown, a denied one, and a chain that proves nothing")
  func refusing() {
    for kind in ServerAlert.Kind.allCases {
      let isShown = Condition.alerts(of: Self.state(kind), Self.probe(2), in: "f")
      let isGone = Condition.alerts(of: Self.state(kind), Self.probe(1), in: "f")
      let isUnknown = Condition.alerts(of: Self.state(kind), [:], in: "f")
      #expect(
        isShown.map(\.isRefusing) == [
          [.keyHeld, .deniedKeySeen, .chainRefused, .caMissing].contains(kind)
        ],
        "\(kind)")
      #expect(
        isGone.map(\.isRefusing) == [[.deniedKeySeen, .chainRefused, .caMissing].contains(kind)])
      #expect(isUnknown.map(\.isRefusing) == isShown.map(\.isRefusing))
    }
  }

  @Test(
    "of a held key by the record where this server probes nothing, and that says at once what is shown"
  )
  func followed() throws {
    var bench = LedgerBench()
    func see(_ key: UInt8, under authority: UInt8) {
      bench.see([(LedgerBench.here, "", .key(key, under: authority))], every: 60)
    }
    /// Whether it was worth storing, and whether a server that has not probed says that apps are refused.
    func told(after stored: EndpointKeys) throws -> [Bool] {
      var state = Self.state(.keyHeld)
      state.keysByEndpoint["e:443"] = try EndpointKeys(StateReader(bench.endpointKeys.json, "keys"))
      return [
        bench.endpointKeys.isWorthStoring(over: stored, at: bench.now, rule: LedgerBench.rule)
      ] + Condition.alerts(of: state, [:], in: "f").map(\.isRefusing)
    }
    for _ in 0..<3 { see(1, under: 100) }
    for _ in 0..<4 { see(2, under: 101) }
    try #require(bench.endpointKeys.held[pin(2)] != nil)
    var stored = bench.endpointKeys
    see(1, under: 100)
    #expect(try told(after: stored) == [true, false])
    stored = bench.endpointKeys
    see(1, under: 100)
    #expect(try told(after: stored) == [false, false])
    see(2, under: 101)
    #expect(try told(after: stored) == [true, true])
  }

  @Test("of a key that nobody announced once it is listed, and of apps that it refuses until then")
  func unstored() {
    let endpoint = WatchedEndpoint(fqdn: HostName.literal("e"))
    var state = DocumentState()
    func key(_ byte: UInt8) -> KnownKey { KnownKey(pin: pin(byte), firstSeen: 1, lastSeen: 9) }
    func lists(_ keys: [KnownKey]) {
      state.keysByEndpoint["e:443"] = EndpointKeys(keys: keys)
      state.publish([endpoint])
    }
    lists([key(1)])
    state.signed = 5
    state.keysByEndpoint["e:443"]?.keys.append(key(2))
    state.raise(
      ServerAlert(
        kind: .unannouncedKey, endpoint: "e:443", pin: pin(2), message: "it is published", since: 5)
    )
    func told(_ shown: UInt8, under terms: HostTerms? = nil) -> [String] {
      Condition.alerts(
        of: state, Self.probe(shown), in: "f", under: terms.map { ["e:443": $0] } ?? [:],
        for: [endpoint]
      ).map { "\($0.kind.name) \($0.isRefusing) \($0.message)" }.sorted()
    }
    // Before a write has failed, as well.
    #expect(told(2).isEmpty)
    let reason = "the disk is full"
    let refusing = "\(reason); apps are refused by new keys that it would list: e:443"
    for kind in [ServerAlert.Kind.signing, .storing] {
      state.raise(ServerAlert(kind: kind, message: reason, since: 6))
      #expect(told(2) == ["\(kind.rawValue) true \(refusing)"])
      // What is not shown refuses nobody.
      #expect(told(1) == ["\(kind.rawValue) false \(reason)"])
      state.alerts[""] = nil
    }
    lists([key(1), key(2)])
    state.raise(ServerAlert(kind: .storing, message: reason, since: 6))
    #expect(
      told(2) == ["storing false \(reason)", "unannounced-key false it is published"])
  }

  @Test("of no apps that are refused where a CA above the new key is enough for them")
  func unstoredAndVouched() throws {
    let endpoint = WatchedEndpoint(fqdn: HostName.literal("e"))
    var state = DocumentState()
    state.keysByEndpoint["e:443"] = EndpointKeys(
      keys: [KnownKey(pin: pin(1), firstSeen: 1, lastSeen: 9)])
    state.publish([endpoint])
    state.raise(ServerAlert(kind: .storing, message: "m", since: 6))
    for (authority, isRefusing) in [(100, false), (101, true)] as [(UInt8, Bool)] {
      var key = KnownKey(pin: pin(2), firstSeen: 1, lastSeen: 9)
      key.paths = [.unknown: [pin(authority)]]
      state.keysByEndpoint["e:443"]?.keys = [key]
      let terms = HostTerms(ca: NamedIssuers(pins: [pin(100)]), match: .any)
      let found = Condition.alerts(
        of: state, Self.probe(2), in: "f", under: ["e:443": terms], for: [endpoint])
      #expect(found.map(\.isRefusing) == [isRefusing])
    }
  }

  static let ends: [(Int64, [Bool])] = [(8, []), (6, [false]), (0, [true]), (-3, [true])]

  @Test("of a certificate that ends: a week before, and as a refusal once it has", arguments: ends)
  func certificate(_ days: Int64, _ expected: [Bool]) {
    let now: Int64 = 1_780_000_000
    let found = Condition.ends(
      of: DocumentState(), Self.probe(1, notAfter: now + days * 86_400), keySetEnd: nil, in: "f",
      at: now)
    #expect(found.map(\.isRefusing) == expected)
    #expect(found.allSatisfy { $0.kind == .certificateEnds && $0.subject == "e:443" })
  }

  @Test("of what an endpoint proved last, whatever a probe that failed shows after it")
  func failedProbes() {
    let shown = Self.probe(2)["e:443"]
    let failed = LastProbe(
      at: 6, probe: .refused(reason: "expired", presented: pin(2)), failures: 1, after: shown)
    let still = Condition.alerts(of: Self.state(.keyHeld), ["e:443": failed], in: "f")
    #expect(still.map(\.isRefusing) == [true])
    let now: Int64 = 1_780_000_000
    let ended = LastProbe(
      at: now, probe: .unreachable(reason: "down"), failures: 9,
      after: Self.probe(1, notAfter: now - 5)["e:443"])
    let found = Condition.ends(
      of: DocumentState(), ["e:443": ended], keySetEnd: nil, in: "f", at: now)
    #expect(found.map(\.isRefusing) == [true])
  }

  @Test("of a key set that ends, and of a document that is signed late")
  func documents() {
    let now: Int64 = 1_780_000_000
    var state = DocumentState()
    (state.document, state.signed) = ([1], now - 36 * 3600)
    func kinds(_ end: Int64?) -> [String] {
      Condition.ends(of: state, [:], keySetEnd: end, in: "f", at: now).map(\.kind.name)
    }
    #expect(kinds(now + 31 * 86_400) == [])
    #expect(kinds(now + 29 * 86_400) == ["key-set-ends"])
    state.signed -= 1
    #expect(kinds(nil) == ["document-late"])
    state.document = []
    #expect(kinds(nil) == [])
  }

  @Test("of refusals that rise: more than a few, more than usual, and over once they are few again")
  func trend() {
    /// Whether they rise after so many reports in each window in turn.
    func rises(_ counts: [Int], after before: Int = 0) -> [Bool] {
      var trend = RefusalTrend()
      trend.begin(after: before, at: 900_000)
      return counts.indices.map { window in
        trend.count(counts[window], at: 900_000 + Int64(window) * 900)
        return trend.risingSince != nil
      }
    }
    #expect(rises([20, 0]) == [false, false])
    #expect(rises([21, 0, 0]) == [true, true, false])
    #expect(rises([21, 11, 0, 10, 1]) == [true, true, true, false, false])
    // What a fleet reports every day is no rise, and three times as much is.
    let day = [Int](repeating: 30, count: 97)
    #expect(rises(day).last == false)
    #expect(rises(day + [30, 30, 200]).suffix(3) == [false, false, true])
    // So it is right after a start.
    #expect(!rises(day, after: 96 * 30).contains(true))
    #expect(rises([30, 30, 200], after: 96 * 30) == [false, false, true])
  }

  @Test("a burst makes no other one usual, and what goes on for a day does")
  func burst() {
    var trend = RefusalTrend()
    trend.count(12_000, at: 0)
    #expect(trend.risingSince == 0)
    trend.count(0, at: 2700)
    #expect(trend.risingSince == nil)
    trend.count(30, at: 3600)
    #expect(trend.risingSince == 3600)
    var usual = RefusalTrend()
    for window in 0..<200 as Range<Int64> { usual.count(15, at: window * 900) }
    #expect(usual.risingSince == nil)
  }

  @Test("every kind has a name of its own")
  func names() {
    #expect(Set(Condition.Kind.all.map(\.name)).count == Condition.Kind.all.count)
  }
}
