import RegistryServer
import SslPinningRules
import Testing

@testable import RegistryCore

@Suite("What a endpointKeys of keys publishes") struct EndpointKeysTests {
  /// One step: seconds since the previous one, and what the probe showed.
  struct Step: Sendable {
    let wait: Int64
    let probe: ProbeResult

    static func sees(_ byte: UInt8, after wait: Int64 = 2) -> Step {
      Step(wait: wait, probe: .accepted(pin(byte)))
    }

    static func isFooled(_ byte: UInt8, after wait: Int64 = 2) -> Step {
      Step(wait: wait, probe: .refused(reason: "self-signed", presented: pin(byte)))
    }

    static func fails(after wait: Int64 = 2) -> Step {
      Step(wait: wait, probe: .unreachable(reason: "timed out"))
    }
  }

  struct Scenario: Sendable, CustomTestStringConvertible {
    let name: String
    let steps: [Step]
    /// The published keys in the end.
    let keys: Set<UInt8>
    /// Whether another probe should come soon.
    var isWaiting = false
    var testDescription: String { name }
  }

  static let day: Int64 = 86_400
  static let rule = ConfirmationRule(probes: 3, window: 600, grace: 7 * day)

  /// A probe every hour that shows this key, so many times.
  static func hourly(_ byte: UInt8, _ count: Int) -> [Step] {
    [Step](repeating: .sees(byte, after: 3600), count: count)
  }

