import SslPinningRules
import Testing

@testable import RegistryCore
@testable import RegistryServer

/// When a key leaves that is not seen any more, with several addresses and vantage points.
@Suite("A key that is not seen") struct LeavingKeyTests {
  typealias View = LedgerBench.View

  /// Probes that show the same, one after the other.
  struct Stretch: Sendable {
    let view: View
    var times = 1
    var pause: Int64 = 60

    init(_ view: View, _ times: Int = 1, every pause: Int64 = 60) {
      (self.view, self.times, self.pause) = (view, times, pause)
    }
  }

  struct Scenario: Sendable, CustomTestStringConvertible {
    let name: String
    var points: [String] = []
    var isUnion = false
    let steps: [Stretch]
    /// The published keys in the end.
    let keys: Set<UInt8>
    /// The keys that somebody was told of: nobody knows whether they are gone.
    var told: Set<UInt8> = []
    var testDescription: String { name }
  }

  private static let here = LedgerBench.here
  private static let day = 24 * 60

  /// What two addresses show to this server.
  private static func at(_ a: LedgerBench.Answer, _ b: LedgerBench.Answer) -> View {
    [(here, "a", a), (here, "b", b)]
  }

  /// What an endpoint with one key shows.
  private static func one(_ key: UInt8) -> View { [(here, "", .key(key))] }

  /// What this server and Oslo see at one address.
  private static func from(_ direct: LedgerBench.Answer, oslo: LedgerBench.Answer) -> View {
    [(here, "a", direct), ("oslo", "", oslo)]
  }

  private static let three = ["oslo", "rome", "bern"]

  /// What this server sees at one address, and all three points.
  private static func everywhere(
    _ direct: LedgerBench.Answer, points: LedgerBench.Answer
  ) -> View {
    [(here, "a", direct)] + three.map { ($0, "", points) }
  }

  /// A new key, shown to this server and to all three points for less than half a minute.
  private static let seenByAll = [
    Stretch(everywhere(.key(1), points: .key(1)), 3),
    Stretch(everywhere(.key(9), points: .key(9)), 12, every: 2),
  ]

