import SslPinningRules
import Testing

@testable import RegistryCore

@Suite("A host that changes its endpoint") struct HeirTests: HeirScene {
  let bench = MachineBench()

  @Test(
    "changes places with another: both keep their keys, and their CAs", arguments: [false, true])
  func swaps(isRestart: Bool) throws {
    let now = Self.begin
    let before = [endpoint(1, "x.test"), endpoint(2, "y.test")]
    let after = [endpoint(2, "x.test"), endpoint(1, "y.test")]
    var server = start(before, at: now)
    show(1, under: 101, at: before[0], server, now)
    show(2, under: 102, at: before[1], server, now)
    server = configure(server, after, isRestart: isRestart, at: now + 60)
    #expect(listed("x.test", by: server).contains(pin(1)))
    #expect(listed("y.test", by: server).contains(pin(2)))
    show(66, under: 103, at: after[0], server, now + 61)
    #expect(!listed("x.test", by: server).contains(pin(66)))
    show(3, under: 101, at: after[0], server, now + 62)
    show(2, under: 102, at: after[1], server, now + 62)
    #expect(listed("x.test", by: server).contains(pin(3)))
    #expect(listed("y.test", by: server).contains(pin(2)))
  }

  @Test(
    "moves, and another host takes its port: that one is new, and this one is not",
    arguments: [false, true])
  func reuses(isRestart: Bool) throws {
    let now = Self.begin
    let before = endpoint(1, "x.test")
    let after = [endpoint(2, "x.test"), endpoint(1, "z.test")]
    var server = start([before], at: now)
    show(1, under: 101, at: before, server, now)
    let request = DocumentState.Request(who: "ada", at: now, why: "")
    perform(server, at: now) { state, _ in
      state.change(before.id, interval: nil, approval: .manual, isPaused: nil, request)
    }
    server = configure(server, after, isRestart: isRestart, at: now + 60)
    #expect(listed("x.test", by: server) == [pin(1)])
    #expect(listed("z.test", by: server).isEmpty)
    #expect(server.machine.endpoints.map(\.approval) == [.manual, .manual])
    show(66, under: 200, at: after[0], server, now + 61)
    show(3, under: 201, at: after[1], server, now + 61)
    #expect(listed("x.test", by: server) == [pin(1)])
    #expect(listed("z.test", by: server) == [pin(3)])
  }

  @Test("inherits a person's approval also while another change is being stored")
  func whileWriting() throws {
    let before = endpoint(1, "x.test")
    var base = DocumentState()
    base.overrides[before.id] = .init(approval: .manual)
    let other = endpoint(2, "x.test").id
    var own = base
    own.overrides[other] = .init(approval: .manual)
    #expect(own.uniting(base, base: base).overrides[other]?.approval == .manual)
    // What somebody decided about it meanwhile counts.
    var decided = base
    decided.overrides[other] = .init(approval: .automatic)
    #expect(own.uniting(decided, base: base).overrides[other]?.approval == .automatic)
    var out = base
    out.tombstones[other] = .init(at: 1, by: "ada", why: "")
    #expect(own.uniting(out, base: base).overrides[other] == nil)
  }

  @Test(
    "has its former endpoint back beside the new one: what left the list meanwhile stays away",
    arguments: [false, true], [false, true])
  func beside(isRestart: Bool, isAdded: Bool) throws {
    let now = Self.begin
    let (former, new) = (endpoint(1, "x.test"), endpoint(2, "x.test"))
    var server = start([former], at: now)
    show(1, under: 101, at: former, server, now)
    server = configure(server, [new], isRestart: isRestart, at: now + 60)
    show(2, under: 101, at: new, server, now + 61)
    #expect(listed("x.test", by: server) == [pin(1), pin(2)])
    let request = DocumentState.Request(who: "ada", at: now + 62, why: "")
    perform(server, at: now + 62) { state, configured throws(AdministrationError) in
      try state.revoke(pin(1), at: new.id, configured: configured, force: false, request)
    }
    #expect(listed("x.test", by: server) == [pin(2)])
    if isAdded {
      perform(server, at: now + 63) { state, configured throws(AdministrationError) in
        try state.add(former, configured: configured, request)
      }
    } else {
      server = configure(server, [former, new], isRestart: isRestart, at: now + 63)
    }
    #expect(server.machine.endpoints.count == 2)
    #expect(listed("x.test", by: server) == [pin(2)])
    show(66, under: 200, at: former, server, now + 64)
    #expect(listed("x.test", by: server) == [pin(2)])
    show(3, under: 101, at: former, server, now + 65)
    #expect(Set(listed("x.test", by: server)) == [pin(2), pin(3)])
  }

