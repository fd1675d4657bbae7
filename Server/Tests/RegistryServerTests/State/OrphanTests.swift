import CanonicalJSON
import SslPinningRules
import Testing

@testable import RegistryCore
@testable import RegistryServer

@Suite("What is left of an endpoint that leaves the configuration") struct OrphanTests: HeirScene {
  let bench = MachineBench()
  private let now = Self.begin
  private var request: DocumentState.Request { .init(who: "ada", at: now, why: "") }
  private var gate: WatchedEndpoint { endpoint(1, "a.test", "m.test") }
  private var narrow: WatchedEndpoint { endpoint(1, "m.test") }
  private var other: WatchedEndpoint { endpoint(3, "o.test") }

  private func listing(_ endpoints: WatchedEndpoint...) -> MachineServer {
    let server = start(endpoints, at: now)
    for (number, endpoint) in endpoints.enumerated() {
      show(UInt8(number + 1), under: 101, at: endpoint, server, now)
    }
    return server
  }

  @Test("survives being written and read")
  func encoding() throws {
    let server = listing(gate, other)
    server.configure([narrow, other], at: now + 60)
    server.rest(at: now + 60)
    let state = server.machine.state
    #expect(state.orphans.map(\.id) == ["gate.test:1 for a.test"])
    #expect(state.watched == [narrow, other])
    let read = try DocumentState(reading: state.encoded)
    #expect((read.orphans, read.watched) == (state.orphans, state.watched))
    #expect(WatchedEndpoint(id: "gate.test:1 for a.test") == state.orphans.first)
  }

  @Test("is no alert, and has no record, once another endpoint speaks for all of its hosts")
  func moved() {
    let server = listing(gate, other)
    server.configure([endpoint(2, "a.test", "m.test"), other], at: now + 60)
    server.rest(at: now + 60)
    let state = server.machine.state
    #expect(state.markingWhoLeft(server.machine.endpoints).alerts.isEmpty)
    #expect(state.keysByEndpoint[gate.id] == nil && state.orphans.isEmpty)
    #expect(listed("a.test", by: server) == [pin(1)])
  }

  @Test(
    "of a host that an endpoint left alone is taken out by its own id, and not with that endpoint")
  func removed() throws {
    let server = listing(gate, other)
    server.configure([narrow, other], at: now + 60)
    server.rest(at: now + 60)
    var state = server.machine.state
    _ = try state.remove(narrow.id, configured: [narrow, other], request)
    #expect(state.removed.map(\.description) == ["m.test"])
    #expect(state.markingWhoLeft([other]).alerts[narrow.id]?.count == 1)
    state = server.machine.state
    _ = try state.remove("\(gate.id) for a.test", configured: [narrow, other], request)
    #expect(state.removed.map(\.description) == ["a.test"])
    #expect(state.orphans.isEmpty && state.tombstones.isEmpty)
  }

