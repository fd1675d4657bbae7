import SslPinningRules
import Testing

@testable import RegistryCore
@testable import RegistryServer

@Suite("What apps ask for beside a key") struct HostTermsTests {
  private static let now: Int64 = 1_780_000_000
  private static let request = DocumentState.Request(who: "ada", at: now, why: "because")

  private static func terms(
    _ match: HostTerms.Match = .all, _ cas: UInt8..., enforced: Bool = false
  ) -> HostTerms {
    HostTerms(
      ca: NamedIssuers(pins: Set(cas.map { pin($0) })), match: match,
      enforcement: enforced ? .on : .app)
  }

  private static func endpoint(
    _ fqdn: String, _ patterns: [String], _ terms: HostTerms = .standard
  ) throws -> WatchedEndpoint {
    WatchedEndpoint(
      fqdn: try HostName(fqdn), patterns: try patterns.map { try HostPattern($0) }, terms: terms)
  }

  /// A state in which an endpoint shows `pin(1)` under `pin(100)`.
  private static func state(_ endpoints: WatchedEndpoint...) -> DocumentState {
    var state = DocumentState()
    for endpoint in endpoints {
      var bench = LedgerBench()
      bench.now = now - 60
      bench.see([(LedgerBench.here, "a", .key(1))])
      state.keysByEndpoint[endpoint.id] = bench.endpointKeys
    }
    return state
  }