  static let scenarios: [Scenario] = [
    Scenario(
      name: "stays for however long the only address that shows it is down",
      steps: [
        Stretch(at(.key(1), .key(2)), 4), Stretch(at(.key(1), .silent), 8 * day),
      ], keys: [1, 2], told: [2]),
    Scenario(
      name: "stays for however long the address shows a chain that proves nothing",
      steps: [
        Stretch(at(.key(1), .key(2)), 90), Stretch(at(.key(1), .refused), 8 * day),
      ], keys: [1, 2], told: [2]),
    Scenario(
      name: "has its whole grace time left when the address answers with another one",
      steps: [
        Stretch(at(.key(1), .key(2)), 90), Stretch(at(.key(1), .silent), 8 * day),
        Stretch(at(.key(1), .key(1)), 7 * day - 1),
      ], keys: [1, 2], told: [2]),
    Scenario(
      name: "leaves after that",
      steps: [
        Stretch(at(.key(1), .key(2)), 90), Stretch(at(.key(1), .silent), 8 * day),
        Stretch(at(.key(1), .key(1)), 7 * day + 2),
      ], keys: [1], told: [2]),
    Scenario(
      name: "leaves although an address goes down that showed another one for a day",
      steps: [
        Stretch(at(.key(1), .key(1)), 90), Stretch(at(.key(2), .key(2)), day + 10),
        Stretch(at(.key(2), .silent), 6 * day + 10),
      ], keys: [2]),
    Scenario(
      name: "leaves although the name has an address that never answered",
      steps: [
        Stretch(at(.key(1), .silent), 90), Stretch(at(.key(2), .silent), 7 * day + 10),
      ], keys: [2]),
    Scenario(
      name: "leaves if the name has its address no more",
      steps: [
        Stretch(at(.key(1), .key(2)), 90), Stretch([(here, "a", .key(1))], 7 * day + 2),
      ], keys: [1]),
    Scenario(
      name: "of a region stays while its vantage point is silent",
      points: ["oslo"], isUnion: true,
      steps: [
        Stretch(from(.key(1), oslo: .key(2)), 90), Stretch(from(.key(1), oslo: .silent), 8 * day),
      ], keys: [1, 2], told: [2]),
    Scenario(
      name: "of a region stays while its vantage point is silent that showed it for two minutes",
      points: ["oslo"], isUnion: true,
      steps: [
        Stretch(from(.key(1), oslo: .key(2)), 90),
        Stretch(from(.key(1), oslo: .key(3)), 60, every: 2),
        Stretch(from(.key(1), oslo: .silent), 8 * day, every: 20),
      ], keys: [1, 2, 3], told: [3]),
    Scenario(
      name: "of a region stays though this server saw it, too, while the vantage point is silent",
      points: ["oslo"], isUnion: true,
      steps: [
        Stretch(from(.key(1), oslo: .key(1)), 90), Stretch(from(.key(2), oslo: .silent), 8 * day),
      ], keys: [1, 2], told: [1]),
    Scenario(
      name: "that this server saw leaves though a vantage point is silent",
      points: ["oslo"],
      steps: [
        Stretch(from(.key(1), oslo: .key(1)), 90),
        Stretch(from(.key(2), oslo: .silent), 7 * day + 10),
      ], keys: [2]),
    Scenario(
      name: "that a silent vantage point alone saw stays",
      points: ["oslo", "rome", "bern"],
      steps: [
        Stretch([(here, "a", .silent), ("oslo", "", .key(1)), ("rome", "", .key(1))], 90),
        Stretch([(here, "a", .key(2)), ("oslo", "", .silent), ("rome", "", .silent)], 8 * day),
      ], keys: [1, 2], told: [1]),
    Scenario(
      name: "that a vantage point alone saw leaves if that is no longer configured",
      points: [],
      steps: [
        Stretch(from(.key(1), oslo: .key(2)), 90),
        Stretch(from(.key(1), oslo: .silent), 7 * day + 10),
      ], keys: [1]),
    Scenario(
      name: "and was a moment's is withdrawn though another address never answers",
      steps: [
        Stretch(at(.key(1), .silent), 3), Stretch(at(.key(9), .silent), 12, every: 2),
        Stretch(at(.key(1), .silent), 32, every: 20),
      ], keys: [1]),
    Scenario(
      name: "and was a moment's stays while its address is silent, and that is told",
      steps: [
        Stretch(at(.key(1), .key(1)), 3), Stretch(at(.key(1), .key(9)), 12, every: 2),
        Stretch(at(.key(1), .silent), 90, every: 20),
      ], keys: [1, 9], told: [9]),
    Scenario(
      name:
        "and was a moment's is withdrawn though a vantage point shows a chain that proves nothing",
      points: ["oslo", "rome", "bern"],
      steps: [
        Stretch(from(.key(1), oslo: .key(1)), 3),
        Stretch(from(.key(9), oslo: .key(9)), 12, every: 2),
        Stretch(from(.key(1), oslo: .refused), 32, every: 20),
      ], keys: [1]),
    Scenario(
      name:
        "and that a quorum has seen stays while the points are cut off, whatever this server is led to",
      points: three,
      steps: seenByAll + [Stretch(everywhere(.key(1), points: .silent), 450, every: 20)],
      keys: [1, 9], told: [9]),
    Scenario(
      name: "and that a quorum has seen stays while the points are shown what proves nothing",
      points: three,
      steps: seenByAll + [Stretch(everywhere(.key(1), points: .refused), 450, every: 20)],
      keys: [1, 9], told: [9]),
    Scenario(
      name: "and that a quorum has seen stays while fewer than a quorum answer without it",
      points: three,
      steps: seenByAll + [
        Stretch(
          [
            (here, "a", .key(1)), ("oslo", "", .key(1)), ("rome", "", .silent),
            ("bern", "", .silent),
          ], 450, every: 20)
      ], keys: [1, 9], told: [9]),
    Scenario(
      name: "and that a quorum has seen is withdrawn once a quorum answers without it",
      points: three,
      steps: seenByAll + [
        Stretch(everywhere(.key(1), points: .silent), 60, every: 20),
        Stretch(
          [
            (here, "a", .key(1)), ("oslo", "", .key(1)), ("rome", "", .key(1)),
            ("bern", "", .silent),
          ], 32, every: 20),
      ], keys: [1], told: [9]),
    Scenario(
      name:
        "and that no quorum saw, but a middleman's one point, is withdrawn while all are cut off",
      points: three,
      steps: [
        Stretch(everywhere(.key(1), points: .key(1)), 3),
        Stretch(
          [
            (here, "a", .key(9)), ("oslo", "", .key(9)), ("rome", "", .silent),
            ("bern", "", .silent),
          ], 12, every: 2),
        Stretch(everywhere(.key(1), points: .silent), 32, every: 20),
      ], keys: [1]),
    Scenario(
      name: "and that a quorum saw an hour before this server alone did is withdrawn",
      points: three,
      steps: seenByAll + [
        Stretch(everywhere(.key(1), points: .silent), 190, every: 20),
        Stretch(everywhere(.key(9), points: .silent)),
        Stretch(everywhere(.key(1), points: .silent), 230, every: 20),
      ], keys: [1], told: [9]),
    Scenario(
      name: "and was a moment's stays beside a key that took its place, however long that is shown",
      steps: [
        Stretch(one(1)), Stretch(one(9), 6, every: 2), Stretch(one(2), day),
      ], keys: [1, 2, 9], told: [9]),
    Scenario(
      name: "and was a moment's leaves after its grace time then",
      steps: [
        Stretch(one(1)), Stretch(one(9), 6, every: 2), Stretch(one(2), 7 * day + 10),
      ], keys: [2], told: [9]),
    Scenario(
      name:
        "and was new stays beside a younger key that nobody announced, for however long that is shown",
      steps: [
        Stretch(one(1), 90), Stretch(one(2), 5), Stretch(one(9), 1000, every: 20),
      ], keys: [1, 2, 9], told: [2]),
    Scenario(
      name: "and was new for most of an hour stays beside a younger key that nobody announced",
      steps: [
        Stretch(one(1), 90), Stretch(one(2), 50), Stretch(one(9), 1620, every: 20),
      ], keys: [1, 2, 9], told: [2]),
    Scenario(
      name: "and was new stays beside an older key that had left before it came",
      steps: [
        Stretch(one(1), 90), Stretch(one(9), 63), Stretch(one(1), 3 * day),
        Stretch(one(2), 3, every: 2), Stretch(one(2), 2), Stretch(one(9), 1000, every: 20),
      ], keys: [1, 2, 9], told: [2]),
    Scenario(
      name: "and was a moment's is withdrawn beside an older key that nobody announced either",
      steps: [
        Stretch(one(1), 90), Stretch(one(2), day), Stretch(one(9), 6, every: 2),
        Stretch(one(2), 40, every: 20),
      ], keys: [1, 2]),
    Scenario(
      name: "and was a moment's is withdrawn beside a key that was a few minutes old when it came",
      steps: [
        Stretch(one(1), 90), Stretch(one(2), 5), Stretch(one(9), 6, every: 2),
        Stretch(one(2), 40, every: 20),
      ], keys: [1, 2]),
    Scenario(
      name:
        "and was the second of a moment's is withdrawn beside the key that the first one interrupted",
      steps: [
        Stretch(one(1), 90), Stretch(one(2), day), Stretch(one(8), 20),
        Stretch(one(9), 6, every: 2),
        Stretch(one(2), 440, every: 20),
      ], keys: [1, 2]),
    Scenario(
      name:
        "and was a moment's is withdrawn, though whoever showed it kept this server away before",
      steps: [
        Stretch(one(1), 90), Stretch(one(2), day), Stretch(one(8), 1),
        Stretch(one(9), 1, every: 601), Stretch(one(9), 5, every: 2),
        Stretch(one(2), 40, every: 20),
      ], keys: [1, 2]),
    Scenario(
      name: "and was new stays beside an older key whose other address has been silent for days",
      steps: [
        Stretch(at(.key(1), .key(1)), 90), Stretch(at(.key(9), .key(9)), 63),
        Stretch(at(.silent, .key(1)), 3 * day), Stretch(at(.silent, .key(2)), 5),
        Stretch(at(.silent, .key(9)), 1000, every: 20),
      ], keys: [1, 2, 9], told: [2]),
    Scenario(
      name: "and was a moment's is withdrawn where the older one had been missed for some minutes",
      steps: [
        Stretch(one(1), 90), Stretch(one(2), day), Stretch(one(1), 5),
        Stretch(one(9), 6, every: 2), Stretch(one(2), 40, every: 20),
      ], keys: [1, 2]),
    Scenario(
      name: "and was shown for a moment now and then leaves soon after the last one",
      steps: [
        Stretch([(here, "", .key(1))]), Stretch([(here, "", .key(9))], 3, every: 2),
        Stretch([(here, "", .key(1))], 26, every: 20), Stretch([(here, "", .key(9))], every: 16),
        Stretch([(here, "", .key(1))], 152, every: 20), Stretch([(here, "", .key(9))], every: 10),
        Stretch([(here, "", .key(1))], 152, every: 20), Stretch([(here, "", .key(9))], every: 10),
        Stretch([(here, "", .key(1))], 211, every: 20),
      ], keys: [1]),
  ]