  static let scenarios: [Scenario] = [
    Scenario(name: "nothing before the first probe", steps: [], keys: []),
    Scenario(name: "the first good probe publishes its key", steps: [.sees(1)], keys: [1]),
    Scenario(
      name: "a first probe a self-signed server publishes nothing", steps: [.isFooled(9)],
      keys: []),
    Scenario(
      name: "a first probe that fails publishes nothing", steps: [.fails()], keys: []),
    Scenario(
      name: "a server that was self-signed at first is published once it is good",
      steps: [.isFooled(9), .sees(1)], keys: [1]),
    Scenario(
      name: "a changed key waits after one probe", steps: [.sees(1), .sees(2)], keys: [1],
      isWaiting: true),
    Scenario(
      name: "a changed key waits after two probes", steps: [.sees(1), .sees(2), .sees(2)],
      keys: [1],
      isWaiting: true),
    Scenario(
      name: "a changed key is published beside the old one after three probes",
      steps: [.sees(1), .sees(2), .sees(2), .sees(2)], keys: [1, 2]),
    Scenario(
      name: "three different new keys are not one key seen three times",
      steps: [.sees(1), .sees(2), .sees(3), .sees(4)], keys: [1], isWaiting: true),
    Scenario(
      name: "a probe that fails in between changes nothing",
      steps: [.sees(1), .sees(2), .fails(), .sees(2), .fails(), .sees(2)], keys: [1, 2]),
    Scenario(
      name: "a bad chain in between starts the count again",
      steps: [.sees(1), .sees(2), .sees(2), .isFooled(9), .sees(2), .sees(2)], keys: [1],
      isWaiting: true),
    Scenario(
      name: "after a bad chain three probes are needed again",
      steps: [.sees(1), .sees(2), .sees(2), .isFooled(9), .sees(2), .sees(2), .sees(2)],
      keys: [1, 2]),
    Scenario(
      name: "a self-signed key never becomes a pin, however often it is seen",
      steps: [.sees(1)] + [Step](repeating: .isFooled(9), count: 50), keys: [1]),
    Scenario(
      name: "a fleet that shows both keys in turn gets both",
      steps: [.sees(1), .sees(2), .sees(1), .sees(2), .sees(1), .sees(2)], keys: [1, 2]),
    Scenario(
      name: "a fleet with two new keys in turn gets both",
      steps: [.sees(1), .sees(2), .sees(3), .sees(2), .sees(3), .sees(2), .sees(3)],
      keys: [1, 2, 3]),
    Scenario(
      name: "a key that shows up once a day is never added up",
      steps: [.sees(1)] + (0..<10).flatMap { _ in [.sees(2, after: day), .sees(1)] }, keys: [1],
      isWaiting: true),
    Scenario(
      name: "probes within the window are added up, across intervals",
      steps: [.sees(1), .sees(2), .sees(1, after: 60), .sees(2, after: 60), .sees(2, after: 60)],
      keys: [1, 2]),
    Scenario(
      name: "the old key is kept through its grace time",
      steps: [.sees(1), .sees(2), .sees(2), .sees(2)] + hourly(2, 7 * 24 - 1), keys: [1, 2]),
    Scenario(
      name: "the old key leaves after its grace time",
      steps: [.sees(1), .sees(2), .sees(2), .sees(2)] + hourly(2, 7 * 24 + 1), keys: [2]),
    Scenario(
      name: "a clock that jumps ahead retires nothing",
      steps: [.sees(1), .sees(2), .sees(2), .sees(2), .sees(2, after: 400 * day)], keys: [1, 2]),
    Scenario(
      name: "half of a fleet is not retired by the first look after a long stop",
      steps: [.sees(1), .sees(2), .sees(2), .sees(2), .sees(1), .sees(1, after: 30 * day)],
      keys: [1, 2]),
    Scenario(
      name: "half of a fleet is not retired by the first look after a month of bad chains",
      steps: [.sees(1), .sees(2), .sees(2), .sees(2)]
        + [Step](repeating: .isFooled(9, after: day), count: 30) + [.sees(1)], keys: [1, 2]),
    Scenario(
      name: "a grace time that an outage interrupts goes on after it",
      steps: [.sees(1), .sees(2), .sees(2), .sees(2)] + hourly(2, 4 * 24)
        + [.sees(2, after: 30 * day)] + hourly(2, 3 * 24 + 1), keys: [2]),
    Scenario(
      name: "a rollback within the grace time needs no confirmation",
      steps: [.sees(1), .sees(2), .sees(2), .sees(2), .sees(1, after: day)], keys: [1, 2]),
    Scenario(
      name: "a key that is seen again begins its grace time anew",
      steps: [
        .sees(1), .sees(2), .sees(2), .sees(2), .sees(1, after: 5 * day), .sees(2),
        .sees(2, after: 5 * day),
      ], keys: [1, 2]),
    Scenario(
      name: "flapping between two keys keeps both for ever",
      steps: [.sees(1), .sees(2), .sees(2), .sees(2)]
        + (0..<30).flatMap { _ in [.sees(1, after: day), .sees(2, after: day)] }, keys: [1, 2]),
    Scenario(
      name: "an endpoint that is down for a month keeps its keys",
      steps: [.sees(1), .sees(2), .sees(2), .sees(2), .fails(after: 30 * day)], keys: [1, 2]),
    Scenario(
      name: "a bad chain for a month retires nothing",
      steps: [.sees(1), .sees(2), .sees(2), .sees(2), .isFooled(9, after: 30 * day)], keys: [1, 2]),
    Scenario(
      name: "the only key stays, however long ago it was seen",
      steps: [.sees(1), .fails(after: 400 * day), .sees(2, after: 60)], keys: [1], isWaiting: true),
    Scenario(
      name: "after a long outage the old key has its whole grace time",
      steps: [.sees(1), .sees(2, after: 60 * day), .sees(2), .sees(2), .sees(2, after: 6 * day)],
      keys: [1, 2]),
    Scenario(
      name: "a clock that was set back publishes and retires nothing",
      steps: [.sees(1), .sees(2), .sees(2), .sees(2), .sees(1, after: -300 * day), .sees(2)],
      keys: [1, 2]),
    Scenario(
      name: "after a clock that was ahead single sightings are not added up either",
      steps: [.sees(1), .sees(1, after: 400 * day), .sees(1, after: -400 * day)]
        + (0..<10).flatMap { _ in [.sees(2, after: day), .sees(1)] }, keys: [1], isWaiting: true),
    Scenario(
      name: "after a clock that was ahead the old key leaves after its grace time",
      steps: [
        .sees(1, after: 400 * day), .sees(2), .sees(2), .sees(2), .sees(2, after: -400 * day),
      ]
        + hourly(2, 7 * 24 + 1), keys: [2]),
    Scenario(
      name: "probes that were counted by a clock that was ahead confirm nothing",
      steps: [.sees(1), .sees(2, after: 400 * day), .sees(2), .sees(2, after: -400 * day)],
      keys: [1], isWaiting: true),
    Scenario(
      name: "another server's clock may be an hour ahead",
      steps: [.sees(1), .sees(2, after: 3600), .sees(2), .sees(2, after: -3600)], keys: [1, 2]),
  ]

  @Test("follows its rules", arguments: scenarios)
  func follows(_ scenario: Scenario) {
    var endpointKeys = EndpointKeys()
    var now: Int64 = 1_780_000_000
    for step in scenario.steps {
      now += step.wait
      _ = endpointKeys.enter(step.probe, at: now, rule: Self.rule)
    }
    #expect(Set(endpointKeys.keys.map(\.pin)) == Set(scenario.keys.map { pin($0) }))
    #expect(endpointKeys.isWaiting == scenario.isWaiting)
  }

