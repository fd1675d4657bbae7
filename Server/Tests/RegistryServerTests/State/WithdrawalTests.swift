import SslPinningRules
import Testing

@testable import RegistryCore
@testable import RegistryServer

/// A key that nobody announced, and that was there for a moment.
@Suite("A key that was there for a moment") struct WithdrawalTests {
  static let rule = ConfirmationRule(probes: 3, window: 600, grace: 7 * 86_400)

  struct Scenario: Sendable, CustomTestStringConvertible {
    let name: String
    /// From its first probe to its last, in seconds; probes are two seconds apart.
    var shown: Int64 = 4
    /// How many probes miss it then.
    var probes = 31
    /// Seconds between those.
    var pause: Int64 = 20
    /// Where it is shown, and the older key before.
    var places: [Place] = [Place(vantage: ProbeObservation.direct, address: "")]
    /// What they show; the older key by default.
    var instead: ProbeResult = .accepted(pin(1))
    var isApproved = false
    var isAnnounced = false
    let isWithdrawn: Bool
    var testDescription: String { name }
  }

  private static func probe(_ outcomes: [(String, String, ProbeObservation.Outcome)]) -> ProbeResult
  {
    ProbeResult(
      observations: outcomes.map { ProbeObservation(vantage: $0, address: $1, outcome: $2) })
  }

  /// What this server sees at an address that it remembers.
  private static var remembered: ProbeResult {
    var observation = ProbeObservation(address: "a", outcome: old)
    observation.isRemembered = true
    return ProbeResult(observations: [observation])
  }

  /// What one address shows, of a name that has these as well.
  private static func leaving(out addresses: Set<String>) -> ProbeResult {
    var result = probe([(here, "a", old)])
    result.leftOut = addresses
    return result
  }

  private static let a = Place(vantage: here, address: "a")
  private static let both = [a, Place(vantage: here, address: "b")]
  private static let paris = [
    Place(vantage: "paris", address: "a"), Place(vantage: "paris", address: "b"),
  ]
  private static let old = ProbeObservation.Outcome.accepted(
    SeenChain(leaf: SeenCertificate(pin: pin(1))))
  private static let silence = ProbeObservation.Outcome.unreachable(reason: "timed out")
  private static let here = ProbeObservation.direct

  static let scenarios: [Scenario] = [
    Scenario(name: "is published no more after 30 probes and 10 minutes", isWithdrawn: true),
    Scenario(name: "stays for 29 probes", probes: 29, pause: 30, isWithdrawn: false),
    Scenario(name: "stays for 10 minutes", probes: 100, pause: 5, isWithdrawn: false),
    Scenario(
      name: "stays for seven times as long as it was there", shown: 1800, probes: 200, pause: 60,
      isWithdrawn: false),
    Scenario(
      name: "leaves after seven times as long as it was there", shown: 1800, probes: 212, pause: 60,
      isWithdrawn: true),
    Scenario(
      name: "for an hour stays for its grace time", shown: 3600, probes: 600, pause: 60,
      isWithdrawn: false),
    Scenario(name: "stays if a person approved it", isApproved: true, isWithdrawn: false),
    Scenario(name: "stays if it was announced", isAnnounced: true, isWithdrawn: false),
    Scenario(
      name: "stays while an address is silent that showed it", places: both,
      instead: probe([(here, "a", old), (here, "b", silence)]), isWithdrawn: false),
    Scenario(
      name: "leaves though an address is silent that never showed it", places: [a],
      instead: probe([(here, "a", old), (here, "b", silence)]), isWithdrawn: true),
    Scenario(
      name: "stays while an address that showed it shows a chain that proves nothing", places: both,
      instead: probe([(here, "a", old), (here, "b", .refused(reason: "expired", presented: nil))]),
      isWithdrawn: false),
    Scenario(
      name: "leaves though a vantage point is silent as a whole that saw it", places: both + paris,
      instead: probe([
        (here, "a", old), (here, "b", old), ("paris", "a", silence), ("paris", "b", silence),
      ]), isWithdrawn: true),
    Scenario(
      name: "leaves though a vantage point that saw it did not ask one of two addresses",
      places: both + paris,
      instead: probe([
        (here, "a", old), (here, "b", old), ("paris", "a", old), ("paris", "b", silence),
      ]), isWithdrawn: true),
    Scenario(
      name: "leaves though a vantage point that saw it shows a chain that proves nothing",
      places: [a] + paris,
      instead: probe([
        (here, "a", old), ("paris", "a", .refused(reason: "expired", presented: nil)),
      ]
      ),
      isWithdrawn: true),
    Scenario(
      name: "stays while the resolver is silent and addresses are remembered", places: [a],
      instead: remembered, isWithdrawn: false),
    Scenario(
      name: "stays where its address was left out",
      places: [Place(vantage: here, address: "b")], instead: leaving(out: ["b"]), isWithdrawn: false
    ),
    Scenario(
      name: "leaves with its address, though another one was left out",
      places: [Place(vantage: here, address: "b")],
      instead: leaving(out: ["c"]), isWithdrawn: true),
    Scenario(
      name: "stays while this server itself cannot probe", places: both + paris,
      instead: probe([(here, "", silence), ("paris", "a", old), ("paris", "b", old)]),
      isWithdrawn: false),
    Scenario(
      name: "stays where a third key took its place", instead: .accepted(pin(3)),
      isWithdrawn: false),
  ]

