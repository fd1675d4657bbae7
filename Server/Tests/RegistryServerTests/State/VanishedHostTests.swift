import CanonicalJSON
import SslPinningRules
import Testing

@testable import RegistryCore
@testable import RegistryServer

@Suite("A host that left, and whose pins clients keep") struct VanishedHostTests: HeirScene {
  let bench = MachineBench()
  private let named = WatchedEndpoint(fqdn: HostName.literal("a.x.test"))
  private var wide: WatchedEndpoint { endpoint(2, "*.x.test") }
  private var other: WatchedEndpoint { endpoint(3, "o.test") }

  @Test(
    "behind a gateway is remembered over two edits, as by its own name", arguments: [false, true])
  func gateway(isRestart: Bool) {
    let now = Self.begin
    let narrow = endpoint(1, "a.x.test")
    var server = start([narrow, other], at: now)
    show(1, under: 101, at: narrow, server, now)
    show(9, under: 109, at: other, server, now)
    server = configure(server, [other], isRestart: isRestart, at: now + 60)
    #expect(listed("a.x.test", by: server) == [pin(1)])
    server = configure(server, [wide, other], isRestart: isRestart, at: now + 61)
    for second in 62...64 as ClosedRange<Int64> {
      show(3, under: 101, at: wide, server, now + second)
    }
    #expect(listed("a.x.test", by: server) == [pin(1)])
    #expect(listed("*.x.test", by: server) == [pin(3)])
  }

  @Test(
    "comes back without what was revoked since its endpoint moved, also if the line was lost meanwhile",
    arguments: [false, true])
  func revokedStaysAway(isRestart: Bool) {
    let now = Self.begin
    let moved = WatchedEndpoint(fqdn: HostName.literal("a.x.test"), port: 8443)
    var server = start([named, other], at: now)
    show(1, under: 101, at: named, server, now)
    show(9, under: 109, at: other, server, now)
    server = configure(server, [moved, other], isRestart: isRestart, at: now + 60)
    show(3, under: 101, at: moved, server, now + 61)
    #expect(listed("a.x.test", by: server) == [pin(1), pin(3)])
    let request = DocumentState.Request(who: "ada", at: now + 62, why: "")
    perform(server, at: now + 62) { state, configured throws(AdministrationError) in
      try state.revoke(pin(1), at: moved.id, configured: configured, force: false, request)
    }
    #expect(listed("a.x.test", by: server) == [pin(3)])
    server = configure(server, [other], isRestart: isRestart, at: now + 63)
    server = configure(server, [moved, other], isRestart: isRestart, at: now + 64)
    #expect(listed("a.x.test", by: server) == [pin(3)])
  }

  /// The named endpoint, a wildcard beside it and others, each with a key.
  private func three(at now: Int64, _ key: UInt8 = 3) -> MachineServer {
    let server = start([wide, named, other], at: now)
    show(key, under: 101, at: wide, server, now)
    for _ in 0..<3 { show(1, under: 101, at: named, server, now) }
    show(9, under: 109, at: other, server, now)
    return server
  }

