import SslPinningRules
import Testing

@testable import RegistryCore

@Suite("A host that is left to a wildcard") struct WildcardHeirTests: HeirScene {
  let bench = MachineBench()

  @Test(
    "is spoken for by a wildcard at its endpoint and at another one: its key stays, another CA's wait",
    arguments: [false, true])
  func widensTwice(isRestart: Bool) {
    let now = Self.begin
    let (narrow, other) = (endpoint(1, "a.x.test"), endpoint(3, "b.test"))
    let wide = [endpoint(1, "*.x.test"), endpoint(2, "*.x.test")]
    var server = start([narrow, other], at: now)
    show(1, under: 101, at: narrow, server, now)
    show(9, under: 109, at: other, server, now)
    server = configure(server, wide + [other], isRestart: isRestart, at: now + 60)
    #expect(listed("*.x.test", by: server) == [pin(1)])
    for endpoint in wide { show(66, under: 200, at: endpoint, server, now + 61) }
    #expect(listed("*.x.test", by: server) == [pin(1)])
    show(2, under: 101, at: wide[1], server, now + 62)
    #expect(listed("*.x.test", by: server) == [pin(1), pin(2)])
  }

  @Test(
    "is left to a wildcard at its own endpoint: nothing comes from another one that has its key",
    arguments: [false, true])
  func widens(isRestart: Bool) {
    let now = Self.begin
    let (narrow, other) = (endpoint(1, "a.x.test"), endpoint(3, "b.test"))
    let wide = endpoint(1, "*.x.test")
    var server = start([narrow, other], at: now)
    show(1, under: 101, at: narrow, server, now)
    show(1, under: 109, at: other, server, now)
    server = configure(server, [wide, other], isRestart: isRestart, at: now + 60)
    show(66, under: 109, at: wide, server, now + 61)
    #expect(listed("*.x.test", by: server) == [pin(1)])
    show(2, under: 101, at: wide, server, now + 62)
    #expect(listed("*.x.test", by: server) == [pin(1), pin(2)])
  }

  @Test(
    "moves out of an endpoint that keeps the rest by a wildcard, as another one does: its key stays",
    arguments: [false, true])
  func movesOut(isRestart: Bool) {
    let now = Self.begin
    let (gate, other) = (endpoint(1, "x.test", "b.x.test"), endpoint(4, "y.test"))
    let after = [endpoint(1, "*.x.test"), endpoint(2, "x.test"), endpoint(3, "b.x.test"), other]
    var server = start([gate, other], at: now)
    show(1, under: 101, at: gate, server, now)
    show(9, under: 109, at: other, server, now)
    server = configure(server, after, isRestart: isRestart, at: now + 60)
    #expect(listed("*.x.test", by: server) + listed("b.x.test", by: server) == [pin(1)])
    for endpoint in after.dropLast() { show(66, under: 200, at: endpoint, server, now + 61) }
    #expect(!listed("*.x.test", by: server).contains(pin(66)))
    #expect(!listed("b.x.test", by: server).contains(pin(66)))
    show(2, under: 101, at: after[2], server, now + 62)
    #expect(listed("b.x.test", by: server) == [pin(2)])
  }

  @Test(
    "is left to a wildcard at an endpoint that was another host's: that has its CAs",
    arguments: [false, true])
  func isLeft(isRestart: Bool) {
    let now = Self.begin
    let before = [endpoint(1, "y.test"), WatchedEndpoint(fqdn: HostName.literal("a.x.test"))]
    let after = [endpoint(1, "*.x.test"), endpoint(2, "y.test")]
    var server = start(before, at: now)
    show(1, under: 101, at: before[0], server, now)
    show(5, under: 102, at: before[1], server, now)
    server = configure(server, after, isRestart: isRestart, at: now + 60)
    #expect(listed("y.test", by: server) == [pin(1)])
    show(66, under: 200, at: after[0], server, now + 61)
    #expect(listed("*.x.test", by: server).isEmpty)
    show(6, under: 102, at: after[0], server, now + 62)
    #expect(listed("*.x.test", by: server) == [pin(6)])
  }

