import SslPinningRules
import Testing

@testable import RegistryCore
@testable import RegistryServer

/// What vantage points settle, and what they do not.
@Suite("Vantage points") struct VoteTests {
  static let here = LedgerBench.here
  static let points = ["fra", "osl", "syd"]

  /// What this server sees, then what each of the points does, in the order of their names.
  static func view(
    _ direct: LedgerBench.Answer, _ others: LedgerBench.Answer...
  ) -> LedgerBench.View {
    [(here, "", direct)] + zip(points, others).map { ($0, "", $1) }
  }

  static func settled(quorum: Int? = nil) -> LedgerBench {
    var bench = LedgerBench(points: points, quorum: quorum)
    bench.see(view(.key(1), .key(1), .key(1), .key(1)), 3, every: 60)
    return bench
  }

  /// What is listed after three probes that show a new key here, and nothing elsewhere, so many seconds after the last others.
  private static func listed(
    after seconds: Int64, unreachedBy points: Set<String> = [], delaying late: Set<String> = []
  ) -> Set<UInt8> {
    var bench = settled()
    // Without a gap in which nobody watches.
    bench.see(view(.key(1), .silent, .silent, .silent), every: seconds / 2)
    bench.now += seconds - seconds / 2
    bench.see(view(.key(2), .silent, .silent, .silent), 3, unreachedBy: points, delaying: late)
    return bench.keys
  }

  @Test("vouch for a new CA within the window, never over days")
  func vouchTogether() {
    let new = LedgerBench.Answer.key(2, under: 101)
    var bench = Self.settled(quorum: 3)
    bench.see(Self.view(new, new, .key(1), .key(1)), 4)
    bench.see(Self.view(.key(1), .key(1), .key(1), .key(1)), 24 * 60, every: 60)
    bench.see(Self.view(.key(1), .key(1), new, new), 4)
    #expect(bench.keys == [1])
    #expect(bench.endpointKeys.held[pin(2)]?.reasons.contains(.newIssuer) == true)
    bench.see(Self.view(new, new, new, new), 2)
    #expect(bench.keys == [1])
    bench.see(Self.view(new, new, new, new))
    #expect(bench.keys == [1, 2])
  }

  @Test(
    "that ever saw a listed key are no word against it: a balancer shows them others; silent ones were no word for it"
  )
  func everSaw() {
    var bench = Self.settled()
    let (old, new) = (LedgerBench.Answer.key(1), LedgerBench.Answer.key(2))
    // No two of the points see it in the probe with which it is listed.
    bench.see(Self.view(new, new, old, old))
    bench.see(Self.view(new, old, new, old), 2)
    #expect(bench.keys == [1, 2])
    bench.see(Self.view(new, old, old, old), 100, every: 20)
    #expect(bench.keys == [1, 2])
    bench = Self.settled()
    bench.see(Self.view(new, .silent, .silent, .silent), 3)
    bench.see(Self.view(new, new, old, old))
    #expect(bench.keys == [1, 2])
    bench.see(Self.view(new, old, old, old), 100, every: 20)
    #expect(bench.keys == [1])
  }

  @Test(
    "that had too many questions are not silent: a quorum of them holds a key, and one of three does not",
    arguments: [0, 1])
  func overasked(settled: Int) {
    var bench = settled > 0 ? Self.settled() : LedgerBench(points: Self.points)
    let view = Self.view(.key(2), .silent, .silent, .silent)
    bench.see(view, 5, overasking: ["fra", "osl"])
    #expect(!bench.keys.contains(2))
    var other = bench
    other.see(view, 3, every: 20)
    #expect(other.keys.contains(2))
    bench.see(Self.view(.key(2), .key(2), .silent, .key(2)), overasking: ["fra", "osl"])
    #expect(bench.keys.contains(2))
    // A listed key is not gone by it.
    bench.see(view, 100, every: 20, overasking: ["fra", "osl", "syd"])
    #expect(bench.keys.contains(2))
    bench = Self.settled()
    bench.see(view, 3, overasking: ["fra"])
    #expect(bench.keys == [1, 2])
  }