  @Test("takes along a key that was only announced: another one waits", arguments: [false, true])
  func announced(isRestart: Bool) throws {
    let now = Self.begin
    let (former, new, other) = (
      endpoint(1, "x.test"), endpoint(2, "x.test"), endpoint(3, "y.test")
    )
    var server = start([former, other], at: now)
    server.probe(.unreachable(reason: "it is not there yet"), former, at: now)
    show(9, under: 101, at: other, server, now)
    let request = DocumentState.Request(who: "ada", at: now, why: "")
    perform(server, at: now) { state, _ throws(AdministrationError) in
      try state.stage(pin(1), at: former.id, request)
    }
    server = configure(server, [new, other], isRestart: isRestart, at: now + 60)
    #expect(listed("x.test", by: server) == [pin(1)])
    show(66, under: 200, at: new, server, now + 61)
    #expect(listed("x.test", by: server) == [pin(1)])
    show(1, under: 101, at: new, server, now + 62)
    show(3, under: 101, at: new, server, now + 63)
    #expect(listed("x.test", by: server) == [pin(1), pin(3)])
  }

  @Test(
    "leaves an endpoint that it shared: it keeps its keys and their CA, and none of a neighbour's",
    arguments: [false, true])
  func splits(isRestart: Bool) {
    let now = Self.begin
    let (shared, neighbour) = (endpoint(1, "x.test", "y.test"), endpoint(3, "z.test"))
    let after = [endpoint(1, "x.test"), endpoint(2, "y.test"), neighbour]
    var server = start([neighbour, shared], at: now)
    // One key at both, as of a certificate for all of them, but not under one CA.
    show(1, under: 101, at: shared, server, now)
    show(1, under: 103, at: neighbour, server, now)
    show(4, under: 103, at: neighbour, server, now)
    server = configure(server, after, isRestart: isRestart, at: now + 60)
    #expect(listed("x.test", by: server) == [pin(1)])
    #expect(listed("y.test", by: server) == [pin(1)])
    show(66, under: 200, at: after[1], server, now + 61)
    show(67, under: 103, at: after[1], server, now + 62)
    #expect(listed("y.test", by: server) == [pin(1)])
    show(2, under: 101, at: after[1], server, now + 63)
    #expect(listed("y.test", by: server) == [pin(1), pin(2)])
    #expect(listed("x.test", by: server) == [pin(1)])
  }

  @Test(
    "joins another one, whichever was probed last: its keys stay listed",
    arguments: [false, true], [0, 1])
  func joins(isRestart: Bool, last: Int) {
    let now = Self.begin
    let before = [endpoint(1, "x.test"), endpoint(2, "y.test")]
    var server = start(before, at: now)
    show(2 - UInt8(last), under: 101, at: before[1 - last], server, now)
    show(1 + UInt8(last), under: 101, at: before[last], server, now + 5)
    let shared = endpoint(1, "x.test", "y.test")
    server = configure(server, [shared], isRestart: isRestart, at: now + 60)
    #expect(Set(listed("y.test", by: server)) == [pin(1), pin(2)])
  }

  @Test(
    "loses one of two endpoints, whichever was probed last: the key of either stays listed",
    arguments: [false, true], [0, 1])
  func leaves(isRestart: Bool, last: Int) {
    let now = Self.begin
    let before = [endpoint(1, "x.test"), endpoint(2, "x.test")]
    var server = start(before, at: now)
    show(2 - UInt8(last), under: 101, at: before[1 - last], server, now)
    show(1 + UInt8(last), under: 101, at: before[last], server, now + 5)
    server = configure(server, [before[0]], isRestart: isRestart, at: now + 60)
    #expect(Set(listed("x.test", by: server)) == [pin(1), pin(2)])
    show(1, under: 101, at: before[0], server, now + 61)
    server = configure(server, before, isRestart: isRestart, at: now + 62)
    #expect(Set(listed("x.test", by: server)) == [pin(1), pin(2)])
  }

