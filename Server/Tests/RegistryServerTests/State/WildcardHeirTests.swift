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
}
