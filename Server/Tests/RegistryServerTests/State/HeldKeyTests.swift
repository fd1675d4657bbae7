import SslPinningRules
import Testing

@testable import RegistryCore
@testable import RegistryServer

/// What a new key has to show before it is published beside the old one.
@Suite("A new key is held") struct HeldKeyTests {
  static let rule = ConfirmationRule(probes: 3, window: 600, grace: 7 * 86_400)
  /// The CA that the endpoint's first key was seen under: an intermediate and a root.
  static let intermediate = pin(101)
  static let root = pin(100)

  /// What one probe shows: a key under a CA, to these vantage points.
  struct Shown: Sendable {
    var key: UInt8 = 2
    var issuer = HeldKeyTests.intermediate
    var anchor = HeldKeyTests.root
    var vantages: [String] = [ProbeObservation.direct]
    /// Vantage points that could not ask.
    var silent: [String] = []
    /// Vantage points that are shown another key.
    var others: [String: UInt8] = [:]

    var probe: ProbeResult {
      func chain(_ key: UInt8, _ issuer: SPKIPin, _ anchor: SPKIPin) -> SeenChain {
        SeenChain(
          leaf: SeenCertificate(pin: pin(key), notAfter: 1_800_000_000),
          above: [SeenCertificate(pin: issuer), SeenCertificate(pin: anchor)])
      }
      var seen = vantages.map {
        ProbeObservation(vantage: $0, outcome: .accepted(chain(key, issuer, anchor)))
      }
      seen += silent.map {
        ProbeObservation(vantage: $0, outcome: .unreachable(reason: "timed out"))
      }
      seen += others.sorted { $0.key < $1.key }.map {
        ProbeObservation(
          vantage: $0.key,
          outcome: .accepted(chain($0.value, HeldKeyTests.intermediate, HeldKeyTests.root)))
      }
      return ProbeResult(observations: seen)
    }
  }

  struct Scenario: Sendable, CustomTestStringConvertible {
    let name: String
    var shown = Shown()
    var vantages: Set<String> = [ProbeObservation.direct]
    var approval = ApprovalMode.automatic
    var isMassChange = false
    var isUnion = false
    var quorum: Int?
    var issuers: Set<SPKIPin> = []
    var denied: Set<SPKIPin> = []
    /// Why the key is held after three probes; `nil` where it is published, `[]` where it is neither.
    let reasons: [CandidateKey.HoldReason]?
    var testDescription: String { name }
  }

  static let here = ProbeObservation.direct
  static let both: Set<String> = [here, "paris"]
  static let all: Set<String> = [here, "paris", "rome", "oslo"]

