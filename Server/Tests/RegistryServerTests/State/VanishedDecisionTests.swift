import SslPinningRules
import Testing

@testable import RegistryCore
@testable import RegistryServer

@Suite("What was decided of a host that vanished") struct VanishedDecisionTests: HeirScene {
  let bench = MachineBench()
  private var named: WatchedEndpoint { endpoint(1, "a.x.test") }
  private var moved: WatchedEndpoint { endpoint(4, "a.x.test") }
  private var wide: WatchedEndpoint { endpoint(2, "*.x.test") }
  private var other: WatchedEndpoint { endpoint(3, "o.test") }
  private let now = Self.begin
  private var request: DocumentState.Request { .init(who: "ada", at: now, why: "") }

  private static func asking(
    _ authority: UInt8, _ match: HostTerms.Match, _ endpoint: WatchedEndpoint
  ) -> WatchedEndpoint {
    var endpoint = endpoint
    endpoint.terms = HostTerms(ca: NamedIssuers(pins: [pin(authority)]), match: match)
    return endpoint
  }

  /// Endpoints with a key each, 1 and so on under one CA.
  private func listing(_ endpoints: WatchedEndpoint...) -> MachineServer {
    let server = start(endpoints, at: now)
    for (number, endpoint) in endpoints.enumerated() {
      for second in 0..<4 as Range<Int64> {
        show(UInt8(number + 1), under: 101, at: endpoint, server, now + second)
      }
    }
    return server
  }

  private func configure(_ server: MachineServer, _ endpoints: WatchedEndpoint...) {
    server.configure(endpoints, at: now + 60)
    server.rest(at: now + 60)
  }

  @Test(
    "is at odds with who takes its place in the very edit in which it leaves", arguments: 0..<3)
  func firstEdit(edit: Int) {
    let (before, after) = [
      (Self.asking(101, .any, wide), named), (Self.asking(101, .any, named), wide),
      (Self.asking(102, .all, named), wide),
    ][edit]
    let state = listing(before, other).machine.state
    #expect(state.conflicts(configuring: [before, other], isOfOrphans: true).isEmpty)
    #expect(state.conflicts(configuring: [other], isOfOrphans: true).isEmpty)
    #expect(state.conflicts(configuring: [after, other], isOfOrphans: true).count == 1)
  }

  @Test("is at odds by what is asked, and not with what goes along")
  func odds() {
    let server = listing(named, other)
    configure(server, other)
    let state = server.machine.state
    let odds = [Self.asking(101, .any, wide), Self.asking(102, .all, wide)].map {
      state.conflicts(configuring: [$0, other], isOfOrphans: true)
    }
    #expect(odds[0].keys == odds[1].keys && odds[0] != odds[1])
    // A person asked for the same at both, and one of them gets another port.
    let alike = listing(named, wide, other)
    let terms = Self.asking(101, .any, wide).terms
    for id in [named.id, wide.id] {
      perform(alike, at: now) { [request] state, configured throws(AdministrationError) in
        try state.setTerms(terms, of: id, configured: configured, force: true, request)
      }
    }
    configure(alike, wide, other)
    let port = endpoint(5, "*.x.test")
    #expect(alike.machine.state.conflicts(configuring: [port, other], isOfOrphans: true).isEmpty)
  }

  @Test("is at odds as before with whom it differed from while it was in force")
  func knownOdds() {
    let asking = Self.asking(101, .any, wide)
    let state = listing(named, asking, other).machine.state
    let known = state.conflicts(configuring: [named, asking, other], isOfOrphans: false)
    for left in [[named, other], [asking, other]] {
      #expect(state.conflicts(configuring: left, isOfOrphans: true) == known && known.count == 1)
    }
  }

  @Test("goes along with a host that a person adds again: what clients ask for")
  func added() throws {
    let asking = Self.asking(101, .any, wide)
    let server = listing(asking, other)
    configure(server, other)
    var state = server.machine.state
    _ = try state.add(endpoint(5, "*.x.test"), configured: [other], request)
    #expect(state.endpoints(configured: [other]).last?.terms == asking.terms)
  }

  @Test("asks nothing of others if every key is denied, with the next key set, too")
  func denied() throws {
    let asking = Self.asking(101, .any, wide)
    let server = listing(named, other)
    configure(server, other)
    perform(server, at: now) { [request] state, configured throws(AdministrationError) in
      try state.deny(pin(1), configured: configured, force: true, request)
    }
    configure(server, asking, other)
    for second in 61...64 as ClosedRange<Int64> {
      show(3, under: 101, at: asking, server, now + second)
    }
    var content = DocumentContent(server.machine.state, endpoints: [asking, other])
    #expect(content.hosts.contains(HostSettings(try HostPattern("a.x.test"), match: .any)))
    configure(server, other)
    content = DocumentContent(server.machine.state, endpoints: [other])
    #expect(content.hosts.first { $0.pattern == asking.patterns[0] }?.ca == [pin(101)])
  }