  @Test("leaves or stays", arguments: scenarios)
  func leaves(_ scenario: Scenario) {
    var bench = LedgerBench(points: scenario.points, isUnion: scenario.isUnion)
    for step in scenario.steps { bench.see(step.view, step.times, every: step.pause) }
    #expect(bench.keys == scenario.keys)
    let told = bench.events.compactMap { if case .undecided(let pin) = $0 { pin } else { nil } }
    #expect(Set(told) == Set(scenario.told.map { pin($0) }))
    #expect(told.count == scenario.told.count, "each is told once")
  }

  @Test("is told as an alert for as long as nobody knows whether it is gone")
  func alert() throws {
    var bench = LedgerBench()
    var state = DocumentState()
    func enter(_ view: View, _ times: Int) {
      for _ in 0..<times {
        let count = bench.events.count
        bench.see(view, every: 60)
        state.keysByEndpoint["a"] = bench.endpointKeys
        _ = state.noteAlerts(
          of: Array(bench.events[count...]), at: "a", failures: 0, now: bench.now)
      }
    }
    enter(Self.at(.key(1), .key(2)), 90)
    enter(Self.at(.key(1), .silent), 8 * Self.day)
    #expect(state.alerts["a"]?.map(\.kind) == [.keyUndecided])
    #expect(state.alerts["a"]?.first?.pin == pin(2))
    enter(Self.at(.key(1), .key(2)), 1)
    #expect(state.alerts["a"] == nil)
  }