  static let scenarios: [Scenario] = [
    Scenario(name: "not, where nothing speaks against it", reasons: nil),
    Scenario(
      name: "not, where another intermediate of the same root issued it",
      shown: Shown(issuer: pin(102)), reasons: nil),
    Scenario(
      name: "not, where the same intermediate is under another root",
      shown: Shown(anchor: pin(103)), reasons: nil),
    Scenario(
      name: "under a CA that was never seen here, with one vantage point",
      shown: Shown(issuer: pin(102), anchor: pin(103)), reasons: [.newIssuer]),
    Scenario(
      name: "not, under a new CA that two vantage points see",
      shown: Shown(issuer: pin(102), anchor: pin(103), vantages: [here, "paris"]),
      vantages: both, reasons: nil),
    Scenario(
      name: "where one vantage point still sees the old key only",
      shown: Shown(others: ["paris": 1]), vantages: both, reasons: [.vantagePoints]),
    Scenario(
      name: "where one vantage point sees a third key",
      shown: Shown(others: ["paris": 3]), vantages: both, reasons: [.vantagePoints]),
    Scenario(
      name: "not, where a vantage point cannot ask: whoever cuts it off holds nothing",
      shown: Shown(silent: ["paris"]), vantages: both, reasons: nil),
    Scenario(
      name: "not, where one of three vantage points sees another key",
      shown: Shown(vantages: [here, "paris", "oslo"], others: ["rome": 1]), vantages: all,
      reasons: nil),
    Scenario(
      name: "not, where one of three vantage points sees another key and the others are silent",
      shown: Shown(silent: ["paris", "oslo"], others: ["rome": 1]), vantages: all, reasons: nil),
    Scenario(
      name: "where two of three vantage points see another key",
      shown: Shown(vantages: [here, "oslo"], others: ["rome": 1, "paris": 1]), vantages: all,
      reasons: [.vantagePoints]),
    Scenario(
      name: "not, where two of three see another key, and its regions are known to differ",
      shown: Shown(silent: ["oslo"], others: ["rome": 1, "paris": 1]), vantages: all,
      isUnion: true, reasons: nil),
    Scenario(
      name: "under a new CA that this server alone sees, while the vantage points are silent",
      shown: Shown(issuer: pin(102), anchor: pin(103), silent: ["paris", "oslo", "rome"]),
      vantages: all, reasons: [.newIssuer]),
    Scenario(
      name: "not, under a new CA that a quorum of two of three vantage points sees",
      shown: Shown(
        issuer: pin(102), anchor: pin(103), vantages: [here, "oslo", "paris"], silent: ["rome"]),
      vantages: all, reasons: nil),
    Scenario(
      name: "under a new CA that this server and one of three vantage points see",
      shown: Shown(
        issuer: pin(102), anchor: pin(103), vantages: [here, "oslo"], silent: ["paris", "rome"]),
      vantages: all, reasons: [.newIssuer]),
    Scenario(
      name: "under a new CA that two of three vantage points see, where three have to",
      shown: Shown(
        issuer: pin(102), anchor: pin(103), vantages: [here, "oslo", "paris"], silent: ["rome"]),
      vantages: all, quorum: 3, reasons: [.newIssuer]),
    Scenario(
      name: "not, under a new CA whose root was named",
      shown: Shown(issuer: pin(102), anchor: pin(103)), issuers: [pin(103)], reasons: nil),
    Scenario(
      name: "not, under a new CA whose intermediate was named",
      shown: Shown(issuer: pin(102), anchor: pin(103)), issuers: [pin(102)], reasons: nil),
    Scenario(
      name: "under a new CA where the leaf's own key stands among those named",
      shown: Shown(issuer: pin(102), anchor: pin(103)), issuers: [pin(2)], reasons: [.newIssuer]),
    Scenario(
      name: "where only the other vantage point sees it",
      shown: Shown(vantages: ["paris"], others: [here: 1]), vantages: both,
      reasons: [.vantagePoints]),
    Scenario(
      name: "not, where every vantage point sees it beside the old one",
      shown: Shown(vantages: [here, "paris"], others: [here: 1]), vantages: both, reasons: nil),
    Scenario(
      name: "under a new CA that the other vantage point does not see",
      shown: Shown(issuer: pin(102), anchor: pin(103), others: ["paris": 1]), vantages: both,
      reasons: [.newIssuer, .vantagePoints]),
    Scenario(name: "where a person decides", approval: .manual, reasons: [.manual]),
    Scenario(name: "where too many changed at once", isMassChange: true, reasons: [.massChange]),
    Scenario(
      name: "not, where too many changed at once and two vantage points see it",
      shown: Shown(vantages: [here, "paris"]), vantages: both, isMassChange: true, reasons: nil),
    Scenario(
      name: "where too many changed at once and one of two vantage points sees it",
      shown: Shown(others: ["paris": 1]), vantages: both, isMassChange: true,
      reasons: [.massChange, .vantagePoints]),
    Scenario(
      name: "never, where it is denied: it does not even wait", denied: [pin(2)], reasons: []),
  ]

  private static func context(_ scenario: Scenario) -> DecisionContext {
    var context = DecisionContext()
    context.vantages = scenario.vantages
    context.approval = scenario.approval
    context.isMassChange = scenario.isMassChange
    context.isUnion = scenario.isUnion
    context.quorum = scenario.quorum ?? DecisionContext.quorum(of: scenario.vantages.count - 1)
    context.issuers = scenario.issuers
    context.denied = scenario.denied
    return context
  }

  /// A endpointKeys whose first key was seen under the CA.
  private static func settled(_ context: DecisionContext = DecisionContext()) -> EndpointKeys {
    var endpointKeys = EndpointKeys()
    var first = Shown(key: 1)
    first.vantages = context.vantages.sorted()
    _ = endpointKeys.enter(first.probe, at: 0, rule: rule, context: context)
    return endpointKeys
  }

