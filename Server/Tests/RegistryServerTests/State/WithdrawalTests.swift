import SslPinningRules
import Testing

@testable import RegistryServer

/// A key that nobody announced, and that was there for a moment.
@Suite("A key that was there for a moment") struct WithdrawalTests {
  static let rule = ConfirmationRule(looks: 3, window: 600, grace: 7 * 86_400)

  struct Scenario: Sendable, CustomTestStringConvertible {
    let name: String
    /// From its first look to its last, in seconds; looks are two seconds apart.
    var shown: Int64 = 4
    /// How many looks miss it then.
    var looks = 31
    /// Seconds between those.
    var pause: Int64 = 20
    /// What they show; the older key by default.
    var instead: Look = .accepted(pin(1))
    var isApproved = false
    var isAnnounced = false
    let isWithdrawn: Bool
    var testDescription: String { name }
  }

  private static func look(_ outcomes: [(String, String, Observation.Outcome)]) -> Look {
    Look(observations: outcomes.map { Observation(vantage: $0, address: $1, outcome: $2) })
  }

  /// As above, each address with the cause of its failure, and whether it was remembered.
  private static func look(
    here: [(Observation.Outcome, isRemembered: Bool)],
    paris: [(Observation.Outcome, LookFailureCause?)]
  ) -> Look {
    Look(
      observations: here.enumerated().map { index, seen in
        var observation = Observation(address: "\(index)", outcome: seen.0)
        observation.isRemembered = seen.isRemembered
        return observation
      }
        + paris.enumerated().map {
          Observation(vantage: "paris", address: "\($0)", outcome: $1.0, cause: $1.1)
        })
  }

  private static let old = Observation.Outcome.accepted(
    SeenChain(leaf: SeenCertificate(pin: pin(1))))
  private static let silence = Observation.Outcome.unreachable(reason: "timed out")
  private static let here = Observation.direct

  static let scenarios: [Scenario] = [
    Scenario(name: "is published no more after 30 looks and 10 minutes", isWithdrawn: true),
    Scenario(name: "stays for 29 looks", looks: 29, pause: 30, isWithdrawn: false),
    Scenario(name: "stays for 10 minutes", looks: 100, pause: 5, isWithdrawn: false),
    Scenario(
      name: "stays for seven times as long as it was there", shown: 1800, looks: 200, pause: 60,
      isWithdrawn: false),
    Scenario(
      name: "leaves after seven times as long as it was there", shown: 1800, looks: 212, pause: 60,
      isWithdrawn: true),
    Scenario(
      name: "for an hour stays for its grace time", shown: 3600, looks: 600, pause: 60,
      isWithdrawn: false),
    Scenario(name: "stays if a person approved it", isApproved: true, isWithdrawn: false),
    Scenario(name: "stays if it was announced", isAnnounced: true, isWithdrawn: false),
    Scenario(
      name: "stays while one address is silent",
      instead: look([(here, "a", old), (here, "b", silence)]), isWithdrawn: false),
    Scenario(
      name: "stays while one address shows a chain that proves nothing",
      instead: look([(here, "a", old), (here, "b", .refused(reason: "expired", presented: nil))]),
      isWithdrawn: false),
    Scenario(
      name: "leaves though a vantage point is silent as a whole",
      instead: look([(here, "a", old), ("paris", "a", silence), ("paris", "b", silence)]),
      isWithdrawn: true),
    Scenario(
      name: "leaves though a vantage point did not ask one of two addresses",
      instead: look(
        here: [(old, false), (old, false)], paris: [(old, nil), (silence, .vantage)]),
      isWithdrawn: true),
    Scenario(
      name: "stays while a vantage point asked and one of two addresses did not answer it",
      instead: look(
        here: [(old, false), (old, false)], paris: [(old, nil), (silence, .timeout)]),
      isWithdrawn: false),
    Scenario(
      name: "stays while the resolver is silent and addresses are remembered",
      instead: look(here: [(old, true)], paris: []), isWithdrawn: false),
    Scenario(
      name: "stays while this server itself cannot look",
      instead: look([(here, "", silence), ("paris", "", old)]), isWithdrawn: false),
    Scenario(
      name: "stays where a third key took its place", instead: .accepted(pin(3)),
      isWithdrawn: false),
  ]

