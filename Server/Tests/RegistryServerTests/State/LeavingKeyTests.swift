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
      name: "and was a moment's is withdrawn beside a key that took its place, an hour old",
      steps: [
        Stretch([(here, "", .key(1))]), Stretch([(here, "", .key(9))], 6, every: 2),
        Stretch([(here, "", .key(2))], 64),
      ], keys: [1, 2]),
    Scenario(
      name: "and was a moment's stays beside a key that took its place, for less than an hour",
      steps: [
        Stretch([(here, "", .key(1))]), Stretch([(here, "", .key(9))], 6, every: 2),
        Stretch([(here, "", .key(2))], 58),
      ], keys: [1, 2, 9]),
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