  @Test("as the rules say", arguments: scenarios)
  func held(_ scenario: Scenario) {
    let context = Self.context(scenario)
    var endpointKeys = Self.settled(context)
    #expect(endpointKeys.keys.map(\.pin) == [pin(1)])
    for second in 1...3 {
      _ = endpointKeys.enter(
        scenario.shown.probe, at: Int64(second), rule: Self.rule, context: context)
    }
    #expect(endpointKeys.keys.contains { $0.pin == pin(2) } == (scenario.reasons == nil))
    #expect((endpointKeys.held[pin(2)]?.reasons ?? []) == (scenario.reasons ?? []))
    if scenario.reasons == [] { #expect(endpointKeys.candidates.isEmpty) }
  }

  @Test("and published by itself once the vantage points show it, too")
  func released() {
    var context = DecisionContext()
    context.vantages = Self.both
    var endpointKeys = Self.settled(context)
    let disagreeing = Shown(others: ["paris": 1]).probe
    let agreeing = Shown(vantages: [Self.here, "paris"]).probe
    for second in 1...5 {
      _ = endpointKeys.enter(disagreeing, at: Int64(second), rule: Self.rule, context: context)
    }
    #expect(endpointKeys.held[pin(2)]?.reasons == [.vantagePoints])
    let events = endpointKeys.enter(agreeing, at: 6, rule: Self.rule, context: context)
    #expect(events == [.published(pin(2), isFirst: false)])
    #expect(endpointKeys.held.isEmpty)
  }

  @Test(
    "for good where many changed at once, once the others had time to show that they did not",
    arguments: [(11, true), (12, false)])
  func decided(_ probes: Int, _ isReleased: Bool) {
    var context = DecisionContext()
    context.isMassChange = true
    var endpointKeys = Self.settled()
    for second in 1...probes {
      _ = endpointKeys.enter(Shown().probe, at: Int64(second), rule: Self.rule, context: context)
    }
    #expect(endpointKeys.held[pin(2)]?.reasons == [.massChange])
    context.isMassChange = false
    for second in probes..<probes + 3 {
      _ = endpointKeys.enter(
        Shown().probe, at: Int64(second + 1), rule: Self.rule, context: context)
    }
    #expect(endpointKeys.held.isEmpty == isReleased)
    #expect(endpointKeys.keys.map(\.pin) == (isReleased ? [pin(1), pin(2)] : [pin(1)]))
  }

  @Test("for good where many changed at once and whoever goes on has only what was stored")
  func restored() throws {
    var context = DecisionContext()
    context.isMassChange = true
    var endpointKeys = Self.settled()
    for second in 1...3 {
      _ = endpointKeys.enter(Shown().probe, at: Int64(second), rule: Self.rule, context: context)
    }
    var state = DocumentState()
    state.keysByEndpoint["a.test:443"] = endpointKeys
    var read = try #require(
      try DocumentState(decoding: state.encoded, file: "a.json").keysByEndpoint["a.test:443"])
    for second in 4...20 {
      _ = read.enter(
        Shown().probe, at: Int64(second), rule: Self.rule, context: DecisionContext())
    }
    #expect(read.held[pin(2)]?.reasons == [.massChange])
    #expect(read.keys.map(\.pin) == [pin(1)])
  }

  @Test("for good where many changed at once and it is shown again after a while")
  func shownAgain() {
    var context = DecisionContext()
    context.isMassChange = true
    var endpointKeys = Self.settled()
    for second in 1...5 {
      _ = endpointKeys.enter(Shown().probe, at: Int64(second), rule: Self.rule, context: context)
    }
    for second in 700...705 {
      _ = endpointKeys.enter(
        Shown().probe, at: Int64(second), rule: Self.rule, context: DecisionContext())
    }
    #expect(endpointKeys.held[pin(2)]?.reasons == [.massChange])
  }

  @Test("and is probed again soon while it is shown and a few probes may settle it")
  func soon() {
    var context = DecisionContext()
    context.isMassChange = true
    var (endpointKeys, second) = (Self.settled(), Int64(0))
    func waits(after count: Int, showing key: UInt8) -> Bool {
      for _ in 0..<count {
        second += 1
        _ = endpointKeys.enter(
          Shown(key: key).probe, at: second, rule: Self.rule, context: context)
      }
      return endpointKeys.isWaiting
    }
    #expect(waits(after: 4, showing: 2) && endpointKeys.held[pin(2)]?.reasons == [.massChange])
    // Behind a balancer a probe or two may miss it.
    #expect(waits(after: 2, showing: 1))
    #expect(!waits(after: 1, showing: 1))
    #expect(waits(after: 1, showing: 2))
    #expect(!waits(after: 20, showing: 2))
  }