  @Test(
    "is left to a wildcard at another endpoint: nothing comes from a neighbour that has its key",
    arguments: [false, true])
  func hasNeighbour(isRestart: Bool) {
    let now = Self.begin
    let (narrow, neighbour, wide) = (
      endpoint(1, "a.x.test"), endpoint(3, "b.test"), endpoint(2, "*.x.test")
    )
    var server = start([narrow, neighbour], at: now)
    show(1, under: 101, at: narrow, server, now)
    show(1, under: 109, at: neighbour, server, now)
    show(4, under: 109, at: neighbour, server, now)
    server = configure(server, [wide, neighbour], isRestart: isRestart, at: now + 60)
    show(66, under: 109, at: wide, server, now + 61)
    #expect(listed("*.x.test", by: server).isEmpty)
    show(2, under: 101, at: wide, server, now + 62)
    #expect(listed("*.x.test", by: server) == [pin(2)])
  }

  @Test(
    "is spoken for by a wildcard that crosses the one of before: that has its CAs",
    arguments: [false, true], [["*.x.test", "**.b.x.test"], ["**.b.x.test", "*.x.test"]])
  func crosses(isRestart: Bool, patterns: [String]) {
    let now = Self.begin
    let (former, next) = (endpoint(1, patterns[0]), endpoint(2, patterns[1]))
    let other = endpoint(3, "o.test")
    var server = start([former, other], at: now)
    show(1, under: 101, at: former, server, now)
    show(9, under: 109, at: other, server, now)
    server = configure(server, [next, other], isRestart: isRestart, at: now + 60)
    show(66, under: 200, at: next, server, now + 61)
    #expect(listed(patterns[1], by: server).isEmpty)
    show(2, under: 101, at: next, server, now + 62)
    #expect(listed(patterns[1], by: server) == [pin(2)])
  }

  @Test(
    "keeps its key where another one takes that along from a wildcard that crosses the one of before",
    arguments: [false, true])
  func crossesBeside(isRestart: Bool) {
    let now = Self.begin
    let (former, other) = (endpoint(4, "*.example"), endpoint(3, "o.test"))
    let after = [endpoint(1, "y.example"), endpoint(2, "x.example"), endpoint(4, "**.x.example")]
    var server = start([former, other], at: now)
    show(4, under: 101, at: former, server, now)
    show(9, under: 109, at: other, server, now)
    server = configure(server, after + [other], isRestart: isRestart, at: now + 60)
    #expect(listed("y.example", by: server) == [pin(4)])
    #expect(listed("x.example", by: server) + listed("**.x.example", by: server) == [pin(4)])
    show(66, under: 200, at: after[1], server, now + 61)
    #expect(listed("x.example", by: server).isEmpty)
  }

  @Test(
    "is left to a wildcard beside one that stays under another CA: what it shows under its own does not wait",
    arguments: [false, true])
  func isLeftBesideAnother(isRestart: Bool) {
    let now = Self.begin
    let (stays, left) = (endpoint(1, "www.x.test"), endpoint(2, "api.x.test"))
    let apex = endpoint(3, "x.test", "*.x.test")
    var server = start([stays, left], at: now)
    show(1, under: 101, at: stays, server, now)
    show(4, under: 104, at: left, server, now)
    server = configure(server, [stays, apex], isRestart: isRestart, at: now + 60)
    show(66, under: 200, at: apex, server, now + 61)
    #expect(listed("*.x.test", by: server).isEmpty)
    show(4, under: 104, at: apex, server, now + 62)
    #expect(listed("*.x.test", by: server) == [pin(4)])
  }

  @Test(
    "is left to a wildcard that has shown its key already, and waited for a person: so does that one",
    arguments: [false, true])
  func waitsWithSharedKey(isRestart: Bool) {
    let now = Self.begin
    let names = ["www.x.test", "api.x.test"].map { WatchedEndpoint(fqdn: HostName.literal($0)) }
    var wide = names[0]
    wide.patterns = ["*.x.test"].compactMap { try? HostPattern($0) }
    var server = start(names, at: now)
    for name in names { show(1, under: 101, at: name, server, now) }
    let request = DocumentState.Request(who: "ada", at: now + 1, why: "")
    perform(server, at: now + 1) { state, _ in
      state.change(names[1].id, interval: nil, approval: .manual, isPaused: nil, request)
    }
    server = configure(server, [wide], isRestart: isRestart, at: now + 60)
    #expect(server.machine.endpoints.map(\.approval) == [.manual])
    show(2, under: 101, at: wide, server, now + 61)
    #expect(listed("*.x.test", by: server) == [pin(1)])
  }