  @Test(
    "comes back, and waits for a person if somebody said so meanwhile: also if no key is another one",
    arguments: [false, true], [UInt8(1), 2])
  func waits(isRestart: Bool, key: UInt8) {
    let now = Self.begin
    let (former, new) = (endpoint(1, "x.test"), endpoint(2, "x.test"))
    var server = start([former], at: now)
    show(1, under: 101, at: former, server, now)
    server = configure(server, [new], isRestart: isRestart, at: now + 60)
    show(key, under: 101, at: new, server, now + 61)
    let request = DocumentState.Request(who: "ada", at: now + 62, why: "")
    func set(_ approval: ApprovalMode, at endpoint: WatchedEndpoint) {
      perform(server, at: now + 62) { state, _ in
        state.change(
          endpoint.id, interval: nil, approval: approval, isPaused: nil, request)
      }
    }
    set(.manual, at: new)
    server = configure(server, [former], isRestart: isRestart, at: now + 63)
    #expect(server.machine.endpoints.map(\.approval) == [.manual])
    show(3, under: 101, at: former, server, now + 64)
    #expect(!listed("x.test", by: server).contains(pin(3)))
    // What was said before of an endpoint that left does not count any more.
    set(.automatic, at: former)
    server = configure(server, [former], isRestart: isRestart, at: now + 65)
    #expect(server.machine.endpoints.map(\.approval) == [.automatic])
  }

  @Test(
    "leaves, and waited for a person: another host with its key does not", arguments: [false, true])
  func sharesKey(isRestart: Bool) {
    let now = Self.begin
    let hosts = ["a.test", "c.test"].map { WatchedEndpoint(fqdn: HostName.literal($0)) }
    var server = start(hosts, at: now)
    for host in hosts { show(1, under: 101, at: host, server, now) }
    let request = DocumentState.Request(who: "ada", at: now + 1, why: "")
    perform(server, at: now + 1) { state, _ in
      state.change(hosts[0].id, interval: nil, approval: .manual, isPaused: nil, request)
    }
    server = configure(server, [hosts[1]], isRestart: isRestart, at: now + 60)
    #expect(server.machine.endpoints.map(\.approval) == [nil])
    show(2, under: 101, at: hosts[1], server, now + 61)
    #expect(Set(listed("c.test", by: server)) == [pin(1), pin(2)])
  }

  @Test(
    "was listed by a wildcard and is named now: its keys stay, and another CA's wait",
    arguments: [false, true])
  func narrows(isRestart: Bool) {
    let now = Self.begin
    let (wide, narrow) = (endpoint(1, "*.x.test"), endpoint(2, "a.x.test"))
    var server = start([wide], at: now)
    show(1, under: 101, at: wide, server, now)
    server = configure(server, [narrow], isRestart: isRestart, at: now + 60)
    #expect(listed("a.x.test", by: server) == [pin(1)])
    show(66, under: 200, at: narrow, server, now + 61)
    #expect(listed("a.x.test", by: server) == [pin(1)])
  }

  @Test(
    "is spoken for by a wildcard now: that has its CAs, and not its keys", arguments: [false, true])
  func widens(isRestart: Bool) {
    let now = Self.begin
    let (narrow, wide) = (endpoint(1, "a.x.test"), endpoint(2, "*.x.test"))
    let other = endpoint(3, "b.test")
    var server = start([narrow, other], at: now)
    show(1, under: 101, at: narrow, server, now)
    show(9, under: 109, at: other, server, now)
    server = configure(server, [wide, other], isRestart: isRestart, at: now + 60)
    show(66, under: 200, at: wide, server, now + 61)
    #expect(listed("*.x.test", by: server).isEmpty)
    show(2, under: 101, at: wide, server, now + 62)
    #expect(listed("*.x.test", by: server) == [pin(2)])
  }

  @Test(
    "waited for a person: so does the wildcard that speaks for it now", arguments: [false, true])
  func widensWaiting(isRestart: Bool) {
    let now = Self.begin
    let (narrow, wide) = (endpoint(1, "a.x.test"), endpoint(2, "*.x.test"))
    var server = start([narrow], at: now)
    show(1, under: 101, at: narrow, server, now)
    let request = DocumentState.Request(who: "ada", at: now + 1, why: "")
    perform(server, at: now + 1) { state, _ in
      state.change(narrow.id, interval: nil, approval: .manual, isPaused: nil, request)
    }
    server = configure(server, [wide], isRestart: isRestart, at: now + 60)
    #expect(server.machine.endpoints.map(\.approval) == [.manual])
  }