  @Test("is new again of a CA of which the only key was denied")
  func deniedAuthority() {
    let server = listing(named, other)
    for second in 10...14 as ClosedRange<Int64> {
      show(7, under: 107, at: named, server, now + second)
    }
    perform(server, at: now) { [id = named.id, request] state, _ throws(AdministrationError) in
      try state.approve(pin(7), at: id, request)
    }
    configure(server, other)
    perform(server, at: now) { [request] state, configured throws(AdministrationError) in
      try state.deny(pin(7), configured: configured, force: true, request)
    }
    configure(server, moved, other)
    for second in 61...66 as ClosedRange<Int64> {
      show(8, under: 107, at: moved, server, now + second)
    }
    #expect(listed("a.x.test", by: server) == [pin(1)])
  }

  @Test("is that a person decides, also once its endpoint has another key")
  func manual() {
    let gate = endpoint(1, "a.x.test", "m.test")
    let server = listing(gate, other)
    perform(server, at: now) { [request] state, _ throws(AdministrationError) in
      state.change(gate.id, interval: nil, approval: .manual, isPaused: nil, request)
    }
    let narrow = endpoint(1, "m.test")
    configure(server, narrow, other)
    var state = server.machine.state
    state.keysByEndpoint[gate.id]?.withdraw(pin(1))
    #expect((try? DocumentState(reading: state.encoded))?.orphans == state.orphans)
    let isChanged = state.follow([narrow, moved, other])
    #expect(isChanged)
    #expect(state.overrides[moved.id]?.approval == .manual)
  }

  @Test(
    "has its last usable key stay, whatever else is denied or only announced",
    arguments: [false, true])
  func lastUsable(isDenied: Bool) throws {
    let gate = endpoint(1, "a.x.test", "m.test")
    let server = listing(gate, other)
    perform(server, at: now) { [request] state, configured throws(AdministrationError) in
      isDenied
        ? try state.deny(pin(1), configured: configured, force: true, request)
        : try state.stage(pin(6), at: gate.id, request)
    }
    for second in 6...9 as ClosedRange<Int64> where isDenied {
      show(5, under: 101, at: gate, server, now + second)
    }
    configure(server, endpoint(1, "m.test"), other)
    var state = server.machine.state
    let last = pin(isDenied ? 5 : 1)
    state.keysByEndpoint[gate.id]?.withdraw(last)
    state.withdraw(last, leftBy: gate.id)
    let host = try #require(state.keysByEndpoint["\(gate.id) for a.x.test"])
    #expect(host.keys.contains { $0.pin == last })
  }

  @Test(
    "is no first sight elsewhere if a person took the last usable key, and a denied one is left")
  func revokedBesideDenied() {
    let server = listing(named, other)
    for second in 10...14 as ClosedRange<Int64> {
      show(6, under: 101, at: named, server, now + second)
    }
    perform(server, at: now) {
      [id = named.id, request] state, configured throws(AdministrationError) in
      try state.deny(pin(1), configured: configured, force: true, request)
        + state.revoke(pin(6), at: id, configured: configured, force: true, request)
    }
    configure(server, moved, other)
    for second in 61...66 as ClosedRange<Int64> {
      show(8, under: 107, at: moved, server, now + second)
    }
    #expect(listed("a.x.test", by: server).isEmpty)
  }

  @Test("by two endpoints that left is kept until both are taken out")
  func removedOnce() throws {
    let server = listing(named, moved, other)
    configure(server, other)
    var state = server.machine.state
    _ = try state.remove(moved.id, configured: [other], request)
    let pattern = try HostPattern("a.x.test")
    #expect(state.removed.isEmpty)
    #expect(
      state.orphans.flatMap { state.keysByEndpoint[$0.id]?.keys ?? [] }.map(\.pin) == [pin(1)])
    _ = try state.remove(named.id, configured: [other], request)
    #expect(state.removed == [pattern])
  }

  @Test("takes a key with a wildcard's off hosts elsewhere only by force, if it is their last")
  func lastElsewhere() throws {
    let gate = endpoint(1, "a.x.test", "b.y.test")
    let server = start([gate, wide, other], at: now)
    for second in 0..<4 as Range<Int64> {
      for endpoint in [gate, wide] { show(1, under: 101, at: endpoint, server, now + second) }
      show(9, under: 101, at: other, server, now + second)
    }
    for second in 5...9 as ClosedRange<Int64> {
      show(3, under: 101, at: wide, server, now + second)
    }
    configure(server, wide, other)
    var state = server.machine.state
    #expect(throws: AdministrationError.leavesWithoutPin(["a.x.test", "b.y.test"])) {
      try state.revoke(pin(1), at: wide.id, configured: [wide, other], force: false, request)
    }
  }
}