  @Test("leaves or stays, by how often it was missed", arguments: scenarios)
  func withdrawn(_ scenario: Scenario) throws {
    var state = DocumentState()
    var endpointKeys = EndpointKeys()
    var context = DecisionContext()
    context.vantages = [Self.here, "paris"]
    func enter(_ probe: ProbeResult, _ now: Int64) -> [KeyEvent] {
      endpointKeys.enter(probe, at: now, rule: Self.rule, context: context)
    }
    func shows(_ key: UInt8) -> ProbeResult {
      let chain = SeenChain(leaf: SeenCertificate(pin: pin(key)))
      return Self.probe(scenario.places.map { ($0.vantage, $0.address, .accepted(chain)) })
    }
    _ = enter(shows(1), 0)
    if scenario.isAnnounced { endpointKeys.stage(pin(2), .init(at: 0, by: "ada")) }
    var now: Int64 = 100
    for second in stride(from: 0, through: scenario.shown, by: 2) {
      now = 100 + second
      _ = enter(shows(2), now)
    }
    #expect(endpointKeys.keys.map(\.pin) == [pin(1), pin(2)])
    state.keysByEndpoint["a"] = endpointKeys
    if scenario.isApproved {
      _ = try state.approve(pin(2), at: "a", .init(who: "ada", at: now, why: ""))
    }
    endpointKeys = try #require(state.keysByEndpoint["a"])
    var events: [KeyEvent] = []
    for _ in 0..<scenario.probes {
      now += scenario.pause
      events += enter(scenario.instead, now)
    }
    #expect(events.contains(.withdrawn(pin(2))) == scenario.isWithdrawn)
    #expect(endpointKeys.keys.contains { $0.pin == pin(2) } != scenario.isWithdrawn)
    #expect(endpointKeys.keys.contains { $0.pin == pin(1) })
  }

  @Test("stays for seven times as many probes as ever missed it while it was there")
  func canary() {
    var endpointKeys = EndpointKeys()
    var now: Int64 = 0
    func probe(_ key: UInt8) {
      now += 2
      _ = endpointKeys.enter(.accepted(pin(key)), at: now, rule: Self.rule)
    }
    probe(1)
    for _ in 0..<3 {
      probe(2)
      for _ in 0..<19 { probe(1) }
    }
    #expect(endpointKeys.keys.map(\.pin) == [pin(1), pin(2)])
    for count in 20...141 {
      now += 20
      _ = endpointKeys.enter(.accepted(pin(1)), at: now, rule: Self.rule)
      #expect(endpointKeys.keys.contains { $0.pin == pin(2) } == (count < 140), "\(count)")
    }
  }