  @Test(
    "a failed probe leaves the endpointKeys as it was",
    arguments: [
      ProbeResult.unreachable(reason: "timed out"), .refused(reason: "expired", presented: pin(9)),
    ])
  func failedProbeChangesNothing(_ probe: ProbeResult) {
    var endpointKeys = EndpointKeys(keys: [
      KnownKey(pin: pin(1), firstSeen: 10, lastSeen: 1000),
      KnownKey(pin: pin(2), firstSeen: 20, lastSeen: 900, missedSince: 901),
    ])
    let before = endpointKeys
    let events = endpointKeys.enter(probe, at: 900_000_000, rule: Self.rule)
    #expect(endpointKeys == before)
    #expect(events.count == 1)
  }

  @Test("one configured probe publishes a change at once")
  func oneProbe() {
    var endpointKeys = EndpointKeys(keys: [KnownKey(pin: pin(1), firstSeen: 1, lastSeen: 1)])
    let events = endpointKeys.enter(
      .accepted(pin(2)), at: 5, rule: ConfirmationRule(probes: 1, window: 600, grace: 600))
    #expect(events == [.published(pin(2), isFirst: false)])
  }

  @Test("says what came of each probe")
  func events() {
    var endpointKeys = EndpointKeys()
    func enter(_ probe: ProbeResult, _ now: Int64) -> [KeyEvent] {
      endpointKeys.enter(probe, at: now, rule: Self.rule)
    }
    #expect(enter(.accepted(pin(1)), 0) == [.published(pin(1), isFirst: true)])
    #expect(enter(.accepted(pin(1)), 1) == [])
    #expect(enter(.accepted(pin(2)), 2) == [.waiting(pin(2), probes: 1, needed: 3)])
    #expect(enter(.accepted(pin(1)), 700) == [.lapsed(pin(2))])
    _ = enter(.accepted(pin(3)), 800)
    _ = enter(.accepted(pin(3)), 802)
    #expect(enter(.accepted(pin(3)), 804) == [.published(pin(3), isFirst: false)])
    for hour in 1...(7 * 24) { #expect(enter(.accepted(pin(3)), 800 + Int64(hour) * 3600) == []) }
    #expect(enter(.accepted(pin(3)), 801 + 7 * Self.day) == [.retired(pin(1))])
    #expect(
      enter(.refused(reason: "expired", presented: nil), 9 * Self.day)
        == [.refused(reason: "expired", presented: nil)])
  }

  @Test("counts so many new keys at a time and no more")
  func boundedCandidates() {
    var endpointKeys = EndpointKeys(keys: [KnownKey(pin: pin(200), firstSeen: 0, lastSeen: 0)])
    for byte in UInt8(1)...100 {
      _ = endpointKeys.enter(.accepted(pin(byte)), at: 10, rule: Self.rule)
    }
    #expect(endpointKeys.candidates.count == EndpointKeys.maximumCandidates)
  }

  @Test("unites what two servers know")
  func merging() {
    let own = EndpointKeys(keys: [
      KnownKey(pin: pin(1), firstSeen: 10, lastSeen: 50, missedSince: 60),
      KnownKey(pin: pin(2), firstSeen: 30, lastSeen: 90),
    ])
    let other = EndpointKeys(keys: [
      KnownKey(pin: pin(1), firstSeen: 5, lastSeen: 80),
      KnownKey(pin: pin(3), firstSeen: 20, lastSeen: 40),
    ])
    let both = [
      KnownKey(pin: pin(1), firstSeen: 5, lastSeen: 80),
      KnownKey(pin: pin(3), firstSeen: 20, lastSeen: 40),
      KnownKey(pin: pin(2), firstSeen: 30, lastSeen: 90),
    ]
    #expect(own.merging(other, base: EndpointKeys()).keys == both)
    #expect(other.merging(own, base: EndpointKeys()).keys == both)
  }

  @Test("unites how long a key was seen, how it came and went, and where")
  func mergingPresence() {
    func endpointKeys(_ gap: Int, _ shown: Int64, at places: [String: Int64]) -> EndpointKeys {
      var key = KnownKey(
        pin: pin(1), firstSeen: 10, lastSeen: 50, isUnannounced: true, longestGap: gap,
        shownFor: shown)
      for (address, time) in places {
        key.seenAt[Place(vantage: "direct", address: address)] = time
      }
      return EndpointKeys(keys: [key])
    }
    let (one, other) = (
      endpointKeys(7, 20, at: ["a": 50, "b": 20]), endpointKeys(3, 30, at: ["b": 50])
    )
    let both = endpointKeys(7, 30, at: ["a": 50, "b": 50])
    #expect(one.merging(other, base: EndpointKeys()).keys == both.keys)
    #expect(other.merging(one, base: EndpointKeys()).keys == both.keys)
  }