  @Test("with an event when it begins, and none while it lasts")
  func told() {
    var context = DecisionContext()
    context.approval = .manual
    var endpointKeys = Self.settled()
    var events: [[KeyEvent]] = []
    for second in 1...5 {
      events.append(
        endpointKeys.enter(Shown().probe, at: Int64(second), rule: Self.rule, context: context))
    }
    #expect(
      events == [
        [.waiting(pin(2), probes: 1, needed: 3)], [.waiting(pin(2), probes: 2, needed: 3)],
        [.held(pin(2), [.manual])], [], [],
      ])
    #expect(!endpointKeys.isWaiting)
  }

  @Test(
    "through a probe nothing but bad chains, which begins a count anew and forgets no decision")
  func survivesRefusals() {
    var context = DecisionContext()
    context.approval = .manual
    var endpointKeys = Self.settled()
    for second in 1...3 {
      _ = endpointKeys.enter(Shown().probe, at: Int64(second), rule: Self.rule, context: context)
    }
    _ = endpointKeys.enter(
      .refused(reason: "self-signed", presented: pin(9)), at: 4, rule: Self.rule, context: context)
    #expect(endpointKeys.held[pin(2)] != nil)
    #expect(endpointKeys.candidates[pin(9)] == nil)
  }

  @Test(
    "for its CA, too, once that is forgotten, also while nobody shows it and after a restart",
    arguments: [true, false], [true, false])
  func forgottenCA(isDenied: Bool, isRestart: Bool) throws {
    let endpoint = WatchedEndpoint(fqdn: HostName.literal("a.test"))
    var bench = LedgerBench()
    var state = DocumentState()
    func show(_ key: UInt8, under ca: UInt8) {
      bench.see([(LedgerBench.here, "", .key(key, under: ca))], 3)
    }
    func held() -> [CandidateKey?] {
      [3, 4].map { state.keysByEndpoint[endpoint.id]?.held[pin($0)] }
    }
    bench.context.approval = .manual
    show(1, under: 100)
    show(2, under: 101)
    state.keysByEndpoint[endpoint.id] = bench.endpointKeys
    let request = DocumentState.Request(who: "ada", at: bench.now, why: "")
    _ = try state.approve(pin(2), at: endpoint.id, request)
    bench.endpointKeys = try #require(state.keysByEndpoint[endpoint.id])
    show(3, under: 101)
    show(4, under: 100)
    show(1, under: 100)
    state.keysByEndpoint[endpoint.id] = bench.endpointKeys
    #expect(held().map(\.?.reasons) == [[.manual], [.manual]])
    #expect(held().map(\.?.assent) == [.known, .known])
    if isRestart { state = try DocumentState(decoding: state.encoded, file: "a.json") }
    let before = state
    if isDenied {
      _ = try state.deny(pin(2), configured: [endpoint], force: false, request)
    } else {
      _ = try state.revoke(
        pin(2), at: endpoint.id, configured: [endpoint], force: false, request)
    }
    #expect(held().map(\.?.reasons) == [[.manual, .newIssuer], [.manual]])
    #expect(held().map(\.?.assent) == [nil, isRestart ? nil : .known])
    // So does a server that had not heard of it.
    state = before.merging(state, base: before)
    #expect(held().map(\.?.reasons) == [[.manual, .newIssuer], [.manual]])
  }

  @Test("until it was not seen for the grace time")
  func lapses() {
    var context = DecisionContext()
    context.approval = .manual
    var endpointKeys = Self.settled()
    for second in 1...3 {
      _ = endpointKeys.enter(Shown().probe, at: Int64(second), rule: Self.rule, context: context)
    }
    let week = Int64(7 * 86_400)
    #expect(
      endpointKeys.enter(Shown(key: 1).probe, at: week, rule: Self.rule, context: context) == [])
    #expect(
      endpointKeys.enter(Shown(key: 1).probe, at: week + 4, rule: Self.rule, context: context)
        == [.lapsed(pin(2))])
  }

  @Test("for as long as three probes take at the endpoint's own pace")
  func ownPace() {
    #expect(Self.rule.spanning(nil) == Self.rule)
    #expect(Self.rule.spanning(30_000) == Self.rule)
    #expect(Self.rule.spanning(900_000).window == 2700)
  }

  @Test("for the first key of an endpoint never: there is no list that it could break into")
  func firstKey() {
    var context = DecisionContext()
    context.approval = .manual
    context.isMassChange = true
    var endpointKeys = EndpointKeys()
    #expect(
      endpointKeys.enter(Shown(key: 1).probe, at: 0, rule: Self.rule, context: context)
        == [.published(pin(1), isFirst: true)])
  }
}