  @Test("that was shown by probes an hour apart was not there for an hour")
  func hourly() {
    let hour: Int64 = 3600
    let rule = ConfirmationRule(probes: 3, window: 600, grace: 7 * 86_400).spanning(hour * 1000)
    var endpointKeys = EndpointKeys()
    func see(_ key: UInt8, _ now: Int64) {
      _ = endpointKeys.enter(.accepted(pin(key)), at: now, rule: rule)
    }
    see(1, 0)
    for now in [hour, 2 * hour, 3 * hour] { see(2, now) }
    #expect(endpointKeys.keys.map(\.pin) == [pin(1), pin(2)])
    for probe in 1...430 { see(1, 3 * hour + Int64(probe) * 20) }
    #expect(endpointKeys.keys.map(\.pin) == [pin(1)])
  }

  @Test("is confirmed anew if it returns")
  func returns() {
    var endpointKeys = EndpointKeys()
    func enter(_ key: UInt8, _ now: Int64) -> [KeyEvent] {
      endpointKeys.enter(.accepted(pin(key)), at: now, rule: Self.rule)
    }
    _ = enter(1, 0)
    for now in [100, 102, 104] as [Int64] { _ = enter(2, now) }
    for now in stride(from: Int64(120), through: 740, by: 20) { _ = enter(1, now) }
    #expect(endpointKeys.keys.map(\.pin) == [pin(1)])
    let events = [800, 802, 804].map { enter(2, $0) }
    #expect(events[0] == [.waiting(pin(2), probes: 1, needed: 3)])
    #expect(events[1] == [.waiting(pin(2), probes: 2, needed: 3)])
    #expect(events[2] == [.published(pin(2), isFirst: false)])
  }

  @Test("counts its probes anew each time that it is seen")
  func seenBetween() {
    var endpointKeys = EndpointKeys()
    func enter(_ key: UInt8, _ now: Int64) {
      _ = endpointKeys.enter(.accepted(pin(key)), at: now, rule: Self.rule)
    }
    enter(1, 0)
    for now in [100, 102, 104] as [Int64] { enter(2, now) }
    for now in stride(from: Int64(120), through: 680, by: 20) { enter(1, now) }
    enter(2, 690)
    for now in stride(from: Int64(700), through: 2000, by: 20) { enter(1, now) }
    #expect(endpointKeys.keys.map(\.pin) == [pin(1), pin(2)])
  }

  @Test("is looked for more often until that is settled, and then not")
  func doubtful() {
    var endpointKeys = EndpointKeys()
    _ = endpointKeys.enter(.accepted(pin(1)), at: 0, rule: Self.rule)
    for now in [100, 102, 104] as [Int64] {
      _ = endpointKeys.enter(.accepted(pin(2)), at: now, rule: Self.rule)
    }
    #expect(!endpointKeys.isDoubtful)
    for probe in 1...31 {
      _ = endpointKeys.enter(.accepted(pin(1)), at: 104 + Int64(probe) * 20, rule: Self.rule)
      #expect(endpointKeys.isDoubtful == (probe < 30))
    }
    #expect(endpointKeys.keys.map(\.pin) == [pin(1)])
  }

  @Test("is withdrawn by whoever goes on with what was stored")
  func restored() throws {
    var state = DocumentState()
    var endpointKeys = EndpointKeys()
    _ = endpointKeys.enter(.accepted(pin(1)), at: 0, rule: Self.rule)
    for now in [100, 102, 104] as [Int64] {
      _ = endpointKeys.enter(.accepted(pin(2)), at: now, rule: Self.rule)
    }
    _ = endpointKeys.enter(.accepted(pin(1)), at: 110, rule: Self.rule)
    state.keysByEndpoint["a"] = endpointKeys
    let decoded = try DocumentState(decoding: state.encoded, file: "a.json")
    var read = try #require(decoded.keysByEndpoint["a"])
    for probe in 1...31 {
      _ = read.enter(.accepted(pin(1)), at: 110 + Int64(probe) * 20, rule: Self.rule)
    }
    #expect(read.keys.map(\.pin) == [pin(1)])
  }
}