  @Test(
    "that are there and do not get to the endpoint are not silent, unless they did not for an hour")
  func unreached() {
    #expect(Self.listed(after: 60, unreachedBy: ["fra", "osl"]) == [1])
    #expect(Self.listed(after: 3500, unreachedBy: ["fra", "osl"]) == [1])
    #expect(Self.listed(after: 3700, unreachedBy: ["fra", "osl"]) == [1, 2])
    #expect(Self.listed(after: 60, unreachedBy: ["fra"]) == [1, 2])
  }

  @Test(
    "that saw other keys themselves stand by it for as long as they are there and do not get to the endpoint"
  )
  func blocked() throws {
    var bench = Self.settled()
    bench.see(Self.view(.key(2), .key(1), .key(1), .key(1)), 4)
    let view = Self.view(.key(2), .silent, .silent, .silent)
    bench.see(view, 100, every: 60, unreachedBy: ["fra", "osl"])
    #expect(bench.keys == [1])
    // Also over a restart, for longer than their last words count.
    bench.endpointKeys = try EndpointKeys(StateReader(bench.endpointKeys.json, "keys"))
    bench.see(view, 200, every: 60, unreachedBy: ["fra", "osl"])
    #expect(bench.keys == [1])
    bench.see(view, 3, every: 60, unreachedBy: ["fra"])
    #expect(bench.keys == [1, 2])
  }

  @Test("are not said to have contradicted a key by this server's word")
  func ownWord() {
    var bench = LedgerBench(points: Self.points)
    let blocked: Set<String> = ["osl", "syd"]
    bench.see(Self.view(.key(1), .key(1), .silent, .silent), 3, unreachedBy: blocked)
    // A rolling deploy: the server of the one point that gets there comes first.
    bench.see(Self.view(.key(1), .key(2), .silent, .silent), unreachedBy: blocked)
    bench.see(Self.view(.key(1), .key(1), .silent, .silent), unreachedBy: blocked)
    bench.see(Self.view(.key(2), .key(2), .silent, .silent), 40, every: 60, unreachedBy: blocked)
    #expect(bench.keys == [1, 2])
  }

  @Test(
    "whose first word against a held key comes later are remembered at once, and by an endpoint that a copy speaks of all are"
  )
  func remembered() {
    var bench = Self.settled()
    let blocked: Set<String> = ["fra", "osl"]
    bench.see(Self.view(.key(2), .silent, .silent, .silent), 4, unreachedBy: blocked)
    let stored = bench.endpointKeys
    #expect(stored.held[pin(2)]?.reasons == [.vantagePoints])
    bench.see(Self.view(.key(2), .key(1), .key(1), .silent))
    #expect(bench.endpointKeys.isWorthStoring(over: stored, at: bench.now, rule: LedgerBench.rule))
    var copied = LedgerBench(points: Self.points)
    copied.endpointKeys = EndpointKeys(
      keys: [KnownKey(pin: pin(1), firstSeen: 3, lastSeen: copied.now)],
      authorities: stored.authorities)
    copied.see(Self.view(.key(2), .silent, .silent, .silent), 4, unreachedBy: blocked)
    #expect(copied.keys == [1])
  }

  @Test(
    "that contradicted a key for an hour end it when they are back, after a minute of silence in which it was listed"
  )
  func contradictedLong() {
    var bench = Self.settled()
    bench.see(Self.view(.key(2), .key(1), .key(1), .key(1)), 70, every: 60)
    bench.see(Self.view(.key(2), .silent, .silent, .silent), 8, every: 20)
    #expect(bench.keys == [1, 2])
    bench.see(Self.view(.key(2), .key(1), .key(1), .key(1)), 60, every: 60)
    #expect(bench.keys == [1])
  }