  @Test(
    "waited for a person: so does the wildcard that had the same key all along",
    arguments: [false, true])
  func widensShared(isRestart: Bool) {
    let now = Self.begin
    // Of other names: the document tells them apart.
    let (narrow, wide) = (
      WatchedEndpoint(fqdn: HostName.literal("a.x.test")),
      WatchedEndpoint(
        fqdn: HostName.literal("x.test"), patterns: endpoint(1, "*.x.test").patterns)
    )
    var server = start([narrow, wide], at: now)
    for each in [narrow, wide] { show(1, under: 101, at: each, server, now) }
    let request = DocumentState.Request(who: "ada", at: now + 1, why: "")
    perform(server, at: now + 1) { state, _ in
      state.change(narrow.id, interval: nil, approval: .manual, isPaused: nil, request)
    }
    #expect(server.machine.endpoints.map(\.approval) == [.manual, nil])
    server = configure(server, [wide], isRestart: isRestart, at: now + 60)
    #expect(server.machine.endpoints.map(\.approval) == [.manual])
  }

  @Test(
    "is lost in one edit and back elsewhere in the next: it has its key and its CA",
    arguments: [false, true],
    [
      WatchedEndpoint(fqdn: HostName.literal("a.test"), port: 8443),
      WatchedEndpoint(
        fqdn: HostName.literal("gate.test"),
        patterns: [HostPattern.exact(HostName.literal("a.test"))]),
    ])
  func lostAndBack(isRestart: Bool, moved: WatchedEndpoint) {
    let now = Self.begin
    let (lost, other) = (WatchedEndpoint(fqdn: HostName.literal("a.test")), endpoint(3, "o.test"))
    var server = start([lost, other], at: now)
    show(1, under: 101, at: lost, server, now)
    show(9, under: 109, at: other, server, now)
    server = configure(server, [other], isRestart: isRestart, at: now + 60)
    #expect(listed("a.test", by: server) == [pin(1)])
    server = configure(server, [moved, other], isRestart: isRestart, at: now + 61)
    #expect(listed("a.test", by: server) == [pin(1)])
    for second in 62...64 as ClosedRange<Int64> {
      show(66, under: 200, at: moved, server, now + second)
    }
    #expect(listed("a.test", by: server) == [pin(1)])
    for second in 65...67 as ClosedRange<Int64> {
      show(2, under: 101, at: moved, server, now + second)
    }
    #expect(listed("a.test", by: server) == [pin(1), pin(2)])
  }

  @Test("keeps the newest key if a server with another configuration leads")
  func leads() {
    let now = Self.begin
    let shared = endpoint(1, "x.test", "y.test")
    let (first, second) = (start([shared], at: now), MachineServer(bench, endpoints: [shared]))
    show(1, under: 101, at: shared, first, now)
    second.isFollowing = true
    second.rest(at: now)
    second.configure([endpoint(1, "x.test"), endpoint(2, "y.test")], at: now + 60)
    second.refresh()
    second.rest(at: now + 60)
    show(2, under: 101, at: shared, first, now + 61)
    second.refresh()
    second.rest(at: now + 62)
    second.lead(at: now + 63)
    second.rest(at: now + 63)
    #expect(listed("y.test", by: second) == [pin(1), pin(2)])
  }

  @Test(
    "has no key of a time when another server led: it left the list meanwhile",
    arguments: [false, true])
  func follows(isReloaded: Bool) {
    let now = Self.begin
    let (former, new, other) = (
      endpoint(1, "x.test"), endpoint(2, "x.test"), endpoint(3, "y.test")
    )
    let (first, second) = (start([former, other], at: now), start([former, other], at: now))
    show(1, under: 101, at: former, first, now)
    show(9, under: 109, at: other, first, now)
    second.isFollowing = true
    first.configure([new, other], at: now + 60)
    show(2, under: 101, at: new, first, now + 61)
    show(3, under: 101, at: new, first, now + 62)
    // Its former endpoint speaks for it there until the configuration is read again.
    second.refresh()
    second.rest(at: now + 62)
    if isReloaded { second.configure([new, other], at: now + 63, isWritten: false) }
    second.rest(at: now + 63)
    let request = DocumentState.Request(who: "ada", at: now + 64, why: "")
    perform(first, at: now + 64) { state, configured throws(AdministrationError) in
      try state.revoke(pin(2), at: new.id, configured: configured, force: false, request)
    }
    #expect(listed("x.test", by: first) == [pin(1), pin(3)])
    second.refresh()
    second.rest(at: now + 65)
    first.configure([former, other], at: now + 66)
    first.rest(at: now + 66)
    second.refresh()
    second.configure([former, other], at: now + 66, isWritten: false)
    second.rest(at: now + 66)
    second.lead(at: now + 67)
    second.rest(at: now + 67)
    #expect(Set(listed("x.test", by: second)) == [pin(1), pin(3)])
  }