  @Test(
    "and was new beside one that had left stays whoever goes on with what was stored, and that is told",
    arguments: [true, false])
  func interruptedRestored(isHeld: Bool) throws {
    var bench = LedgerBench()
    var state = DocumentState()
    func enter(_ key: UInt8, _ times: Int, every pause: Int64 = 60) {
      for _ in 0..<times {
        let count = bench.events.count
        bench.see(Self.one(key), every: pause)
        state.keysByEndpoint["a"] = bench.endpointKeys
        _ = state.noteAlerts(
          of: Array(bench.events[count...]), at: "a", failures: 0, now: bench.now)
      }
    }
    func restart() throws {
      state = try DocumentState(decoding: state.encoded, file: "a.json")
      bench.endpointKeys = try #require(state.keysByEndpoint["a"])
    }
    enter(1, 90)
    enter(9, 63)
    enter(1, Self.day)
    bench.context.isMassChange = isHeld
    enter(2, 3, every: 2)
    #expect(bench.endpointKeys.held.keys.contains(pin(2)) == isHeld)
    try restart()
    if isHeld {
      // A quorum of points vouches for it meanwhile.
      bench.context.isMassChange = false
      bench.context.vantages.formUnion(["oslo", "rome"])
      for _ in 0..<4 {
        bench.see([(Self.here, "", .key(2)), ("oslo", "", .key(2)), ("rome", "", .key(2))])
      }
      bench.context.vantages = [Self.here]
    }
    #expect(bench.keys == [1, 2, 9])
    enter(9, 10, every: 20)
    try restart()
    enter(9, 300, every: 20)
    #expect(bench.keys == [1, 2, 9])
    let told = state.alerts["a"]?.filter { $0.pin == pin(2) }.map(\.kind) ?? []
    #expect(told.contains(.keyUndecided) && !told.contains(.keyWithdrawn))
    enter(2, 1)
    #expect(state.alerts["a"]?.contains { $0.kind == .keyUndecided } != true)
  }