  @Test("stand by what they saw also after a time in which nobody watched")
  func unwatched() {
    var bench = Self.settled()
    bench.now += 9000
    let view = Self.view(.key(2), .silent, .silent, .silent)
    bench.see(view, 3, unreachedBy: ["fra", "osl"])
    #expect(bench.keys == [1])
    bench.see(view, 70, every: 60, unreachedBy: ["fra", "osl"])
    #expect(bench.keys == [1, 2])
  }

  @Test("that do not get to the endpoint have no word against what a quorum of the others sees")
  func blockedBesideSeeing() {
    var bench = LedgerBench(points: ["fra", "osl", "syd", "tok"])
    func view(_ key: UInt8) -> LedgerBench.View {
      [(Self.here, "", .key(2)), ("fra", "", .key(key)), ("osl", "", .key(key))]
        + ["syd", "tok"].map { ($0, "", .silent) }
    }
    bench.see(
      ["fra", "osl", "syd", "tok"].map { ($0, "", .key(1)) } + [(Self.here, "", .key(1))], 3)
    let blocked: Set<String> = ["syd", "tok"]
    bench.see(view(1), 5, unreachedBy: blocked)
    #expect(bench.keys == [1])
    bench.see(view(2), 3, unreachedBy: blocked)
    #expect(bench.keys == [1, 2])
  }

  @Test(
    "that are there and do not get to the endpoint for ten minutes are told, if fewer than a quorum is left"
  )
  func toldBlocked() {
    func told(_ blocked: Set<String>, _ answers: LedgerBench.Answer..., for seconds: Int64 = 600)
      -> [String]
    {
      var bench = Self.settled()
      let view = Self.view(.key(1), answers[0], answers[1], answers[2])
      bench.see(view, unreachedBy: blocked)
      var state = DocumentState()
      bench.now += seconds - 2
      bench.events = []
      bench.see(view, unreachedBy: blocked)
      let events = bench.events.filter { $0.name == "vantage_blocked" }
      _ = state.noteAlerts(of: events, at: "a", failures: 0, now: bench.now)
      let kinds = state.alerts["a", default: []].map(\.kind.rawValue)
      _ = state.noteAlerts(of: [], at: "a", failures: 0, now: bench.now)
      #expect(state.alerts["a", default: []].isEmpty)
      return kinds
    }
    #expect(told(["fra", "osl"], .silent, .silent, .key(1)) == ["vantage-blocked"])
    #expect(told(["fra", "osl"], .silent, .silent, .key(1), for: 590) == [])
    #expect(told(["fra"], .silent, .key(1), .key(1)) == [])
    #expect(told(["fra"], .silent, .silent, .key(1)) == ["vantage-blocked"])
    // One that never got there has no word to lose.
    #expect(told(["tok"], .silent, .silent, .silent) == [])
    // Each of them is told by its own alert.
    #expect(told([], .silent, .silent, .silent) == [])
  }

  @Test("stand by what they saw however many addresses this server is given meanwhile")
  func manyAddresses() {
    var bench = Self.settled()
    for round in 0..<3 {
      let addresses = (0..<16).map { (Self.here, "\(round).\($0)", LedgerBench.Answer.key(1)) }
      bench.see(
        addresses + ["fra", "osl", "syd"].map { ($0, "", .silent) }, unreachedBy: ["fra", "osl"])
    }
    bench.see(Self.view(.key(2), .silent, .silent, .silent), 5, unreachedBy: ["fra", "osl"])
    #expect(bench.keys == [1])
  }

  @Test("for whose answers this server had no time are not silent, unless they are for ten minutes")
  func delayed() {
    #expect(Self.listed(after: 60, delaying: ["fra", "osl"]) == [1])
    #expect(Self.listed(after: 590, delaying: ["fra", "osl"]) == [1])
    #expect(Self.listed(after: 700, delaying: ["fra", "osl"]) == [1, 2])
    #expect(Self.listed(after: 60, delaying: ["fra"]) == [1, 2])
  }