  @Test(
    "is not left to an endpoint that has shown nothing yet, or whose key waits for a person",
    arguments: [false, true])
  func unseen(isHeld: Bool) {
    let now = Self.begin
    let (former, new, other) = (
      endpoint(1, "x.test"), endpoint(2, "x.test"), endpoint(3, "y.test")
    )
    let server = start([former, other], at: now)
    show(1, under: 101, at: former, server, now)
    show(9, under: 109, at: other, server, now)
    let request = DocumentState.Request(who: "ada", at: now + 1, why: "")
    perform(server, at: now + 1) { state, configured throws(AdministrationError) in
      try state.add(new, configured: configured, request)
    }
    if isHeld { show(66, under: 200, at: new, server, now + 2) }
    func takeOut() {
      perform(server, at: now + 3) { state, configured throws(AdministrationError) in
        try state.remove(former.id, configured: configured, request)
      }
    }
    takeOut()
    #expect(throws: AdministrationError.leavesUnseen(["x.test"])) {
      try server.answers[1]?.get()
    }
    show(66, under: 200, at: new, server, now + 4)
    #expect(listed("x.test", by: server) == [pin(1)])
    show(2, under: 101, at: new, server, now + 5)
    takeOut()
    #expect(listed("x.test", by: server) == [pin(2)])
  }

  @Test("nor is it left to a wildcard that shows a key that waits")
  func unseenWildcard() {
    let now = Self.begin
    let (former, new, other) = (
      endpoint(1, "x.test"), endpoint(2, "*.test"), endpoint(3, "y.example")
    )
    let server = start([former, other], at: now)
    show(1, under: 101, at: former, server, now)
    show(9, under: 109, at: other, server, now)
    let request = DocumentState.Request(who: "ada", at: now + 1, why: "")
    perform(server, at: now + 1) { state, configured throws(AdministrationError) in
      try state.add(new, configured: configured, request)
    }
    show(66, under: 200, at: new, server, now + 2)
    perform(server, at: now + 3) { state, configured throws(AdministrationError) in
      try state.remove(former.id, configured: configured, request)
    }
    #expect(throws: AdministrationError.leavesUnseen(["x.test"])) {
      try server.answers[1]?.get()
    }
    show(66, under: 200, at: new, server, now + 4)
    #expect(listed("x.test", by: server) == [pin(1)] && listed("*.test", by: server).isEmpty)
  }

  @Test("that a wildcard lists is not left to a key that waits there, though a neighbour was seen")
  func unseenBelow() {
    let now = Self.begin
    let (wide, new, neighbour) = (
      endpoint(1, "*.test"), endpoint(2, "x.test"), endpoint(3, "y.test")
    )
    let server = start([wide, neighbour], at: now)
    show(1, under: 101, at: wide, server, now)
    show(9, under: 101, at: neighbour, server, now)
    let request = DocumentState.Request(who: "ada", at: now + 1, why: "")
    perform(server, at: now + 1) { state, configured throws(AdministrationError) in
      try state.add(new, configured: configured, request)
    }
    show(66, under: 200, at: new, server, now + 2)
    func takeOut() {
      perform(server, at: now + 3) { state, configured throws(AdministrationError) in
        try state.remove(wide.id, configured: configured, request)
      }
    }
    takeOut()
    #expect(throws: AdministrationError.leavesUnseen(["x.test"])) {
      try server.answers[1]?.get()
    }
    show(66, under: 200, at: new, server, now + 4)
    #expect(listed("x.test", by: server).isEmpty)
    show(2, under: 101, at: new, server, now + 5)
    takeOut()
    #expect(listed("x.test", by: server) == [pin(2)])
    #expect(listed("*.test", by: server).isEmpty)
  }

  @Test(
    "nor is a wildcard left to another one that shows a key that waits, whatever is seen below it")
  func unseenBeside() {
    let now = Self.begin
    let (wide, new, neighbour) = (
      endpoint(1, "*.test"), endpoint(2, "*.test"), endpoint(3, "y.test")
    )
    let server = start([wide, neighbour], at: now)
    show(1, under: 101, at: wide, server, now)
    show(9, under: 101, at: neighbour, server, now)
    let request = DocumentState.Request(who: "ada", at: now + 1, why: "")
    perform(server, at: now + 1) { state, configured throws(AdministrationError) in
      try state.add(new, configured: configured, request)
    }
    show(66, under: 200, at: new, server, now + 2)
    perform(server, at: now + 3) { state, configured throws(AdministrationError) in
      try state.remove(wide.id, configured: configured, request)
    }
    #expect(throws: AdministrationError.leavesUnseen(["*.test"])) {
      try server.answers[1]?.get()
    }
    #expect(listed("*.test", by: server) == [pin(1)])
  }
}