  @Test("does not lose its last key to a denial unless that is forced")
  func denied() throws {
    let server = listing(gate, other)
    server.configure([other], at: now + 60)
    server.rest(at: now + 60)
    var state = server.machine.state
    #expect(throws: AdministrationError.leavesWithoutPin(["a.test", "m.test"])) {
      try state.deny(pin(1), configured: [other], force: false, request)
    }
    _ = try state.deny(pin(1), configured: [other], force: true, request)
    #expect(
      DocumentContent(state, endpoints: [other]).hosts.filter { $0.match == .any && $0.ca.isEmpty }
        .count == 2)
  }

  @Test("is gone where a newer copy says that clients may forget it")
  func forgotten() throws {
    let server = listing(gate, other)
    server.configure([other], at: now + 60)
    server.rest(at: now + 60)
    let before = bench.record
    perform(server, at: now + 61) {
      [id = gate.id, request] state, configured
        throws(AdministrationError) in
      try state.remove(id, configured: configured, request)
    }
    bench.goBack(to: before)
    server.restart()
    server.rest(at: now + 62)
    server.upkeep()
    server.rest(at: now + 62)
    #expect(server.machine.state.orphans.isEmpty)
    #expect(listed("a.test", by: server).isEmpty && listed("o.test", by: server) == [pin(2)])
  }

  @Test("asks nothing of hosts of a wildcard that crosses its own and asks for something else")
  func crossing() {
    var deep = endpoint(1, "**.n.test")
    deep.terms = HostTerms(ca: NamedIssuers(pins: [pin(101)]))
    let server = listing(deep, other)
    func asked(_ endpoints: [WatchedEndpoint]) -> Int {
      DocumentContent(server.machine.state, endpoints: endpoints).hosts.count
    }
    #expect(asked([other]) == 1)
    #expect(asked([other, endpoint(2, "*.test")]) == 0)
  }

  @Test("is there, too, if the endpoint leaves after the record began anew from a copy")
  func lostStore() throws {
    let copy = try #require(listing(gate, other).copy)
    var state = DocumentState().goingOn(from: copy, endpoints: [gate, other])
    state.follow([other])
    #expect(Set(state.orphans.flatMap(\.patterns)) == Set(gate.patterns))
  }

  @Test(
    "after the record is lost, a host whose last key was denied or taken off shows nothing for the first time",
    arguments: [true, false])
  func lostLastKey(isDenied: Bool) throws {
    let server = listing(gate, other)
    perform(server, at: now + 60) { [request, gate] state, configured throws(AdministrationError) in
      isDenied
        ? try state.deny(pin(1), configured: configured, force: true, request)
        : try state.revoke(pin(1), at: gate.id, configured: configured, force: true, request)
    }
    let copy = try #require(server.copy)
    var state = DocumentState().goingOn(from: copy, endpoints: [gate, other])
    #expect(
      DocumentContent(state, endpoints: [gate, other]).hosts.map(\.pattern) == gate.patterns)
    let probe = LedgerBench.probe([(LedgerBench.here, "", .key(9, under: 200))])
    for second in 0..<3 as Range<Int64> {
      _ = state.keysByEndpoint[gate.id]?.enter(
        probe, at: now + 120 + second, rule: KnownAuthorityTests.rule)
    }
    let keys = try #require(state.keysByEndpoint[gate.id])
    #expect(keys.keys.isEmpty && keys.held[pin(9)]?.reasons == [.newIssuer])
    // The control: of a host that was never listed the first key counts.
    var unseen = EndpointKeys()
    _ = unseen.enter(probe, at: now + 120, rule: KnownAuthorityTests.rule)
    #expect(unseen.keys.map(\.pin) == [pin(9)])
  }

  @Test("is no other server's to bring back once a person took it out there")
  func merged() throws {
    let server = listing(gate, other)
    let base = server.machine.state
    var (own, theirs) = (base, base)
    own.follow([other])
    _ = try theirs.remove(gate.id, configured: [gate, other], request)
    var merged = own.merging(theirs, base: base)
    merged.follow([other])
    #expect(merged.orphans.isEmpty)
    // What was revoked there while it left here is not its own.
    theirs = base
    theirs.keysByEndpoint[gate.id]?.stage(pin(7), KnownKey.Staging(at: now, by: "ada"))
    theirs.keysByEndpoint[gate.id]?.withdraw(pin(1))
    merged = own.merging(theirs, base: base)
    merged.follow([other])
    let keys = merged.orphans.flatMap { merged.keysByEndpoint[$0.id]?.keys ?? [] }
    #expect(Set(keys.map(\.pin)) == [pin(7)])
  }

  @Test("is what a record of an earlier version says of hosts that vanished, and who was in force")
  func earlier() throws {
    var state = listing(gate, other).machine.state
    let asked = HostSettings(try HostPattern("v.test"), ca: [pin(101)], match: .any)
    let json = try #require(try JSONValue(parsing: state.encoded).objectValue)
    var members = JSONObject(json.filter { $0.key != "watched" && $0.key != "orphans" })
    members["spokenPatterns"] = .object(
      JSONObject(
        [gate, other].map { endpoint in
          (endpoint.id, .array(endpoint.patterns.map { .string($0.description) }))
        }))
    members["vanished"] = .array([
      .object([
        "pattern": .string("v.test"), "signed": .integer(now), "manual": .bool(true),
        "speakers": .array([.string("v.test:443")]), "settings": asked.json,
        "entries": .array([
          .object([
            "pin": .string(pin(5).base64), "fqdn": .string("v.test"), "date": .integer(now - 9),
          ])
        ]),
        "authorities": .array([
          .object(["pin": .string(pin(101).base64), "lastSeen": .integer(now)])
        ]),
      ])
    ])
    state = try DocumentState(reading: JSONValue.object(members).canonicalBytes)
    #expect(state.watched.map(\.id) == [gate.id, other.id])
    #expect(state.watched.map(\.patterns) == [gate.patterns, other.patterns])
    let orphan = try #require(state.orphans.first)
    #expect(orphan.id == "v.test:443 for v.test" && orphan.terms == HostTerms(asked))
    #expect(state.keysByEndpoint[orphan.id]?.keys.map(\.pin) == [pin(5)])
    #expect(state.keysByEndpoint[orphan.id]?.authorities == [pin(101): now])
    let back = WatchedEndpoint(fqdn: HostName.literal("v.test"), port: 8443)
    state.follow([gate, other, back])
    #expect(state.keysByEndpoint[back.id]?.keys.map(\.pin) == [pin(5)])
    #expect(state.overrides[back.id]?.approval == .manual)
    state.follow([other])
    #expect(
      Set(state.orphans.flatMap(\.patterns).map(\.description)).isSuperset(of: ["a.test", "m.test"])
    )
  }

  @Test("is no wildcard that a record from before patterns were written never listed")
  func unspoken() throws {
    let named = endpoint(1, "a.test")
    let server = listing(named, other)
    let json = try #require(try JSONValue(parsing: server.machine.state.encoded).objectValue)
    let members = JSONObject(json.filter { $0.key != "watched" && $0.key != "orphans" })
    var state = try DocumentState(reading: JSONValue.object(members).canonicalBytes)
    #expect(state.watched.first { $0.id == named.id }?.patterns == named.patterns)
    #expect(state.keysByEndpoint[named.id]?.keys.map(\.pin) == [pin(1)])
    #expect(!state.follow([named, other]) && state.orphans.isEmpty)
    state.follow([other])
    #expect(state.orphans.flatMap(\.patterns) == named.patterns)
  }

  @Test(
    "goes by what is said of its host anew, and leaves nothing of its endpoint once it is removed")
  func saidAnew() throws {
    var state = listing(narrow, other).machine.state
    _ = state.change(narrow.id, interval: nil, approval: .manual, isPaused: true, request)
    state.follow([other])
    var removed = state
    _ = try removed.remove("\(narrow.id) for m.test", configured: [other], request)
    #expect(removed.overrides.isEmpty)
    var elsewhere = endpoint(4, "m.test")
    elsewhere.approval = .automatic
    _ = try state.add(elsewhere, configured: [other], request)
    #expect(state.overrides[elsewhere.id]?.approval == nil)
  }

  @Test("loses a key that is revoked at a wildcard across it")
  func revokedAcross() throws {
    let (wide, across) = (endpoint(5, "*.x.test"), endpoint(1, "**.n.x.test"))
    var state = listing(wide, other).machine.state
    state.keysByEndpoint[across.id] = state.keysByEndpoint[wide.id]
    state.follow([across, other])
    #expect(state.orphans.flatMap(\.patterns).map(\.description) == ["*.x.test"])
    _ = try state.revoke(pin(1), at: across.id, configured: [across, other], force: true, request)
    #expect(state.orphans.allSatisfy { state.keysByEndpoint[$0.id]?.keys.isEmpty == true })
  }

  @Test("keeps what people had said of its endpoint if the store goes back to before it left")
  func wentBack() throws {
    var older = listing(gate, other).machine.state
    _ = older.change(gate.id, interval: nil, approval: .manual, isPaused: nil, request)
    older.overrides[gate.id]?.terms = HostTerms(match: .all)
    var state = older
    state.follow([other])
    let said = try state.orphans.map { try #require(state.overrides[$0.id]) }
    #expect(said.allSatisfy { $0.approval == .manual && $0.terms == HostTerms(match: .all) })
    let next = state.goingOn(from: older, after: RecordAge(), [other])
    #expect(next.orphans == state.orphans)
    #expect(next.orphans.map { next.overrides[$0.id] } == said)
    // So does the endpoint that has its hosts now, and no host that is listed again is removed.
    let moved = endpoint(4, "a.test", "m.test")
    state = older
    state.follow([moved, other])
    older.removed = try [HostPattern("a.test")]
    let heir = state.goingOn(from: older, after: RecordAge(), [moved, other])
    #expect(heir.overrides[moved.id]?.approval == .manual)
    #expect(heir.overrides[moved.id]?.terms == HostTerms(match: .all))
    state.follow([other])
    #expect(state.goingOn(from: older, after: RecordAge(), [other]).removed.isEmpty)
    // One that was there before gets them, too, and the endpoint itself, if its line was lost when the record was made.
    var wider = other
    wider.patterns += gate.patterns
    state = older
    state.follow([wider])
    #expect(
      state.goingOn(from: older, after: RecordAge(), [wider]).overrides[wider.id]?.approval
        == .manual)
    var left = older
    left.follow([other])
    state = left
    state.follow([gate, other])
    let back = state.goingOn(from: left, after: RecordAge(), [gate, other]).overrides[gate.id]
    #expect(back?.approval == .manual && back?.terms == HostTerms(match: .all))
    // Those of which the record says nothing.
    older.overrides = [:]
    state = older
    _ = state.change(gate.id, interval: nil, approval: .manual, isPaused: nil, request)
    state.follow([other])
    let without = state.goingOn(from: older, after: RecordAge(), [other])
    #expect(without.orphans.allSatisfy { without.overrides[$0.id]?.approval == .manual })
  }

  @Test(
    "stays where the store goes back behind its addition, and what was taken out since stays out")
  func wentBackBehind() throws {
    let added = endpoint(4, "b.test")
    var older = listing(gate, other).machine.state
    older.tombstones[added.id] = .init(at: 1, by: "ada", why: "")
    var state = older
    _ = try state.add(added, configured: [gate, other], request)
    state.keysByEndpoint[added.id] = state.keysByEndpoint[other.id]
    _ = try state.remove(gate.id, configured: [gate, other], request)
    state.follow(state.endpoints(configured: [other]))
    var next = state.goingOn(from: older, after: RecordAge(), [other])
    next.follow(next.endpoints(configured: [other]))
    #expect(next.orphans.map(\.patterns) == [added.patterns])
    #expect(next.removed == gate.patterns)
  }

  @Test("asks for what is asked above it where the store goes back behind both")
  func wentBackBehindTerms() throws {
    let (wide, below) = (endpoint(1, "*.test"), endpoint(4, "b.test"))
    let older = listing(wide).machine.state
    var state = older
    let asked = HostTerms(ca: NamedIssuers(pins: [pin(101)]), match: .any)
    _ = try state.setTerms(asked, of: wide.id, configured: [wide], force: true, request)
    _ = try state.add(below, configured: [wide], request)
    state.keysByEndpoint[below.id] = state.keysByEndpoint[wide.id]
    state.follow(state.endpoints(configured: [wide]))
    #expect(state.endpoints(configured: [wide]).map(\.terms) == [asked, asked])
    var next = state.goingOn(from: older, after: RecordAge(), [wide])
    next.follow(next.endpoints(configured: [wide]))
    #expect(next.orphans.map(\.patterns) == [below.patterns])
    #expect(DocumentContent(next, endpoints: next.endpoints(configured: [wide])).hosts.isEmpty)
  }

  @Test(
    "has what a person asks for instead of the configuration when its line is back, also with another port",
    arguments: [false, true])
  func overruled(isMoved: Bool) throws {
    var line = endpoint(1, "a.test")
    // A record has the keys alone, in their order.
    line.terms = HostTerms(
      ca: NamedIssuers(entries: ["root.pem"], pins: [pin(101), pin(100)], doubts: []))
    let said = HostTerms(ca: NamedIssuers(pins: [pin(102)]))
    var state = listing(line, other).machine.state
    _ = try state.setTerms(said, of: line.id, configured: [line, other], force: true, request)
    state.follow(state.endpoints(configured: [line, other]))
    state = try DocumentState(reading: state.encoded)
    // The configuration says more, which has no effect.
    line.terms.enforcement = .on
    state.follow(state.endpoints(configured: [line, other]))
    state.follow(state.endpoints(configured: [other]))
    state = try DocumentState(reading: state.encoded)
    func asked(_ terms: HostTerms) -> HostTerms? {
      var back = endpoint(isMoved ? 4 : 1, "a.test")
      back.terms = terms
      var next = state
      next.follow(next.endpoints(configured: [back, other]))
      return next.endpoints(configured: [back, other]).first?.terms
    }
    #expect(asked(line.terms) == said)
    #expect(asked(.standard) == said)
    // The configuration was corrected meanwhile.
    let corrected = HostTerms(ca: NamedIssuers(pins: [pin(103)]))
    #expect(asked(corrected) == corrected)
  }

  @Test("is no host of another endpoint of its name, whose record does not say for what it speaks")
  func sharedName() throws {
    let (api, admin) = (endpoint(1, "api.test"), endpoint(2, "admin.test"))
    let server = start([api, admin], at: now)
    for endpoint in [api, admin] { show(1, under: 101, at: endpoint, server, now) }
    for second in 1...3 as ClosedRange<Int64> {
      show(2, under: 101, at: admin, server, now + second)
    }
    #expect(listed("admin.test", by: server) == [pin(1), pin(2)])
    var state = server.machine.state
    let json = try #require(try JSONValue(parsing: state.encoded).objectValue)
    let members = JSONObject(json.filter { $0.key != "watched" && $0.key != "orphans" })
    state = try DocumentState(reading: JSONValue.object(members).canonicalBytes)
    state.follow([api, admin])
    #expect(state.keysByEndpoint[api.id]?.keys.map(\.pin) == [pin(1)])
  }

  @Test("loses no key for an older one that was only announced")
  func announcedBeside() throws {
    let server = listing(narrow, other)
    for second in 1...3 as ClosedRange<Int64> {
      show(2, under: 101, at: narrow, server, now + second)
    }
    for second in 4...60 as ClosedRange<Int64> {
      show(3, under: 101, at: narrow, server, now + second)
    }
    var state = server.machine.state
    state.keysByEndpoint[narrow.id]?.withdraw(pin(1))
    state.keysByEndpoint[narrow.id]?.stage(pin(7), KnownKey.Staging(at: now + 61, by: "ada"))
    state.follow([other])
    let left = state.orphans.flatMap { state.keysByEndpoint[$0.id]?.keys.map(\.pin) ?? [] }
    #expect(Set(left) == [pin(2), pin(3), pin(7)])
  }

  @Test("and one that is new beside one whose keys a person decides about, wait for a person, too")
  func beside() throws {
    let (one, more) = (endpoint(1, "a.test"), endpoint(4, "a.test"))
    let server = start([one], at: now)
    show(1, under: 101, at: one, server, now)
    var state = server.machine.state
    _ = state.change(
      one.id, interval: nil, approval: .manual, isPaused: nil,
      .init(who: "ada", at: now, why: ""))
    state.follow(state.endpoints(configured: [one, more, endpoint(5, "b.test")]))
    #expect(state.endpoints(configured: [one, more]).map(\.approval) == [.manual, .manual])
    #expect(state.overrides.count == 2)
    // One that speaks for other hosts as well goes on by itself.
    let apart = endpoint(5, "b.test")
    state.follow(state.endpoints(configured: [one, apart]))
    let joined = endpoint(5, "b.test", "a.test")
    state.follow(state.endpoints(configured: [one, joined]))
    #expect(state.endpoints(configured: [one, joined]).map(\.approval) == [.manual, nil])
    // So does one that is named below a wildcard.
    let (wide, below) = (endpoint(1, "*.test"), endpoint(4, "c.test"))
    let gate = start([wide], at: now)
    show(1, under: 101, at: wide, gate, now)
    state = gate.machine.state
    _ = state.change(
      wide.id, interval: nil, approval: .manual, isPaused: nil,
      .init(who: "ada", at: now, why: ""))
    state.follow(state.endpoints(configured: [wide, below]))
    #expect(state.endpoints(configured: [wide, below]).map(\.approval) == [.manual, .manual])
  }

  @Test(
    "that is taken over with a key that nobody announced has its alert, also after a line was lost")
  func alerts() throws {
    let (one, other) = (endpoint(1, "a.test"), endpoint(3, "o.test"))
    let server = start([one, other], at: now)
    show(9, under: 109, at: other, server, now)
    show(1, under: 101, at: one, server, now)
    for second in 1...4 as ClosedRange<Int64> {
      show(2, under: 101, at: one, server, now + second)
    }
    func told(_ id: String) -> [SPKIPin?] {
      (server.machine.state.alerts[id] ?? []).filter { $0.kind == .unannouncedKey }.map(\.pin)
    }
    #expect(told(one.id) == [pin(2)])
    server.configure([other], at: now + 60)
    #expect(told(one.id).isEmpty)
    server.configure([one, other], at: now + 61)
    #expect(told(one.id) == [pin(2)])
    server.configure([endpoint(4, "a.test"), other], at: now + 62)
    #expect(told(endpoint(4, "a.test").id) == [pin(2)])
  }

  @Test("and no edit is told of because a person decides about an endpoint that was added so")
  func waitsByItself() {
    let (www, api) = (endpoint(1, "www.test"), endpoint(2, "api.test"))
    var own = endpoint(3, "own.test")
    own.approval = .manual
    let server = start([www, api], at: now)
    show(1, under: 101, at: www, server, now)
    show(2, under: 102, at: api, server, now)
    let (added, request) = (own, DocumentState.Request(who: "ada", at: now, why: ""))
    perform(server, at: now) { state, _ throws(AdministrationError) in
      try state.add(added, configured: [www, api], request)
    }
    show(3, under: 103, at: own, server, now)
    perform(server, at: now) { state, _ in
      state.change(api.id, interval: nil, approval: .manual, isPaused: nil, request)
    }
    for configured in [[www, api], [www], [www, api, endpoint(4, "new.test")], [www, api, own]] {
      #expect(server.machine.state.wordsLost(configuring: configured).isEmpty)
    }
  }

  @Test("and its edit is told if hosts would wait for a person, too, for which nobody asked that")
  func waitsSpread() {
    let (www, api) = (endpoint(1, "www.test"), endpoint(2, "api.test"))
    let both = endpoint(3, "api.test", "www.test")
    var meant = both
    meant.approval = .manual
    for (after, isTold) in [
      ([endpoint(2, "api.test", "www.test")], true),
      ([both], true), ([www, both], true), ([meant], false),
      ([endpoint(4, "www.test"), api], false), ([www, endpoint(4, "www.test"), api], false),
      ([endpoint(4, "www.test", "new.test"), api], false), ([api], false), ([www], false),
      // It joins the endpoint that waits.
      ([endpoint(1, "www.test", "api.test")], true), ([endpoint(1, "www.test", "new.test")], false),
    ] as [([WatchedEndpoint], Bool)] {
      let server = start([www, api], at: now)
      show(1, under: 101, at: www, server, now)
      show(2, under: 102, at: api, server, now)
      let request = DocumentState.Request(who: "ada", at: now, why: "")
      perform(server, at: now) { state, _ in
        state.change(www.id, interval: nil, approval: .manual, isPaused: nil, request)
      }
      var state = server.machine.state
      #expect(state.wordsLost(configuring: after).isEmpty != isTold)
      state.follow(state.endpoints(configured: after))
      #expect(state.wordsLost(configuring: after).isEmpty)
    }
  }
}
