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
      let refuses = [.keyHeld, .deniedKeySeen, .chainRefused, .caMissing].contains(kind)
      let found = Condition.alerts(of: Self.state(kind), [:], in: "f")
      #expect(found.map(\.isRefusing) == [refuses], "\(kind)")
    }
  }

  @Test(
    "of a held key by the record, which says at once if it is shown, and not by one probe of a fleet"
  )
  func followed() throws {
    var bench = LedgerBench()
    func see(_ key: UInt8, _ times: Int = 1) {
      let shown = LedgerBench.Answer.key(key, under: 99 + key)
      bench.see([(LedgerBench.here, "", shown)], times, every: 60)
    }
    /// Whether it is worth storing, and whether a server that has not probed says that apps are refused.
    func told(after stored: EndpointKeys) throws -> [Bool] {
      var state = Self.state(.keyHeld)
      state.keysByEndpoint["e:443"] = try EndpointKeys(StateReader(bench.endpointKeys.json, "keys"))
      let isWorth = bench.endpointKeys.isWorthStoring(
        over: stored, at: bench.now, rule: LedgerBench.rule)
      return [isWorth] + Condition.alerts(of: state, [:], in: "f").map(\.isRefusing)
    }
    see(1, 3)
    see(2, 4)
    try #require(bench.endpointKeys.held[pin(2)] != nil)
    var stored = bench.endpointKeys
    see(1, 2)
    #expect(try told(after: stored) == [false, true])
    see(1)
    #expect(try told(after: stored) == [true, false])
    // It is shown now and then, five probes apart.
    stored = bench.endpointKeys
    see(1, 2)
    see(2)
    #expect(try told(after: stored) == [true, true])
    stored = bench.endpointKeys
    see(1, 10)
    #expect(try told(after: stored) == [false, true])
    see(1)
    #expect(try told(after: stored) == [true, false])
  }

  struct Dispute: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let seen: [(place: String, outcome: ProbeObservation.Outcome)]
    var isDenied = false
    var isRefusing = true
  }

  private static func shows(_ key: UInt8) -> ProbeObservation.Outcome {
    .accepted(SeenChain(leaf: SeenCertificate(pin: pin(key))))
  }

  private static let here = ProbeObservation.direct
  private static let bad = ProbeObservation.Outcome.refused(reason: "self-signed", presented: nil)
  private static let silent = ProbeObservation.Outcome.unreachable(reason: "down")

  static let disputes: [Dispute] = [
    Dispute(
      testDescription: "a vantage point alone", seen: [(here, shows(1)), ("oslo", bad)],
      isRefusing: false),
    Dispute(
      testDescription: "a vantage point, while only another one reaches the endpoint",
      seen: [(here, silent), ("oslo", bad), ("rome", shows(1))], isRefusing: false),
    Dispute(testDescription: "this server", seen: [(here, bad), ("oslo", shows(1))]),
    Dispute(
      testDescription: "this server at one of two addresses", seen: [(here, shows(1)), (here, bad)]
    ),
    Dispute(
      testDescription: "a vantage point, while nobody else reaches the endpoint",
      seen: [(here, silent), ("oslo", bad)]),
    Dispute(
      testDescription: "a vantage point, while the others are shown a key that is not listed",
      seen: [(here, shows(2)), ("oslo", bad), ("rome", shows(2))]),
    Dispute(
      testDescription: "a vantage point, while the others are shown a key that is denied",
      seen: [(here, shows(1)), ("oslo", bad)], isDenied: true),
  ]

  @Test(
    "of a chain that proves nothing: by whom it is shown, and whether a listed key is shown elsewhere",
    arguments: disputes)
  func disputed(_ dispute: Dispute) {
    let now: Int64 = 1_780_000_000
    var context = DecisionContext()
    context.vantages = [Self.here, "oslo", "rome"]
    if dispute.isDenied { context.denied = [pin(1)] }
    var keys = EndpointKeys(keys: [KnownKey(pin: pin(1), firstSeen: now - 60, lastSeen: now - 60)])
    let probe = ProbeResult(
      observations: dispute.seen.enumerated().map { index, seen in
        ProbeObservation(vantage: seen.place, address: "\(index)", outcome: seen.outcome)
      })
    let events = keys.enter(probe, at: now, rule: LedgerBench.rule, context: context)
    var state = DocumentState()
    state.keysByEndpoint["e:443"] = keys
    _ = state.noteAlerts(of: events, at: "e:443", failures: 0, now: now)
    let told = Condition.alerts(of: state, [:], in: "f").map { "\($0.kind.name) \($0.isRefusing)" }
    #expect(
      told.filter { $0.hasPrefix("chain-") }
        == [dispute.isRefusing ? "chain-refused true" : "chain-disputed false"])
  }

  @Test(
    "of a chain that comes and goes: it is over the later, the more often it came back within an hour"
  )
  func returning() {
    var state = DocumentState()
    state.keysByEndpoint["e:443"] = EndpointKeys(keys: [])
    var now: Int64 = 1_780_000_000
    func probe(isGood: Bool) -> Bool {
      now += 60
      let events: [KeyEvent] = isGood ? [] : [.refused(reason: "expired", presented: nil)]
      _ = state.noteAlerts(of: events, at: "e:443", failures: 0, now: now)
      return state.alerts["e:443"] != nil
    }
    for good in [1, 5, 10, 10] {
      #expect(probe(isGood: false))
      for _ in 1..<good { #expect(probe(isGood: true)) }
      #expect(!probe(isGood: true), "\(good)")
    }
    #expect(probe(isGood: false))
    for _ in 1..<10 { #expect(probe(isGood: true)) }
    #expect(probe(isGood: false))
    for _ in 1..<10 { #expect(probe(isGood: true)) }
    #expect(!probe(isGood: true))
    // After more than an hour it is another one.
    now += 3700
    #expect(probe(isGood: false))
    #expect(!probe(isGood: true))
  }

  @Test(
    "of a certificate that ends and that one server of a fleet still has, in probes that meet another one, too"
  )
  func forgotten() {
    let now: Int64 = 1_780_000_000
    func probe(_ key: UInt8, _ days: Int64) -> ProbeResult {
      ProbeResult(observations: [
        ProbeObservation(
          outcome: .accepted(
            SeenChain(leaf: SeenCertificate(pin: pin(key), notAfter: now + days * 86_400))))
      ])
    }
    func told(_ last: LastProbe) -> Int {
      Condition.ends(of: DocumentState(), ["e:443": last], keySetEnd: nil, in: "f", at: now).count
    }
    var last = LastProbe(at: now, probe: probe(1, 3), failures: 0)
    #expect(told(last) == 1)
    for missed in 1...11 {
      last = LastProbe(at: now, probe: probe(2, 80), failures: 0, after: last)
      // One that fails shows nothing.
      last = LastProbe(at: now, probe: .unreachable(reason: "x"), failures: 1, after: last)
      #expect(told(last) == (missed <= 10 ? 1 : 0), "\(missed)")
    }
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

  static let expiries: [(Int64, [Bool])] = [(1, [false]), (0, [true]), (-9, [true])]

  @Test(
    "of a document that nobody signs: as a refusal once it has expired, and to the second",
    arguments: expiries)
  func expired(_ left: Int64, _ expected: [Bool]) {
    let now: Int64 = 1_780_000_000
    var state = DocumentState()
    (state.document, state.signed) = ([1], now - 90 * 86_400)
    func found(_ expires: Int64) -> [Condition] {
      Condition.ends(
        of: state, [:], expires: expires, keySetEnd: nil, in: "f", at: now
      ).filter { $0.kind == .documentLate }
    }
    #expect(found(now + left).map(\.isRefusing) == expected)
    // Whatever the time of its signature says.
    state.signed = now
    #expect(found(now + left).map(\.isRefusing) == expected.filter(\.self))
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