  @Test("leaves or stays, by how often it was missed", arguments: scenarios)
  func withdrawn(_ scenario: Scenario) throws {
    var state = DocumentState()
    var ledger = DomainLedger()
    _ = ledger.enter(.accepted(pin(1)), at: 0, rule: Self.rule)
    if scenario.isAnnounced { ledger.stage(pin(2), .init(at: 0, by: "ada")) }
    var now: Int64 = 100
    for second in stride(from: 0, through: scenario.shown, by: 2) {
      now = 100 + second
      _ = ledger.enter(.accepted(pin(2)), at: now, rule: Self.rule)
    }
    #expect(ledger.keys.map(\.pin) == [pin(1), pin(2)])
    state.ledgers["a"] = ledger
    if scenario.isApproved {
      _ = try state.approve(pin(2), at: "a", .init(who: "ada", at: now, why: ""))
    }
    ledger = try #require(state.ledgers["a"])
    var events: [LedgerEvent] = []
    for _ in 0..<scenario.looks {
      now += scenario.pause
      events += ledger.enter(scenario.instead, at: now, rule: Self.rule)
    }
    #expect(events.contains(.withdrawn(pin(2))) == scenario.isWithdrawn)
    #expect(ledger.keys.contains { $0.pin == pin(2) } != scenario.isWithdrawn)
    #expect(ledger.keys.contains { $0.pin == pin(1) })
  }

  @Test("stays for seven times as many looks as ever missed it while it was there")
  func canary() {
    var ledger = DomainLedger()
    var now: Int64 = 0
    func look(_ key: UInt8) {
      now += 2
      _ = ledger.enter(.accepted(pin(key)), at: now, rule: Self.rule)
    }
    look(1)
    for _ in 0..<3 {
      look(2)
      for _ in 0..<19 { look(1) }
    }
    #expect(ledger.keys.map(\.pin) == [pin(1), pin(2)])
    for count in 20...141 {
      now += 20
      _ = ledger.enter(.accepted(pin(1)), at: now, rule: Self.rule)
      #expect(ledger.keys.contains { $0.pin == pin(2) } == (count < 140), "\(count)")
    }
  }

  @Test("is confirmed anew if it returns")
  func returns() {
    var ledger = DomainLedger()
    func enter(_ key: UInt8, _ now: Int64) -> [LedgerEvent] {
      ledger.enter(.accepted(pin(key)), at: now, rule: Self.rule)
    }
    _ = enter(1, 0)
    for now in [100, 102, 104] as [Int64] { _ = enter(2, now) }
    for now in stride(from: Int64(120), through: 740, by: 20) { _ = enter(1, now) }
    #expect(ledger.keys.map(\.pin) == [pin(1)])
    let events = [800, 802, 804].map { enter(2, $0) }
    #expect(events[0] == [.waiting(pin(2), looks: 1, needed: 3)])
    #expect(events[1] == [.waiting(pin(2), looks: 2, needed: 3)])
    #expect(events[2] == [.published(pin(2), isFirst: false)])
  }

  @Test("counts its looks anew each time that it is seen")
  func seenBetween() {
    var ledger = DomainLedger()
    func enter(_ key: UInt8, _ now: Int64) {
      _ = ledger.enter(.accepted(pin(key)), at: now, rule: Self.rule)
    }
    enter(1, 0)
    for now in [100, 102, 104] as [Int64] { enter(2, now) }
    for now in stride(from: Int64(120), through: 680, by: 20) { enter(1, now) }
    enter(2, 690)
    for now in stride(from: Int64(700), through: 2000, by: 20) { enter(1, now) }
    #expect(ledger.keys.map(\.pin) == [pin(1), pin(2)])
  }

  @Test("is looked for more often until that is settled, and then not")
  func doubtful() {
    var ledger = DomainLedger()
    _ = ledger.enter(.accepted(pin(1)), at: 0, rule: Self.rule)
    for now in [100, 102, 104] as [Int64] {
      _ = ledger.enter(.accepted(pin(2)), at: now, rule: Self.rule)
    }
    #expect(!ledger.isDoubtful)
    for look in 1...31 {
      _ = ledger.enter(.accepted(pin(1)), at: 104 + Int64(look) * 20, rule: Self.rule)
      #expect(ledger.isDoubtful == (look < 30))
    }
    #expect(ledger.keys.map(\.pin) == [pin(1)])
  }

  @Test("is withdrawn by whoever goes on with what was stored")
  func restored() throws {
    var state = DocumentState()
    var ledger = DomainLedger()
    _ = ledger.enter(.accepted(pin(1)), at: 0, rule: Self.rule)
    for now in [100, 102, 104] as [Int64] {
      _ = ledger.enter(.accepted(pin(2)), at: now, rule: Self.rule)
    }
    _ = ledger.enter(.accepted(pin(1)), at: 110, rule: Self.rule)
    state.ledgers["a"] = ledger
    let decoded = try DocumentState(decoding: state.encoded, file: "a.json")
    var read = try #require(decoded.ledgers["a"])
    for look in 1...31 {
      _ = read.enter(.accepted(pin(1)), at: 110 + Int64(look) * 20, rule: Self.rule)
    }
    #expect(read.keys.map(\.pin) == [pin(1)])
  }
}