  @Test(
    "stand in a statement once for each pattern, the stricter of two, and for no host without a key"
  )
  func settings() throws {
    let (a, both) = (try HostPattern("a.test"), try HostPattern("both.test"))
    let endpoints = [
      try Self.endpoint("a.test", ["a.test", "both.test"], Self.terms(.any, 101, 100)),
      try Self.endpoint("b.test", ["both.test", "b.test"], Self.terms(enforced: true)),
      try Self.endpoint("c.test", ["c.test"], Self.terms(.any, 102)),
    ]
    let listed = Set([a, both, try HostPattern("b.test")])
    #expect(
      HostTerms.settings(of: endpoints, listed: listed) == [
        HostSettings(a, ca: [pin(100), pin(101)], match: .any),
        HostSettings(both, ca: [pin(100), pin(101)], enforces: true),
        HostSettings(try HostPattern("b.test"), enforces: true),
      ])
    #expect(
      HostTerms.settings(of: [try Self.endpoint("a.test", ["a.test"])], listed: listed).isEmpty)
  }

  @Test(
    "of two endpoints for one host must let the same servers in",
    arguments: [
      ("b.test", terms(.any, 100), false), ("b.test", .standard, false),
      ("a.test", .standard, true), ("*.test", terms(.all, 100), true),
      ("**.test", terms(.any, 100, 101), true), ("*.test", terms(.any, 100, enforced: true), false),
    ] as [(String, HostTerms, Bool)])
  func conflicts(_ pattern: String, _ terms: HostTerms, _ isConflict: Bool) throws {
    let one = try Self.endpoint("one.test", ["a.test"], Self.terms(.any, 100))
    let other = try Self.endpoint("other.test", [pattern], terms)
    for list in [[one, other], [other, one]] {
      #expect((HostTerms.conflict(among: list) != nil) == isConflict)
      #expect((HostTerms.conflict(among: list, with: other.id) != nil) == isConflict)
      #expect(HostTerms.conflict(among: list, with: "third.test:443") == nil)
    }
  }

  @Test("are not set to a CA that no server shows, but by force, and survive a restart")
  func locksOut() throws {
    let endpoint = try Self.endpoint("a.test", ["a.test"])
    var state = Self.state(endpoint)
    func set(_ terms: HostTerms, force: Bool = false) throws(AdministrationError) -> [HistoryEntry]
    {
      try state.setTerms(
        terms, of: endpoint.id, configured: [endpoint], force: force, Self.request)
    }
    #expect(throws: AdministrationError.lacksCA(["a.test"])) { try set(Self.terms(.all, 101)) }
    #expect(state.overrides.isEmpty)
    let entries = try set(Self.terms(.all, 100, 101, enforced: true))
    #expect(entries.map(\.event) == ["terms_changed"])
    #expect(entries.first?.why.hasPrefix("match all, ca ") == true)
    #expect(entries.first?.why.hasSuffix("enforce on: because") == true)
    #expect(try set(Self.terms(.all, 100, 101, enforced: true)).isEmpty)
    let read = try DocumentState(decoding: state.encoded, file: "a.json")
    #expect(
      read.endpoints(configured: [endpoint]).map(\.terms) == [
        Self.terms(.all, 100, 101, enforced: true)
      ])
    // With one enough, no path can be missing anything.
    _ = try set(Self.terms(.any, 101))
    _ = try set(Self.terms(.all, 101), force: true)
    // A denied CA is none.
    _ = try set(.standard)
    _ = try state.deny(pin(100), configured: [endpoint], force: true, Self.request)
    #expect(throws: AdministrationError.lacksCA(["a.test"])) { try set(Self.terms(.all, 100)) }
  }

  @Test("are not changed while a held key is shown that a CA alone lets in, but by force")
  func letsInByCA() throws {
    let endpoint = try Self.endpoint("a.test", ["a.test"], Self.terms(.any, 101))
    for (authority, isShown) in [(101, true), (101, false), (102, true)] as [(UInt8, Bool)] {
      var bench = LedgerBench()
      bench.now = Self.now - 60
      bench.see([(LedgerBench.here, "a", .key(1))])
      bench.see([(LedgerBench.here, "a", .key(2, under: authority))], 3)
      if !isShown { bench.see([(LedgerBench.here, "a", .key(1))], 4) }
      var state = DocumentState()
      state.keysByEndpoint[endpoint.id] = bench.endpointKeys
      func set(_ terms: HostTerms, force: Bool = false) throws {
        _ = try state.setTerms(
          terms, of: endpoint.id, configured: [endpoint], force: force, Self.request)
      }
      if authority == 101, isShown {
        let refused = AdministrationError.leavesWithoutPin(["a.test"])
        #expect(throws: refused) { try set(.standard) }
        try set(Self.terms(.any, 101, 102))
        #expect(throws: refused) { try set(Self.terms(.any, 102)) }
      }
      try set(.standard, force: authority == 101 && isShown)
    }
  }

  @Test("of an endpoint that was added are kept with it")
  func added() throws {
    var state = DocumentState()
    let endpoint = try Self.endpoint("a.test", ["a.test"], Self.terms(.any, 100, 101))
    _ = try state.add(endpoint, configured: [], Self.request)
    let read = try DocumentState(decoding: state.encoded, file: "a.json")
    #expect(read.endpoints(configured: []) == [endpoint])
  }

  @Test("are completed by those in force when they are set; any needs a CA all the same")
  func completed() throws {
    let endpoint = try Self.endpoint("a.test", ["a.test"])
    var state = Self.state(endpoint)
    func set(_ change: HostTerms.Change) throws(AdministrationError) -> HostTerms? {
      _ = try state.setTerms(
        change, of: endpoint.id, configured: [endpoint], force: false, Self.request)
      return state.endpoints(configured: [endpoint]).first?.terms
    }
    #expect(throws: AdministrationError.namesNoCA) { try set(.init(match: .any)) }
    #expect(state.overrides.isEmpty)
    #expect(try set(.init(ca: [pin(100)])) == Self.terms(.all, 100))
    #expect(try set(.init(match: .any)) == Self.terms(.any, 100))
    #expect(try set(.init(enforcement: .on)) == Self.terms(.any, 100, enforced: true))
    #expect(throws: AdministrationError.namesNoCA) { try set(.init(ca: [])) }
    #expect(try set(.init(ca: [], match: .all)) == Self.terms(.all, enforced: true))
  }

  @Test("that a person set go along with the hosts, unless the configuration has others for them")
  func moved() throws {
    for (configured, expected) in [
      (HostTerms.standard, Self.terms(.all, 100)), (Self.terms(.any, 100), Self.terms(.any, 100)),
    ] {
      let before = try Self.endpoint("a.test", ["a.test"])
      var state = Self.state(before)
      _ = try state.setTerms(
        Self.terms(.all, 100), of: before.id, configured: [before], force: false, Self.request)
      state.follow([before])
      var after = before
      after.port = 8443
      after.terms = configured
      state.follow(state.endpoints(configured: [after]))
      #expect(state.endpoints(configured: [after]).map(\.terms) == [expected])
    }
  }

  @Test("stay with their host where another one shows the same key")
  func shared() throws {
    let (left, other) = (
      try Self.endpoint("a.test", ["a.test"]), try Self.endpoint("c.test", ["c.test"])
    )
    var state = Self.state(left, other)
    _ = try state.setTerms(
      Self.terms(.any, 100), of: left.id, configured: [left, other], force: false, Self.request)
    state.follow([left, other])
    state.follow(state.endpoints(configured: [other]))
    #expect(state.endpoints(configured: [other]).map(\.terms) == [.standard])
  }

  @Test("are those of its host wherever it goes, and of no other one that shows the same key")
  func wherever() throws {
    let (a, c) = (
      try Self.endpoint("a.test", ["a.test"]), try Self.endpoint("c.test", ["c.test"])
    )
    let pair = try Self.endpoint("a.test", ["a.test", "b.test"])
    func at(_ endpoint: WatchedEndpoint, _ port: UInt16) -> WatchedEndpoint {
      var moved = endpoint
      moved.port = port
      return moved
    }
    let (any, none) = (Self.terms(.any, 100), HostTerms.standard)
    for (before, after, expected) in [
      // All of them move at once; one of them alone; one gets another name.
      ([a, c], [at(a, 8443), at(c, 8443)], [any, none]),
      ([a, c], [a, at(c, 8443)], [any, none]),
      ([a, c], [try Self.endpoint("x.test", ["a.test"]), c], [any, none]),
      // One of two hosts leaves an endpoint that stays; another endpoint speaks for the same host.
      ([pair, c], [a, try Self.endpoint("b.test", ["b.test"]), c], [any, any, none]),
      ([a, c], [a, at(a, 444), c], [any, any, none]),
    ] {
      var state = DocumentState()
      for endpoint in before {
        state.keysByEndpoint[endpoint.id] = Self.state(endpoint).keysByEndpoint[endpoint.id]
      }
      _ = try state.setTerms(
        any, of: before[0].id, configured: before, force: false, Self.request)
      state.follow(before)
      state.follow(state.endpoints(configured: after))
      #expect(state.endpoints(configured: after).map(\.terms) == expected)
    }
  }

  @Test(
    "come to no host that they were not set for: the edit is told, unless the configuration says what it means"
  )
  func spread() throws {
    func endpoint(_ fqdn: String, _ hosts: String..., port: UInt16 = 443) throws -> WatchedEndpoint
    {
      var endpoint = try Self.endpoint(fqdn, hosts)
      endpoint.port = port
      return endpoint
    }
    let (n, o) = (try endpoint("n.test", "n.test"), try endpoint("o.test", "o.test"))
    let w = try endpoint("w.test", "*.w.test")
    let any = Self.terms(.any, 100)
    var meant = try endpoint("o.test", "o.test", "n.test")
    meant.terms = Self.terms(.any, 100, 101)
    var wider = try endpoint("n.test", "n.test", "new.test")
    wider.terms = any
    for (asking, after, expected, isTold) in [
      // The host joins another one, or one that nobody knew; the endpoint gets one more host while it moves.
      (n, [try endpoint("o.test", "o.test", "n.test")], [.standard], true),
      (n, [try endpoint("p.test", "n.test", "new.test"), o], [.standard, .standard], true),
      (
        n, [try endpoint("n.test", "n.test", "new.test", port: 444), o], [.standard, .standard],
        true
      ),
      // Another endpoint speaks for it as well: clients would ask for a key and the CA.
      (n, [n, try endpoint("o.test", "o.test", "n.test")], [any, .standard], true),
      // It joins one for which others were set.
      (o, [try endpoint("o.test", "o.test", "n.test")], [any], true),
      // Whoever writes others has to say first that they are meant; alone, the host keeps its own.
      (n, [meant], [meant.terms], true),
      (n, [try endpoint("p.test", "n.test"), o], [any, .standard], false),
      (n, [n, o, try endpoint("new.test", "new.test")], [any, .standard, .standard], false),
      // The endpoint gets a host that nobody listed: unseen, or with the same terms in the configuration.
      (n, [try endpoint("n.test", "n.test", "new.test"), o], [any, .standard], true),
      (n, [wider, o], [any, .standard], false),
      // A host below a wildcard joins one for which others were set; or the wildcard's were set, and it gets its own endpoint.
      (
        o, [try endpoint("n.test", "n.test"), try endpoint("o.test", "o.test", "a.w.test"), w],
        [.standard, any, .standard], true
      ),
      (
        w, [n, o, w, try endpoint("a.w.test", "a.w.test")], [.standard, .standard, any, .standard],
        true
      ),
      (n, [o], [.standard], false),
    ] as [(WatchedEndpoint, [WatchedEndpoint], [HostTerms], Bool)] {
      var state = Self.state(n, o, w)
      _ = try state.setTerms(
        any, of: asking.id, configured: [n, o, w], force: false, Self.request)
      state.follow(state.endpoints(configured: [n, o, w]))
      #expect(state.termsLost(configuring: after).isEmpty != isTold)
      state.follow(state.endpoints(configured: after))
      #expect(state.endpoints(configured: after).map(\.terms) == expected)
      #expect(state.termsLost(configuring: after).isEmpty)
    }
  }

  @Test(
    "are told as lost to terms of the configuration, also at another port, until people ask for these"
  )
  func lostToOthers() throws {
    let n = try Self.endpoint("n.test", ["n.test"])
    var o = try Self.endpoint("o.test", ["o.test"])
    o.terms = Self.terms(.any, 101)
    let configured = [n, o]
    var state = Self.state(n, o)
    _ = try state.setTerms(
      Self.terms(.all, 100), of: n.id, configured: configured, force: false, Self.request)
    state.follow(state.endpoints(configured: configured))
    o.patterns += n.patterns
    for port in [443, 444] as [UInt16] {
      o.port = port
      #expect(state.termsLost(configuring: [o]).count == 1)
    }
    _ = try state.setTerms(o.terms, of: n.id, configured: configured, force: true, Self.request)
    state.follow(state.endpoints(configured: configured))
    #expect(state.termsLost(configuring: [o]).isEmpty)
  }

  @Test(
    "come by a person's addition only if they are those of each of its hosts",
    arguments: [false, true])
  func addedBeside(isOrphan: Bool) throws {
    let (n, o) = (
      try Self.endpoint("n.test", ["n.test"]), try Self.endpoint("o.test", ["o.test"])
    )
    let lb = try Self.endpoint("lb.test", ["n.test", "o.test"])
    let asked = Self.terms(.all, 100)
    var state = Self.state(n, o)
    _ = try state.setTerms(asked, of: n.id, configured: [n, o], force: false, Self.request)
    state.follow(state.endpoints(configured: [n, o]))
    let left = isOrphan ? [n] : [n, o]
    state.follow(state.endpoints(configured: left))
    let before = state
    #expect(throws: AdministrationError.termsDiffer(n.id, lb.id)) {
      try state.add(lb, configured: left, Self.request)
    }
    #expect(throws: AdministrationError.termsDiffer(n.id, lb.id)) {
      try state.add(
        Self.endpoint("lb.test", ["n.test", "new.test"]), configured: left, Self.request)
    }
    #expect(state == before)
    _ = try state.add(
      Self.endpoint("lb.test", ["n.test"]), configured: left, Self.request)
    #expect(state.endpoints(configured: left).last?.terms == asked)
  }

  @Test("are those of the others when an endpoint for their host is taken out and comes back")
  func comesBack() throws {
    let one = try Self.endpoint("a.test", ["a.test"])
    var other = one
    other.port = 444
    var state = Self.state(one, other)
    state.follow([one, other])
    _ = try state.remove(other.id, configured: [one, other], Self.request)
    _ = try state.setTerms(
      Self.terms(.any, 100), of: one.id, configured: [one, other], force: false, Self.request)
    _ = try state.add(other, configured: [one, other], Self.request)
    #expect(
      state.endpoints(configured: [one, other]).map(\.terms)
        == [Self.terms(.any, 100), Self.terms(.any, 100)])
  }

  @Test(
    "count on where an endpoint left the configuration and a person adds it: so does their approval"
  )
  func addedAgain() throws {
    let (one, other) = (
      try Self.endpoint("a.test", ["a.test"]), try Self.endpoint("b.test", ["b.test"])
    )
    var state = Self.state(one, other)
    state.follow([one, other])
    let asked = Self.terms(.all, 100)
    _ = try state.setTerms(
      asked, of: one.id, configured: [one, other], force: false, Self.request)
    _ = state.change(one.id, interval: 9_000, approval: .manual, isPaused: true, Self.request)
    state.follow([other])
    var (again, otherwise) = (state, one)
    otherwise.approval = .automatic
    _ = try again.add(otherwise, configured: [other], Self.request)
    #expect(
      again.endpoints(configured: [other]).first { $0.id == one.id }?.approval == .automatic)
    _ = try state.add(one, configured: [other], Self.request)
    let added = state.endpoints(configured: [other]).first { $0.id == one.id }
    #expect(added?.terms == asked && added?.approval == .manual && added?.interval == 9_000)
    #expect(!state.isPaused(one.id))
    _ = try state.remove(one.id, configured: [other], Self.request)
    _ = try state.add(one, configured: [other], Self.request)
    #expect(state.endpoints(configured: [other]).first { $0.id == one.id }?.approval == nil)
    #expect(state.endpoints(configured: [other]).map(\.terms) == [.standard, .standard])
  }

  @Test("that a configured endpoint brings back, and that differ from the others', keep it out")
  func comesBackOtherwise() throws {
    let one = try Self.endpoint("a.test", ["a.test"])
    var other = one
    other.port = 444
    other.terms = Self.terms(.any, 101)
    var state = Self.state(one, other)
    state.follow([one, other])
    _ = try state.remove(other.id, configured: [one, other], Self.request)
    let before = state
    #expect(throws: AdministrationError.termsDiffer(other.id, one.id)) {
      try state.add(other, configured: [one, other], Self.request)
    }
    #expect(state == before)
    _ = try state.setTerms(
      other.terms, of: one.id, configured: [one, other], force: false, Self.request)
    _ = try state.add(other, configured: [one, other], Self.request)
    #expect(
      state.endpoints(configured: [one, other]).map(\.terms) == [other.terms, other.terms])
  }

  @Test("of hosts keep out a wildcard over them that a person adds: no host's CA is that of all")
  func widened() throws {
    let (a, b) = (
      try Self.endpoint("a.x.test", ["a.x.test"], Self.terms(.any, 100)),
      try Self.endpoint("b.x.test", ["b.x.test"], Self.terms(.any, 101))
    )
    let wide = try Self.endpoint("gate.x.test", ["*.x.test"])
    var state = Self.state(a, b)
    let before = state
    #expect(throws: AdministrationError.termsDiffer(a.id, wide.id)) {
      try state.add(wide, configured: [a, b], Self.request)
    }
    #expect(state == before)
    let both = Self.terms(.any, 100, 101)
    for (terms, isRefused) in [(both, true), (HostTerms.standard, false)] {
      for one in [a, b] {
        _ = try state.setTerms(terms, of: one.id, configured: [a, b], force: true, Self.request)
      }
      let added = Result { try state.add(wide, configured: [a, b], Self.request) }
      #expect(((try? added.get()) == nil) == isRefused)
    }
  }

  @Test("are inherited also while another change is being stored")
  func whileWriting() throws {
    let id = "b.test:443"
    let base = DocumentState()
    var own = base
    own.overrides[id] = .init(terms: Self.terms(.any, 100))
    #expect(own.uniting(base, base: base).overrides[id]?.terms == Self.terms(.any, 100))
    // What somebody decided about it meanwhile counts.
    var decided = base
    decided.overrides[id] = .init(terms: .standard)
    #expect(own.uniting(decided, base: base).overrides[id]?.terms == .standard)
  }

  @Test("in effect are the stricter of all that speak for a host")
  func inEffect() throws {
    var (one, other) = (
      try Self.endpoint("a.test", ["a.test"]), try Self.endpoint("b.test", ["*.test"])
    )
    let apart = try Self.endpoint("c.example", ["c.example"])
    one.terms = Self.terms(.any, 100)
    #expect(HostTerms.inEffect(among: [one, other, apart])[other.id]?.match == .all)
    #expect([one, other, apart].vouchingTerms.isEmpty)
    #expect([one, apart].vouchingTerms == [one.id: one.terms])
    other.terms = one.terms
    #expect([one, other, apart].vouchingTerms == [one.id: one.terms, other.id: one.terms])
    #expect(HostTerms.inEffect(among: [apart]).isEmpty)
  }

  @Test("are told as broken while a listed key is shown somewhere without a CA that is asked for")
  func missing() throws {
    var bench = LedgerBench()
    bench.see([(LedgerBench.here, "a", .key(1)), (LedgerBench.here, "b", .key(1))])
    bench.context.demanded = [pin(100)]
    func events(_ view: LedgerBench.View) -> [KeyEvent] {
      let before = bench.events.count
      bench.see(view)
      return bench.events[before...].filter { $0.name == "ca_missing" }
    }
    let good: LedgerBench.View = [
      (LedgerBench.here, "a", .key(1)), (LedgerBench.here, "b", .key(1)),
    ]
    let bad: LedgerBench.View = [
      (LedgerBench.here, "a", .key(1)), (LedgerBench.here, "b", .key(1, under: 102)),
    ]
    #expect(events(good).isEmpty)
    #expect(events(bad) == [.caMissing(pin(1))])
    // A key that nobody listed says it by itself.
    #expect(events([(LedgerBench.here, "a", .key(2, under: 102))]).isEmpty)

    var state = DocumentState()
    func note(_ events: [KeyEvent]) -> [ServerAlert.Kind] {
      _ = state.noteAlerts(of: events, at: "a.test:443", failures: 0, now: Self.now)
      return (state.alerts["a.test:443"] ?? []).map(\.kind)
    }
    #expect(note([.caMissing(pin(1))]) == [.caMissing])
    #expect(state.isTold(.caMissing(pin(1)), at: "a.test:443"))
    #expect(note([.unreachable(reason: "down")]) == [.caMissing])
    #expect(note([]).isEmpty)
  }

  @Test("have a held key refuse nobody where a CA above it is enough, and it is not denied")
  func held() throws {
    var bench = LedgerBench()
    bench.see([(LedgerBench.here, "a", .key(1))])
    bench.context.approval = .manual
    bench.see([(LedgerBench.here, "a", .key(2))], 4)
    var state = DocumentState()
    state.keysByEndpoint["a.test:443"] = bench.endpointKeys
    let alert = ServerAlert(
      kind: .keyHeld, endpoint: "a.test:443", pin: pin(2), message: "", since: Self.now)
    state.raise(alert)
    func refuses(_ terms: HostTerms) -> [Bool] {
      Condition.alerts(of: state, [:], in: "f", under: ["a.test:443": terms]).map(\.isRefusing)
    }
    #expect(refuses(.standard) == [true])
    #expect(refuses(Self.terms(.all, 100)) == [true])
    #expect(refuses(Self.terms(.any, 101)) == [true])
    #expect(refuses(Self.terms(.any, 100)) == [false])
    state.denied = [.init(pin: pin(100), at: 0, by: "", why: "")]
    #expect(refuses(Self.terms(.any, 100)) == [true])
  }
}
