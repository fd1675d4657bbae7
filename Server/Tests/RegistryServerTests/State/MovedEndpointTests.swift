import SslPinningRules
import Testing

@testable import RegistryCore
@testable import RegistryServer

@Suite("An endpoint that moves in the configuration", .timeLimit(.minutes(2)))
struct MovedEndpointTests {
  private static let before =
    "[{fqdn: a.test, domainName: x.test, file: all.json}, {fqdn: b.test, file: all.json}]"

  @Test(
    "keeps the keys of its hosts, and their CA: what it shows next is no first sight",
    arguments: [
      "fqdn: a.test, port: 8443", "fqdn: a.test, address: 127.0.0.9", "fqdn: origin.test",
    ])
  func moves(_ moved: String) async throws {
    let server = try ScriptedService(keys: Self.before)
    func show(_ key: UInt8, under authority: UInt8, at hosts: [String]) {
      for host in hosts {
        server.observer.show(
          LedgerBench.probe([(LedgerBench.here, "", .key(key, under: authority))]), at: host)
      }
    }
    let names = ["a.test", "origin.test"]
    func pins() async throws -> [SPKIPin]? { try await server.pins(in: "all.json")["x.test"] }
    show(1, under: 100, at: names)
    show(2, under: 100, at: ["b.test"])
    try await server.start()
    for name in names { server.observer.show(.unreachable(reason: "it is down"), at: name) }
    try await server.reload(
      keys: "[{\(moved), domainName: x.test, file: all.json}, {fqdn: b.test, file: all.json}]")
    await server.service.probe("b.test")
    #expect(try await pins() == [pin(1)])
    show(66, under: 200, at: names)
    for name in names { await server.service.probe(name) }
    #expect(try await pins() == [pin(1)])
    show(3, under: 100, at: names)
    for name in names { await server.service.probe(name) }
    #expect(try await pins() == [pin(1), pin(3)])
    for name in names { server.observer.show(.unreachable(reason: "it is down"), at: name) }
    try await server.reload(keys: Self.before)
    await server.service.probe("b.test")
    #expect(try await pins() == [pin(1), pin(3)])
    await server.service.stop()
  }

  @Test("comes back to the keys and the CA that it had elsewhere, and to none that left the list")
  func comesBack() {
    let (a, b) = (DocumentStateTests.endpoints[0], DocumentStateTests.endpoints[1])
    var state = DocumentStateTests.settled()
    let moved = WatchedEndpoint(fqdn: a.fqdn, port: 8443)
    state.keysByEndpoint[moved.id] = EndpointKeys(
      keys: [KnownKey(pin: pin(3), firstSeen: 15, lastSeen: 20)], authorities: [pin(101): 20])
    // As after a move: where it was has no record any more.
    state.keysByEndpoint[a.id] = nil
    state.follow([moved, b])
    let isTaken = state.follow([a, b])
    #expect(isTaken)
    #expect(state.keysByEndpoint[a.id]?.keys.map(\.pin) == [pin(3)])
    #expect(state.keysByEndpoint[a.id]?.authorities == [pin(101): 20])
    let isTakenAgain = state.follow([a, b])
    #expect(!isTakenAgain)
    // What it shows since counts, and what it lost since does not come back.
    state.keysByEndpoint[a.id] = EndpointKeys(
      keys: [KnownKey(pin: pin(4), firstSeen: 30, lastSeen: 30)])
    let isOld = state.follow([a, b])
    #expect(!isOld)
  }

  @Test(
    "takes over nothing of a neighbour that left, where both show one key: its CAs are not this one's"
  )
  func neighbour() {
    let (a, b) = (DocumentStateTests.endpoints[0], DocumentStateTests.endpoints[1])
    var state = DocumentStateTests.settled()
    let shared = KnownKey(pin: pin(1), firstSeen: 1, lastSeen: 9)
    state.keysByEndpoint[a.id] = EndpointKeys(keys: [shared], authorities: [pin(101): 9])
    state.keysByEndpoint[b.id] = EndpointKeys(keys: [shared], authorities: [pin(102): 9])
    state.follow([a, b])
    let before = state.keysByEndpoint[a.id]
    state.follow([a])
    #expect(state.keysByEndpoint[a.id] == before)
  }

  @Test("waits for a person at its new place, too, if somebody said so")
  func approval() {
    let (a, b) = (DocumentStateTests.endpoints[0], DocumentStateTests.endpoints[1])
    var state = DocumentStateTests.settled()
    state.follow([a, b])
    _ = state.change(
      a.id, interval: nil, approval: .manual, isPaused: nil, DocumentStateTests.request)
    let moved = WatchedEndpoint(fqdn: a.fqdn, port: 8443)
    state.follow([moved, b])
    #expect(state.endpoints(configured: [moved, b]).map(\.approval) == [.manual, nil])
  }

  @Test("takes over no key that is not listed for its hosts, and none that a person took out")
  func others() throws {
    let (a, b) = (DocumentStateTests.endpoints[0], DocumentStateTests.endpoints[1])
    var state = DocumentStateTests.settled()
    state.follow([a, b])
    let moved = WatchedEndpoint(fqdn: a.fqdn, port: 8443)
    var next = state
    let isTaken = next.follow([moved, b])
    #expect(isTaken)
    #expect(next.keysByEndpoint[moved.id]?.keys.map(\.pin) == [pin(1)])
    #expect(next.keysByEndpoint[b.id] == state.keysByEndpoint[b.id])
    next = state
    let other = WatchedEndpoint(fqdn: HostName.literal("c.example"))
    next.follow([b, other])
    #expect(next.keysByEndpoint[other.id] == nil)
    next = state
    _ = try next.remove(a.id, configured: [a, b], DocumentStateTests.request)
    let isRemoved = next.follow([moved, b])
    #expect(!isRemoved)
    #expect(next.keysByEndpoint[moved.id] == nil)
  }
}