  @Test(
    "to a wildcard keeps what clients ask for besides: a person's word, and the configuration's",
    arguments: [false, true])
  func terms(isConfigured: Bool) throws {
    let now = Self.begin
    let asks = HostTerms(ca: NamedIssuers(pins: [pin(101)]))
    var own = named
    if isConfigured { own.terms = asks }
    var server = start([wide, own, other], at: now)
    show(3, under: 101, at: wide, server, now)
    for _ in 0..<3 { show(1, under: 101, at: own, server, now) }
    show(9, under: 109, at: other, server, now)
    let request = DocumentState.Request(who: "ada", at: now, why: "")
    if !isConfigured {
      perform(server, at: now) { [id = own.id] state, configured throws(AdministrationError) in
        try state.setTerms(asks, of: id, configured: configured, force: true, request)
      }
    }
    server = configure(server, [wide, other], isRestart: true, at: now + 60)
    let content = DocumentContent(server.machine.state, endpoints: [wide, other])
    #expect(content.entries.map { "\($0.pattern)" }.contains("a.x.test"))
    #expect(content.hosts.filter { "\($0.pattern)" == "a.x.test" }.map(\.ca) == [[pin(101)]])
    // What would have clients refuse it for want of another CA is no word for the wildcard.
    var state = server.machine.state
    let others = HostTerms(ca: NamedIssuers(pins: [pin(102)]))
    #expect(throws: AdministrationError.termsDiffer(wide.id, "\(named.id) for a.x.test")) {
      try state.setTerms(others, of: wide.id, configured: [wide, other], force: false, request)
    }
    #expect(
      try !state.setTerms(
        asks, of: wide.id, configured: [wide, other], force: true, request
      ).isEmpty)
    var wider = endpoint(5, "*.x.test")
    wider.terms = others
    #expect(throws: AdministrationError.termsDiffer("\(named.id) for a.x.test", wider.id)) {
      var next = server.machine.state
      _ = try next.add(wider, configured: [other], request)
    }
  }

  @Test("is in the first statement of a new key set, and not if somebody took it out")
  func epoch() throws {
    let now = Self.begin
    var server = start([named, other], at: now)
    show(1, under: 101, at: named, server, now)
    show(9, under: 109, at: other, server, now)
    server = configure(server, [other], isRestart: false, at: now + 60)
    let state = server.machine.state
    func carried(_ state: DocumentState) -> [String] {
      DocumentContent(state, endpoints: [other]).entries.map { "\($0.pattern)" }
    }
    #expect(carried(state) == ["o.test", "a.x.test", "*.a.x.test"])
    var without = state
    let request = DocumentState.Request(who: "ada", at: now, why: "")
    let done = try without.remove(named.id, configured: [other], request)
    #expect(done.map(\.event) == ["endpoint_removed"])
    #expect(Set(without.removed.map(\.description)) == ["*.a.x.test", "a.x.test"])
    #expect(carried(without) == ["o.test"])
    #expect(throws: AdministrationError.noSuchEndpoint("z.test:443", known: [other.id])) {
      try without.remove("z.test:443", configured: [other], request)
    }
  }

  @Test("is in every statement, of any key set: an app may have missed the first one")
  func laterEpoch() {
    let now = Self.begin
    var server = start([named, other], at: now)
    show(1, under: 101, at: named, server, now)
    show(9, under: 109, at: other, server, now)
    server = configure(server, [other], isRestart: false, at: now + 60)
    var state = server.machine.state
    func listed(_ state: DocumentState) -> Set<String> {
      Set(DocumentContent(state, endpoints: [other]).entries.map { "\($0.pattern)" })
    }
    #expect(listed(state) == ["a.x.test", "*.a.x.test", "o.test"])
    state.number = .init(epoch: 1, version: 1)
    #expect(listed(state) == ["a.x.test", "*.a.x.test", "o.test"])
    // Also who leaves after the first statement: an app may ask for the first time since.
    let without = configure(server, [other], isRestart: true, at: now + 61).machine.state
    #expect(without.orphans.count == 2)
  }

  @Test(
    "with several endpoints keeps the keys of all that left together, over two edits",
    arguments: [false, true])
  func together(isRestart: Bool) {
    let now = Self.begin
    let (one, two) = (endpoint(4, "a.x.test"), endpoint(5, "a.x.test"))
    var server = start([one, two, other], at: now)
    show(1, under: 101, at: one, server, now)
    for _ in 0..<3 { show(2, under: 101, at: two, server, now) }
    show(9, under: 109, at: other, server, now)
    #expect(listed("a.x.test", by: server) == [pin(1), pin(2)])
    server = configure(server, [other], isRestart: isRestart, at: now + 60)
    server = configure(server, [wide, other], isRestart: isRestart, at: now + 61)
    show(3, under: 103, at: wide, server, now + 62)
    #expect(Set(listed("a.x.test", by: server)) == [pin(1), pin(2)])
  }

  @Test("has a key revoked with the wildcard's, and by itself")
  func revoked() throws {
    let now = Self.begin
    var server = three(at: now, 1)
    server = configure(server, [wide, other], isRestart: false, at: now + 60)
    for second in 61...63 as ClosedRange<Int64> {
      show(3, under: 101, at: wide, server, now + second)
    }
    #expect(listed("a.x.test", by: server) == [pin(1)])
    let request = DocumentState.Request(who: "ada", at: now, why: "")
    var state = server.machine.state
    // Its last key: whoever stands there when it comes back would be its first.
    #expect(throws: AdministrationError.leavesWithoutPin(["*.a.x.test", "a.x.test"])) {
      try state.revoke(pin(1), at: named.id, configured: [wide, other], force: false, request)
    }
    let own = try state.revoke(
      pin(1), at: named.id, configured: [wide, other], force: true, request)
    #expect(own.map(\.endpoint) == [named.id])
    state = server.machine.state
    #expect(throws: AdministrationError.leavesWithoutPin(["*.a.x.test", "a.x.test"])) {
      try state.revoke(pin(1), at: wide.id, configured: [wide, other], force: false, request)
    }
    let both = try state.revoke(
      pin(1), at: wide.id, configured: [wide, other], force: true, request)
    #expect(both.map(\.endpoint) == [wide.id, named.id])
    let entries = DocumentContent(state, endpoints: [wide, other]).entries
    #expect(!entries.contains { $0.pin == pin(1) })
  }

  @Test(
    "since the store has an older record, in which nobody had added it, stays listed and is watched"
  )
  func olderRecord() throws {
    let now = Self.begin
    let server = start([wide, other], at: now)
    show(3, under: 101, at: wide, server, now)
    show(9, under: 109, at: other, server, now)
    let before = bench.record
    let request = DocumentState.Request(who: "ada", at: now, why: "")
    perform(server, at: now) { [named] state, configured throws(AdministrationError) in
      try state.add(named, configured: configured, request)
    }
    for _ in 0..<3 { show(1, under: 101, at: named, server, now + 1) }
    #expect(listed("a.x.test", by: server) == [pin(1)])
    bench.goBack(to: before)
    server.restart()
    server.rest(at: now + 2)
    server.upkeep()
    server.rest(at: now + 2)
    #expect(listed("a.x.test", by: server) == [pin(1)])
    #expect(server.machine.endpoints.map(\.id).contains(named.id))
  }

  @Test(
    "an endpoint's id says what it is",
    arguments: [
      "a.test:443", "a.test:1 at 127.0.0.1", "a.test:1 at ::1", "[::1]:9443", "127.0.0.1:443",
    ])
  func ids(id: String) {
    #expect(WatchedEndpoint(id: id)?.id == id)
  }

  @Test("what is no endpoint's id is none", arguments: ["", "a.test", "a.test:0x1", ":1", "a b:1"])
  func noIDs(id: String) {
    #expect(WatchedEndpoint(id: id) == nil)
  }
}