  @Test("that got no answer to a question for its kind, but had one, are not silent about it")
  func withheld() {
    func listed(_ withheld: Set<String>) -> Set<UInt8> {
      var bench = Self.settled()
      for _ in 0..<3 {
        bench.now += 2
        var probe = LedgerBench.probe(Self.view(.key(1), .key(1), .key(1), .key(1)))
        var asked = LedgerBench.probe(Self.view(.key(2), .silent, .silent, .silent)).observations
        for index in asked.indices { asked[index].keyType = "rsa" }
        probe.observations += asked
        probe.withheld = ["rsa": withheld]
        _ = bench.endpointKeys.enter(
          probe, at: bench.now, rule: LedgerBench.rule, context: bench.context)
      }
      return bench.keys
    }
    #expect(listed([]) == [1, 2])
    #expect(listed(["fra"]) == [1, 2])
    #expect(listed(["fra", "osl"]) == [1])
  }

  @Test(
    "that saw other keys are not taken back by their silence for a minute and three probes, and at once by what they see"
  )
  func echo() {
    var bench = Self.settled()
    let silence = Self.view(.key(2), .silent, .silent, .silent)
    bench.see(Self.view(.key(2), .key(1), .key(1), .key(1)), 4)
    var (other, slow) = (bench, bench)
    bench.see(silence, 20)
    #expect(bench.keys == [1])
    bench.see(silence, 1, every: 20)
    #expect(bench.keys == [1, 2])
    slow.see(silence, 2, every: 60)
    #expect(slow.keys == [1])
    slow.see(silence)
    #expect(slow.keys == [1, 2])
    other.see(Self.view(.key(2), .key(2), .key(2), .silent))
    #expect(other.keys == [1, 2])
  }

  @Test(
    "that saw other keys in the first of its probes, or between them, are not silent in the last")
  func earlyWord() {
    let silence = Self.view(.key(2), .silent, .silent, .silent)
    var bench = Self.settled()
    bench.see(Self.view(.key(2), .key(1), .key(1), .key(1)))
    bench.see(silence, 6)
    #expect(bench.keys == [1])
    // Silence is counted in probes that show it: another key in between has the points speak.
    for _ in 0..<10 {
      bench.see(Self.view(.key(3), .key(1), .key(1), .key(1)), 30)
      bench.see(silence, 2)
      #expect(bench.keys == [1])
    }
    // With the points away, both keys behind a balancer are listed.
    for _ in 0..<40 {
      bench.see(Self.view(.key(3), .silent, .silent, .silent))
      bench.see(silence)
    }
    #expect(bench.keys == [1, 2, 3])
  }

  @Test("that held a key hold it in their silence after a restart, too")
  func heldOver() throws {
    var bench = Self.settled()
    bench.see(Self.view(.key(2), .key(1), .key(1), .key(1)), 4)
    bench.endpointKeys = try EndpointKeys(StateReader(bench.endpointKeys.json, "keys"))
    bench.see(Self.view(.key(2), .silent, .silent, .silent), 2, every: 60)
    #expect(bench.keys == [1])
    bench.see(Self.view(.key(2), .silent, .silent, .silent))
    #expect(bench.keys == [1, 2])
  }

  @Test("that are no longer configured vouch for nothing")
  func leftPoint() {
    let new = LedgerBench.Answer.key(2, under: 101)
    var bench = Self.settled(quorum: 2)
    bench.see(Self.view(new, new, .silent, .silent), 3)
    bench.context.vantages.remove("fra")
    bench.see(Self.view(new, new, new, .silent), 3)
    #expect(bench.keys == [1])
    bench.see(Self.view(new, .silent, new, new), 3)
    #expect(bench.keys == [1, 2])
  }

