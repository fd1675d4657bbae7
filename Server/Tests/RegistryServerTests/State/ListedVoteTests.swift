import SslPinningRules
import Testing

@testable import RegistryCore
@testable import RegistryServer

/// What vantage points settle about keys that are listed.
extension VoteTests {
  @Test(
    "that were silent when a key was listed end it once they see others, also if whoever shows it hides it and is silent here"
  )
  func hidden() {
    let (old, new) = (LedgerBench.Answer.key(1), LedgerBench.Answer.key(2))
    func listed(_ answers: LedgerBench.Answer..., shownFor minutes: Int = 0) -> Set<UInt8> {
      var bench = Self.settled()
      bench.see(Self.view(new, .silent, .silent, .silent), 3 + minutes, every: 60)
      let view = Self.view(.silent, answers[0], answers[1], answers[2])
      bench.see(view, 100, every: 20)
      return bench.keys
    }
    #expect(listed(old, old, old) == [1])
    #expect(listed(old, old, .silent) == [1])
    // No quorum of them, or it was there for an hour: nobody knows what this server would see.
    #expect(listed(old, .silent, .silent) == [1, 2])
    #expect(listed(old, old, old, shownFor: 60) == [1, 2])
  }

  @Test(
    "have no word against a key of a kind that they are not told of, where its places are silent")
  func hiddenKind() {
    func listed(
      _ answer: LedgerBench.Answer, refusing: Set<String> = [], withheld: Set<String> = [],
      isShown: Bool = false
    ) -> Set<UInt8> {
      var bench = Self.settled()
      func probe(_ own: LedgerBench.Answer, _ others: LedgerBench.Answer, key: LedgerBench.Answer)
        -> ProbeResult
      {
        var probe = LedgerBench.probe(Self.view(key, .key(1), .key(1), .key(1)))
        var asked = LedgerBench.probe(Self.view(own, others, others, others)).observations
        for index in asked.indices { asked[index].keyType = "rsa" }
        probe.observations += asked
        probe.lacking = ["rsa": refusing]
        return probe
      }
      for (result, times, pause) in [
        (probe(.key(2), .silent, key: .key(1)), 3, 2),
        isShown
          ? (probe(.key(2), answer, key: .key(1)), 100, 20)
          : (probe(.silent, answer, key: .silent), 100, 20),
      ] as [(ProbeResult, Int, Int64)] {
        var result = result
        if times == 100 { result.withheld = ["rsa": withheld] }
        for _ in 0..<times {
          bench.now += pause
          _ = bench.endpointKeys.enter(
            result, at: bench.now, rule: LedgerBench.rule, context: bench.context)
        }
      }
      return bench.keys
    }
    #expect(listed(.silent) == [1, 2])
    #expect(listed(.key(3)) == [1, 3])
    // The endpoint has none of that kind, and says so; one point is no quorum.
    #expect(listed(.silent, refusing: Set(Self.points)) == [1])
    #expect(listed(.silent, refusing: Set(Self.points.prefix(1))) == [1, 2])
    // Their questions hang though they were answered before, as by a limit of the endpoint's: it is in use.
    for isShown in [false, true] {
      #expect(listed(.silent, withheld: Set(Self.points), isShown: isShown) == [1, 2])
    }
  }

  @Test(
    "that saw a key of a kind, and are asked for that in vain elsewhere, leave open whether it is gone"
  )
  func askedInVain() {
    func probe(_ address: String, _ asked: LedgerBench.View) -> ProbeResult {
      let first: LedgerBench.View = Self.points.map { ($0, address, .key(1)) }
      var probe = LedgerBench.probe([(Self.here, "", .key(1))])
      probe.observations += LedgerBench.probe(first).observations
      var kind = LedgerBench.probe(asked).observations
      for index in kind.indices { kind[index].keyType = "rsa" }
      probe.observations += kind
      return probe
    }
    func listed(after later: LedgerBench.View) -> Set<UInt8> {
      var bench = Self.settled()
      let shown: LedgerBench.View = ([Self.here] + Self.points).map { ($0, "a", .key(2)) }
      for (result, times, pause) in [
        (probe("a", shown), 3, 2), (probe("b", later), 40, 20),
      ] as [(ProbeResult, Int, Int64)] {
        for _ in 0..<times {
          bench.now += pause
          _ = bench.endpointKeys.enter(
            result, at: bench.now, rule: LedgerBench.rule, context: bench.context)
        }
      }
      return bench.keys
    }
    let silence: LedgerBench.View = Self.points.map { ($0, "b", .silent) }
    #expect(listed(after: silence) == [1, 2])
    // They are refused the kind: the endpoint has none of it.
    #expect(listed(after: []) == [1])
  }

  @Test("that saw others are not taken back by one silent probe, also of a key that is listed")
  func listedEcho() {
    let (old, new) = (LedgerBench.Answer.key(1), LedgerBench.Answer.key(2))
    func listed(silentProbes: Int, every pause: Int64) -> Set<UInt8> {
      var bench = Self.settled()
      bench.see(Self.view(new, .silent, .silent, .silent), 3)
      for _ in 0..<4 {
        bench.see(Self.view(new, old, old, old), 20, every: 20)
        bench.see(Self.view(new, .silent, .silent, .silent), silentProbes, every: pause)
      }
      return bench.keys
    }
    #expect(listed(silentProbes: 1, every: 20) == [1])
    #expect(listed(silentProbes: 4, every: 2) == [1])
    // They are away, and whoever is shown here is listed as before.
    #expect(listed(silentProbes: 4, every: 40) == [1, 2])
    // A quorum of them sees it.
    var bench = Self.settled()
    bench.see(Self.view(new, .silent, .silent, .silent), 3)
    bench.see(Self.view(new, old, old, old), 20, every: 20)
    bench.see(Self.view(new, new, new, old))
    #expect(bench.endpointKeys.keys.last?.missedProbes == 0)
  }
}