  @Test("keeps which keys a new one interrupted, also beside a server that does not say so")
  func mergingInterrupted() {
    var key = KnownKey(pin: pin(2), firstSeen: 10, lastSeen: 50, isUnannounced: true)
    let silent = EndpointKeys(keys: [key])
    key.interrupted = [pin(1)]
    let told = EndpointKeys(keys: [key])
    #expect(told.merging(silent, base: silent).keys == told.keys)
    #expect(silent.merging(told, base: silent).keys == told.keys)
  }

  @Test("takes over since when a key is missed, where that changed on the other side alone")
  func mergingMissed() {
    func endpointKeys(_ missedSince: Int64?) -> EndpointKeys {
      EndpointKeys(keys: [
        KnownKey(pin: pin(1), firstSeen: 10, lastSeen: 50, missedSince: missedSince),
        KnownKey(pin: pin(2), firstSeen: 30, lastSeen: 90),
      ])
    }
    // Excused for time that nobody watched; missed for the first time; what changed here stays.
    for (own, theirs, base, merged): (Int64?, Int64?, Int64?, Int64?) in [
      (60, 700, 60, 700), (nil, 60, nil, 60), (700, 60, 60, 700), (60, nil, nil, 60),
    ] {
      #expect(
        endpointKeys(own).merging(endpointKeys(theirs), base: endpointKeys(base)).keys
          == endpointKeys(merged).keys)
    }
  }

  @Test("has watched where another server did, as far as it is known")
  func watchedByAnother() {
    let (day, rule) = (Int64(86_400), ConfirmationRule(probes: 1, grace: 7 * 86_400))
    var own = EndpointKeys(keys: [KnownKey(pin: pin(1), firstSeen: 0, lastSeen: 0)])
    _ = own.enter(.accepted(pin(2)), at: 60, rule: rule)
    // The other one looks for six days.
    let theirs = EndpointKeys(keys: [
      KnownKey(pin: pin(1), firstSeen: 0, lastSeen: 0, missedSince: 60),
      KnownKey(pin: pin(2), firstSeen: 60, lastSeen: 6 * day),
    ])
    own = own.merging(theirs, base: own)
    _ = own.enter(.accepted(pin(2)), at: 6 * day + 60, rule: rule)
    #expect(own.keys.map(\.missedSince) == [60, nil])
    _ = own.enter(.accepted(pin(2)), at: 6 * day + 120, rule: rule)
    for hour in Int64(1)...24 {
      _ = own.enter(.accepted(pin(2)), at: 6 * day + 120 + hour * 3600, rule: rule)
    }
    #expect(own.keys.map(\.pin) == [pin(2)])
  }

  @Test("is written for other keys and for times that moved far, not for every probe")
  func storing() {
    let stored = EndpointKeys(keys: [
      KnownKey(pin: pin(1), firstSeen: 0, lastSeen: 1000),
      KnownKey(pin: pin(2), firstSeen: 1, lastSeen: 1000),
    ])
    func afterSeeing(_ byte: UInt8, at now: Int64) -> EndpointKeys {
      var endpointKeys = stored
      _ = endpointKeys.enter(.accepted(pin(byte)), at: now, rule: Self.rule)
      return endpointKeys
    }
    let slack = Self.rule.grace / 24
    #expect(!afterSeeing(1, at: 1060).isWorthStoring(over: stored, at: 1060, rule: Self.rule))
    let later = 1001 + slack
    #expect(afterSeeing(1, at: later).isWorthStoring(over: stored, at: later, rule: Self.rule))
    #expect(EndpointKeys().isWorthStoring(over: stored, at: 1060, rule: Self.rule))
  }

  @Test("is written when a new key has had its hour: another server must not count it anew")
  func storingTheHour() {
    func shown(for seconds: Int64) -> EndpointKeys {
      EndpointKeys(keys: [
        KnownKey(pin: pin(1), firstSeen: 0, lastSeen: 0),
        KnownKey(pin: pin(2), firstSeen: 0, lastSeen: seconds, isUnannounced: true),
      ])
    }
    for (seconds, isWorth) in [(Int64(3599), false), (3600, true)] {
      #expect(
        shown(for: seconds).isWorthStoring(over: shown(for: 0), at: seconds, rule: Self.rule)
          == isWorth)
    }
  }
}