  @Test("and was a moment's is withdrawn once a person has spoken for the one that took its place")
  func approvedSince() throws {
    var bench = LedgerBench()
    bench.see(Self.one(1))
    bench.see(Self.one(9), 6)
    bench.see(Self.one(2), 90, every: 60)
    #expect(bench.keys == [1, 2, 9])
    var state = DocumentState()
    state.keysByEndpoint["a"] = bench.endpointKeys
    _ = try state.approve(pin(2), at: "a", .init(who: "ada", at: bench.now, why: ""))
    bench.endpointKeys = try #require(state.keysByEndpoint["a"])
    bench.see(Self.one(2), every: 60)
    #expect(bench.keys == [1, 2])
    #expect(bench.events.contains(.withdrawn(pin(9))))
  }

  @Test(
    "and was a moment's is withdrawn beside any older key if a record does not say which it interrupted"
  )
  func olderProgram() {
    let (begin, rule) = (LedgerBench().now, LedgerBench.rule)
    for (shown, left) in [(1, [1, 2]), (2, [1, 2]), (3, [1, 2, 3, 9])] as [(UInt8, [UInt8])] {
      var endpointKeys = EndpointKeys(
        keys: [
          KnownKey(pin: pin(1), firstSeen: begin - 90_000, lastSeen: begin - 100),
          KnownKey(
            pin: pin(2), firstSeen: begin - 80_000, lastSeen: begin - 100, isUnannounced: true),
          KnownKey(pin: pin(9), firstSeen: begin - 20, lastSeen: begin, isUnannounced: true),
        ], authorities: [pin(100): begin])
      for probe in 1...300 as ClosedRange<Int64> {
        _ = endpointKeys.enter(
          LedgerBench.probe(Self.one(shown)), at: begin + 20 * probe, rule: rule)
      }
      #expect(Set(endpointKeys.keys.map(\.pin)) == Set(left.map { pin($0) }))
    }
  }

  @Test("remembers no more keys that it interrupted than there is room for, the lasting ones first")
  func manyInterrupted() {
    let begin = LedgerBench().now
    let many = (10..<110 as Range<UInt8>).map { key in
      KnownKey(
        pin: pin(key), firstSeen: begin - 500, lastSeen: begin - 10, isUnannounced: true)
    }
    let lasting = KnownKey(
      pin: pin(2), firstSeen: begin - 400, lastSeen: begin - 10, isUnannounced: true, shownFor: 5000
    )
    let interrupted = EndpointKeys(keys: many + [lasting]).standing(at: begin)
    #expect(interrupted.count == KnownKey.mostInterrupted && interrupted.contains(pin(2)))
  }