  /// A clock that was set back has the newest time stand still until it has caught up.
  @Test(
    "vouch for a new CA in one probe: whoever walks from one to the next is no quorum, also while time stands still",
    arguments: [2, 0] as [Int64])
  func walking(pause: Int64) {
    let new = LedgerBench.Answer.key(2, under: 101)
    var bench = Self.settled(quorum: 2)
    for view in [
      Self.view(.key(1), new, .silent, .silent), Self.view(.key(1), .silent, new, .silent),
      Self.view(.key(1), .silent, .silent, new), Self.view(new, .silent, .silent, .silent),
    ] { bench.see(view, 3, every: pause) }
    #expect(bench.keys == [1])
    #expect(bench.endpointKeys.held[pin(2)]?.reasons.contains(.newIssuer) == true)
    bench.see(Self.view(new, new, new, .silent))
    #expect(bench.keys == [1, 2])
  }

  @Test("that begin to see a new CA are asked again at once, and no more often than settles it")
  func gaining() {
    let new = LedgerBench.Answer.key(2, under: 101)
    var bench = Self.settled()
    bench.see(Self.view(new, .key(1), .key(1), .key(1)), 4)
    #expect(!bench.endpointKeys.isWaiting)
    bench.see(Self.view(new, new, .key(1), .key(1)))
    #expect(bench.endpointKeys.isWaiting)
    bench.see(Self.view(.key(1), .key(1), .key(1), .key(1)))
    #expect(!bench.endpointKeys.isWaiting)
    bench.see(Self.view(new, new, .key(1), .key(1)), 2)
    #expect(!bench.endpointKeys.isWaiting)
    bench.see(Self.view(new, new, new, .silent), 2)
    #expect(bench.endpointKeys.isWaiting)
    bench.see(Self.view(new, new, new, .silent))
    #expect(bench.keys == [1, 2])
  }

  @Test(
    "are asked again at once, too, for a person who must decide in any case, until its CA is in no question"
  )
  func manual() {
    let new = LedgerBench.Answer.key(2, under: 101)
    var bench = Self.settled()
    bench.context.approval = .manual
    func held() -> CandidateKey? { bench.endpointKeys.held[pin(2)] }
    bench.see(Self.view(new, new, new, .silent), 2)
    #expect(held() == nil && bench.endpointKeys.isWaiting)
    bench.see(Self.view(new, .silent, .silent, .silent))
    #expect(held()?.reasons == [.manual, .newIssuer] && held()?.assent == nil)
    #expect(held()?.isGainingVoices == false && !bench.endpointKeys.isWaiting)
    bench.see(Self.view(new, .silent, new, new))
    #expect(held()?.reasons == [.manual, .newIssuer])
    #expect(held()?.isGainingVoices == true && bench.endpointKeys.isWaiting)
    bench.see(Self.view(new, .silent, new, new), 2)
    #expect(held()?.reasons == [.manual] && !bench.endpointKeys.isWaiting)
    #expect(held()?.assent == .vouched(by: [Self.here, "osl", "syd"]))
  }

  @Test(
    "are not named where the CA of a key that waits is known, or the configuration names it",
    arguments: [(100, [], .known), (101, [101], .named), (100, [100], .named), (101, [], nil)]
      as [(UInt8, Set<UInt8>, CandidateKey.Assent?)])
  func assent(authority: UInt8, named: Set<UInt8>, expected: CandidateKey.Assent?) {
    var bench = Self.settled()
    bench.context.approval = .manual
    bench.context.issuers = Set(named.map { pin($0) })
    bench.see(Self.view(.key(2, under: authority), .silent, .silent, .silent), 3)
    #expect(bench.endpointKeys.held[pin(2)]?.assent == expected)
  }