  @Test(
    "leaves the configuration, and a wildcard that has another key speaks for it: its key stays under its name",
    arguments: [false, true])
  func isLost(isRestart: Bool) throws {
    let now = Self.begin
    let (apex, lost) = (endpoint(1, "x.test", "*.x.test"), endpoint(2, "api.x.test"))
    var server = start([apex, lost], at: now)
    show(1, under: 101, at: apex, server, now)
    show(2, under: 101, at: lost, server, now + 1)
    server = configure(server, [apex], isRestart: isRestart, at: now + 60)
    #expect(listed("api.x.test", by: server) == [pin(2)])
    #expect(listed("*.x.test", by: server) == [pin(1)])
    show(3, under: 101, at: apex, server, now + 61)
    #expect(listed("api.x.test", by: server) == [pin(2)])
    // Whoever meant it configures it again, and takes it out.
    server = configure(server, [apex, lost], isRestart: isRestart, at: now + 62)
    let request = DocumentState.Request(who: "ada", at: now + 63, why: "")
    perform(server, at: now + 63) { state, configured throws(AdministrationError) in
      try state.remove(lost.id, configured: configured, request)
    }
    server = configure(server, [apex], isRestart: isRestart, at: now + 64)
    #expect(listed("api.x.test", by: server).isEmpty)
  }

  @Test(
    "is left while the wildcard has its key: that stays under its name after the wildcard has others",
    arguments: [false, true])
  func isLostWithItsKey(isRestart: Bool) {
    let now = Self.begin
    let (apex, lost) = (endpoint(1, "x.test", "*.x.test"), endpoint(2, "api.x.test"))
    var server = start([apex, lost], at: now)
    for each in [apex, lost] { show(1, under: 101, at: each, server, now) }
    server = configure(server, [apex], isRestart: isRestart, at: now + 60)
    #expect(listed("api.x.test", by: server) == [pin(1)])
    show(2, under: 101, at: apex, server, now + 61)
    #expect(listed("*.x.test", by: server) == [pin(1), pin(2)])
    #expect(listed("api.x.test", by: server) == [pin(1)])
  }

  @Test(
    "left before the wildcard came, or lost that for a moment: its key is listed under its name",
    arguments: [false, true], [false, true])
  func leftBefore(isRestart: Bool, hadWildcard: Bool) {
    let now = Self.begin
    let (wide, other) = (endpoint(1, "*.x.test"), endpoint(3, "o.test"))
    let narrow = WatchedEndpoint(fqdn: HostName.literal("a.x.test"))
    let before = hadWildcard ? [narrow, other, wide] : [narrow, other]
    var server = start(before, at: now)
    // The wildcard first: else it would join the list of a host under another CA.
    if hadWildcard { show(3, under: 103, at: wide, server, now) }
    for _ in 0..<3 { show(1, under: hadWildcard ? 103 : 101, at: narrow, server, now) }
    show(9, under: 109, at: other, server, now)
    if hadWildcard {
      server = configure(server, [wide, other], isRestart: isRestart, at: now + 60)
      #expect(listed("a.x.test", by: server) == [pin(1)])
    }
    server = configure(server, [other], isRestart: isRestart, at: now + 61)
    #expect(listed("a.x.test", by: server) == [pin(1)])
    server = configure(server, [wide, other], isRestart: isRestart, at: now + 62)
    for second in 63...65 as ClosedRange<Int64> {
      show(3, under: hadWildcard ? 103 : 101, at: wide, server, now + second)
    }
    #expect(listed("a.x.test", by: server) == [pin(1)])
    #expect(listed("*.x.test", by: server) == [pin(3)])
  }

  @Test("left with a key of a moment: that one does not stay under its name")
  func leftWithPassing() {
    let now = Self.begin
    let wide = endpoint(1, "*.x.test")
    let narrow = WatchedEndpoint(fqdn: HostName.literal("a.x.test"))
    var server = start([narrow, wide], at: now)
    show(3, under: 101, at: wide, server, now)
    for _ in 0..<3 { show(1, under: 101, at: narrow, server, now) }
    for second in 1...3 as ClosedRange<Int64> {
      show(66, under: 101, at: narrow, server, now + second)
    }
    #expect(listed("a.x.test", by: server) == [pin(1), pin(66)])
    for second in 4...60 as ClosedRange<Int64> {
      show(1, under: 101, at: narrow, server, now + second)
    }
    server = configure(server, [wide], isRestart: false, at: now + 61)
    #expect(listed("a.x.test", by: server) == [pin(1)])
  }