  @Test("stays whoever goes on with what was stored")
  func restored() throws {
    var bench = LedgerBench()
    bench.see(Self.at(.key(1), .key(2)), 90, every: 60)
    bench.see(Self.at(.key(1), .silent), 90, every: 60)
    var state = DocumentState()
    state.keysByEndpoint["a"] = bench.endpointKeys
    bench.endpointKeys = try #require(
      try DocumentState(decoding: state.encoded, file: "a.json").keysByEndpoint["a"])
    #expect(bench.endpointKeys.keys == state.keysByEndpoint["a"]?.keys)
    bench.see(Self.at(.key(1), .silent), 8 * Self.day, every: 60)
    #expect(bench.keys == [1, 2])
  }

  @Test("keeps its CA known while its address is silent")
  func authority() {
    var bench = LedgerBench()
    bench.endpointKeys = EndpointKeys(
      keys: [], authorities: [pin(100): bench.now, pin(101): bench.now])
    bench.see(Self.at(.key(1), .key(2, under: 101)), 90, every: 60)
    bench.see(Self.at(.key(1), .silent), 8 * Self.day, every: 60)
    bench.see(Self.at(.key(1), .key(3, under: 101)), 3)
    #expect(bench.keys == [1, 2, 3])
  }

  @Test("of an older record stays until every address answers without it")
  func olderRecord() {
    for (answer, keys) in [(LedgerBench.Answer.silent, [1, 2] as Set<UInt8>), (.key(1), [1])] {
      var bench = LedgerBench()
      let now = bench.now
      bench.endpointKeys = EndpointKeys(keys: [
        KnownKey(pin: pin(1), firstSeen: now - 90_000, lastSeen: now),
        KnownKey(pin: pin(2), firstSeen: now - 90_000, lastSeen: now),
      ])
      bench.see(Self.at(.key(1), answer), 8 * Self.day, every: 60)
      #expect(bench.keys == keys)
    }
  }

  @Test("is seen at no more places than are remembered")
  func manyPlaces() {
    var bench = LedgerBench()
    let places = 2 * KnownKey.maximumPlaces
    bench.see((0..<places).map { (LedgerBench.here, "\($0)", .key(1)) })
    #expect(bench.endpointKeys.keys[0].seenAt.count == KnownKey.maximumPlaces)
  }

  @Test(
    "leaves where its name has more addresses than are probed at a time, once each answered without it"
  )
  func manyAddresses() {
    // Also beside a point that saw it and is gone.
    for points in [[], ["paris"]] { manyAddresses(points) }
  }

  @Test("stays where the address that shows it is left out from then on", arguments: [2, 600])
  func leftOutSince(pause: Int64) {
    var bench = LedgerBench(points: [])
    func see(_ rounds: Int, without out: String, every pause: Int64) {
      for _ in 0..<rounds {
        var probe = LedgerBench.probe(
          ["a0", "a1", "a2"].filter { $0 != out }.map {
            (LedgerBench.here, $0, .key($0 == "a2" ? 2 : 1))
          })
        probe.leftOut = [out]
        bench.now += pause
        bench.events += bench.endpointKeys.enter(
          probe, at: bench.now, rule: LedgerBench.rule, context: bench.context)
      }
    }
    see(5, without: "a0", every: 2)
    #expect(bench.keys == [1, 2])
    see(10, without: "a0", every: pause)
    see(100, without: "a2", every: 20)
    see(24 * 8, without: "a2", every: 3600)
    #expect(bench.keys == [1, 2])
  }

  @Test("of a kind that is not asked for any more stays, and that nobody looks is told")
  func unaskedKind() {
    for (kinds, left) in [([], [1, 2]), (["rsa"], [1, 2]), (["ecdsa"], [1]), (nil, [1])]
      as [([String]?, Set<UInt8>)]
    {
      var bench = LedgerBench(points: [])
      func see(_ rounds: Int, _ second: [(String, String, LedgerBench.Answer)], _ kinds: [String]?)
      {
        for _ in 0..<rounds {
          var probe = LedgerBench.probe([(LedgerBench.here, "a", .key(1))] + second)
          for index in probe.observations.indices.dropFirst() {
            probe.observations[index].keyType = "ecdsa"
          }
          probe.kinds = kinds.map(Set.init)
          bench.now += 3600
          bench.events += bench.endpointKeys.enter(
            probe, at: bench.now, rule: LedgerBench.rule, context: bench.context)
        }
      }
      see(5, [(LedgerBench.here, "a", .key(2))], ["ecdsa"])
      see(24 * 8, [], kinds)
      #expect(bench.keys == left, "\(kinds ?? ["all"])")
      #expect(
        bench.events.contains { if case .undecided = $0 { true } else { false } }
          == (left.count == 2))
    }
  }

  private func manyAddresses(_ points: [String]) {
    var bench = LedgerBench(points: points)
    let addresses = (0..<5).map { "a\($0)" }
    func see(_ key: UInt8, _ rounds: Int, silent: String? = nil, every pause: Int64) {
      for round in 0..<rounds {
        let out = addresses[round % 5]
        var probe = LedgerBench.probe(
          addresses.filter { $0 != out }.map {
            (LedgerBench.here, $0, $0 == silent ? .silent : .key(key))
          } + points.map { ($0, "", key == 1 ? .key(1) : .silent) })
        probe.leftOut = [out]
        bench.now += pause
        bench.events += bench.endpointKeys.enter(
          probe, at: bench.now, rule: LedgerBench.rule, context: bench.context)
      }
    }
    see(1, 10, every: 600)
    see(2, 3, every: 2)
    see(2, 24 * 7, silent: "a3", every: 3600)
    #expect(bench.keys == [1, 2])
    see(2, 24 * 8, every: 3600)
    #expect(bench.keys == [2])
  }
}
