import SslPinningRules
import Testing

@testable import RegistryCore
@testable import RegistryServer

/// When a key leaves that is not seen any more, with several addresses and vantage points.
@Suite("A key that is not seen") struct LeavingKeyTests {
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
    let interrupted = EndpointKeys(keys: many + [lasting]).standing
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