  @Test(
    "comes back below a wildcard after its key was revoked without it, and is no first sight",
    arguments: [false, true])
  func comesBackBelow(isRestart: Bool) {
    let now = Self.begin
    let other = endpoint(3, "o.test")
    let narrow = endpoint(2, "a.x.test")
    let wide = endpoint(1, "*.x.test")
    var server = start([narrow, other], at: now)
    show(1, under: 101, at: narrow, server, now)
    show(9, under: 109, at: other, server, now)
    server = configure(server, [other], isRestart: isRestart, at: now + 60)
    server = configure(server, [wide, other], isRestart: isRestart, at: now + 61)
    for second in 62...64 as ClosedRange<Int64> {
      show(3, under: 101, at: wide, server, now + second)
    }
    #expect(listed("*.x.test", by: server) == [pin(3)])
    // Clients kept it until then.
    #expect(listed("a.x.test", by: server) == [pin(1)])
    let request = DocumentState.Request(who: "ada", at: now + 62, why: "")
    perform(server, at: now + 62) { state, configured throws(AdministrationError) in
      try state.revoke(pin(1), at: narrow.id, configured: configured, force: true, request)
    }
    server = configure(server, [wide, narrow, other], isRestart: isRestart, at: now + 63)
    #expect(listed("a.x.test", by: server).isEmpty)
    for second in 65...68 as ClosedRange<Int64> {
      show(66, under: 107, at: narrow, server, now + second)
    }
    #expect(listed("a.x.test", by: server).isEmpty)
    for second in 69...71 as ClosedRange<Int64> {
      show(4, under: 101, at: narrow, server, now + second)
    }
    #expect(listed("a.x.test", by: server) == [pin(4)])
  }

  @Test(
    "is left by an endpoint that stays, or has a wildcard that one in force crosses: its key stays under its name",
    arguments: [false, true], ["api.x.test", "**.api.x.test"])
  func isLostAlone(isRestart: Bool, pattern: String) {
    let now = Self.begin
    let apex = endpoint(1, "x.test", "*.x.test")
    let (gate, after) = (endpoint(2, pattern, "y.test"), endpoint(2, "y.test"))
    var server = start([apex, gate], at: now)
    show(1, under: 101, at: apex, server, now)
    show(2, under: 101, at: gate, server, now + 1)
    server = configure(server, [apex, after], isRestart: isRestart, at: now + 60)
    #expect(listed(pattern, by: server) == [pin(2)])
    server = configure(server, [apex], isRestart: isRestart, at: now + 61)
    #expect(listed(pattern, by: server) == [pin(2)])
  }

  @Test(
    "comes back beside the wildcard that had its hosts meanwhile: what people said of it is as it was",
    arguments: [false, true])
  func wordStays(isRestart: Bool) {
    let now = Self.begin
    let narrow = WatchedEndpoint(fqdn: HostName.literal("a.x.test"))
    let wide = WatchedEndpoint(
      fqdn: HostName.literal("x.test"), patterns: endpoint(1, "*.x.test").patterns)
    var server = start([narrow, wide], at: now)
    for each in [narrow, wide] { show(1, under: 101, at: each, server, now) }
    func set(_ approval: ApprovalMode, at endpoint: WatchedEndpoint) {
      let request = DocumentState.Request(who: "ada", at: now + 1, why: "")
      perform(server, at: now + 1) { state, _ in
        state.change(endpoint.id, interval: nil, approval: approval, isPaused: nil, request)
      }
    }
    func watching(_ endpoints: [WatchedEndpoint], _ time: Int64) -> [ApprovalMode?] {
      server = configure(server, endpoints, isRestart: isRestart, at: now + time)
      return server.machine.endpoints.map(\.approval)
    }
    set(.manual, at: narrow)
    #expect(watching([wide], 60) == [.manual])
    // It was passed on once: a person may decide otherwise.
    set(.automatic, at: wide)
    #expect(watching([wide], 61) == [.automatic])
    #expect(watching([narrow, wide], 62) == [.manual, .automatic])
    // It leaves once more, and passes it on once more.
    #expect(watching([wide], 63) == [.manual])
  }
}