  @Test(
    "vouch for a new CA themselves: whoever stands before this server speaks for it, and silences the others"
  )
  func silenced() {
    let new = LedgerBench.Answer.key(2, under: 101)
    var bench = Self.settled()
    bench.see(Self.view(new, new, .key(1), .key(1)), 4)
    bench.see(Self.view(new, new, .silent, .silent), 20, every: 20)
    #expect(bench.keys == [1])
    #expect(bench.endpointKeys.held[pin(2)]?.reasons == [.newIssuer])
    bench.see(Self.view(new, new, new, .silent), 3)
    #expect(bench.keys == [1, 2])
  }

  @Test(
    "cannot have a key published that this server does not see, if they are fewer than a quorum")
  func oneLyingPoint() {
    var bench = Self.settled()
    bench.see(Self.view(.key(1), .key(9), .silent, .silent), 12)
    #expect(bench.keys == [1])
    #expect(bench.endpointKeys.held[pin(9)]?.reasons == [.vantagePoints])
    bench.see(Self.view(.key(1), .key(9), .key(1), .key(1)), 60, every: 60)
    #expect(bench.keys == [1])
    // Two of the three: fewer than a quorum are left that see other keys alone.
    bench.see(Self.view(.key(1), .key(9), .key(9), .silent))
    #expect(bench.keys == [1, 9])
  }

  @Test("hold nothing that this server sees while they are silent")
  func silentPoints() {
    var bench = Self.settled()
    bench.see(Self.view(.key(2), .key(1), .silent, .silent), 3)
    #expect(bench.keys == [1, 2])
  }

  @Test(
    "stand by what they saw for longer at an endpoint that is probed more rarely, and from a restart on"
  )
  func longWord() {
    var bench = Self.settled()
    var restarted = bench
    let view = Self.view(.key(2), .silent, .silent, .silent)
    bench.now += 4200
    let rule = LedgerBench.rule.spanning(4_200_000)
    for _ in 0..<3 {
      bench.now += 2
      var probe = LedgerBench.probe(view)
      probe.unreached = ["fra", "osl"]
      _ = bench.endpointKeys.enter(probe, at: bench.now, rule: rule, context: bench.context)
    }
    #expect(bench.keys == [1])
    restarted.endpointKeys = EndpointKeys(
      keys: restarted.endpointKeys.keys, authorities: restarted.endpointKeys.authorities)
    // Days later.
    restarted.now += 200_000
    restarted.see(view, 3, unreachedBy: ["fra", "osl"])
    #expect(restarted.keys == [1])
    restarted.see(view, 2, every: 1700, unreachedBy: ["fra", "osl"])
    #expect(restarted.keys == [1])
    restarted.see(view, 3, every: 300, unreachedBy: ["fra", "osl"])
    #expect(restarted.keys == [1, 2])
  }

  @Test(
    "that were silent when a key was published are asked when they answer",
    arguments: [true, false])
  func askedAgain(_ isSeenHere: Bool) {
    var bench = Self.settled()
    func view(_ others: LedgerBench.Answer) -> LedgerBench.View {
      isSeenHere
        ? Self.view(.key(9), others, others, others)
        : Self.view(others, .key(9), others, others)
    }
    bench.see(view(.silent), 3)
    #expect(bench.keys == [1, 9])
    bench.see(view(.key(1)), 10, every: 20)
    #expect(bench.keys == [1, 9])
    bench.see(view(.key(1)), 60, every: 20)
    #expect(bench.keys == [1])
    #expect(bench.events.contains(.withdrawn(pin(9))))
    #expect(bench.endpointKeys.held[pin(9)]?.reasons == [.vantagePoints])
  }

  @Test("that see another key do not withdraw one that was shown for an hour")
  func hourOld() {
    var bench = Self.settled()
    bench.see(Self.view(.key(2), .silent, .silent, .silent), 64, every: 60)
    bench.see(Self.view(.key(2), .key(1), .key(1), .key(1)), 600, every: 60)
    #expect(bench.keys == [1, 2])
  }
}
