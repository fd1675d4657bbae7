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
    await server.service.stop()
  }

  @Test("takes over no key that is not listed for its hosts, and none that a person took out")
  func others() throws {
    let (a, b) = (DocumentStateTests.endpoints[0], DocumentStateTests.endpoints[1])
    var state = DocumentStateTests.settled()
    state.publish([a, b])
    let moved = WatchedEndpoint(fqdn: a.fqdn, port: 8443)
    var (next, listed) = (state, ListedKeys())
    let isTaken = next.inheritKeys([moved, b], &listed)
    #expect(isTaken)
    #expect(next.keysByEndpoint[moved.id]?.keys.map(\.pin) == [pin(1)])
    #expect(next.keysByEndpoint[b.id] == state.keysByEndpoint[b.id])
    next = state
    let other = WatchedEndpoint(fqdn: HostName.literal("c.example"))
    let isOther = next.inheritKeys([b, other], &listed)
    #expect(!isOther)
    next = state
    _ = try next.remove(a.id, configured: [a, b], DocumentStateTests.request)
    let isRemoved = next.inheritKeys([moved, b], &listed)
    #expect(!isRemoved)
    #expect(next.keysByEndpoint[moved.id] == nil)
  }
}
