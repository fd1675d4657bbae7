import TestSupport
import Testing

@testable import HTTPServing
@testable import RegistryServer

@Suite("Limits on connections", .timeLimit(.minutes(2))) struct HTTPConnectionLimitTests {
  private static let ask = "GET /ok HTTP/1.1\r\nHost: x\r\n\r\n"

  @Test("one address has so many connections, and one that ends makes room")
  func perAddress() async throws {
    var limits = HTTPLimits()
    limits.connectionsPerAddress = 3
    let server = try HTTPBench.start(limits, listen: "0.0.0.0:0")
    let address = try #require(ListenAddress("127.0.0.1:\(server.address.port)"))
    var clients: [RawConnection] = []
    for _ in 0..<3 {
      let client = try RawConnection(address)
      client.send(Self.ask)
      #expect(try await client.read(until: "ok") != nil)
      clients.append(client)
    }
    let fourth = try RawConnection(address)
    fourth.send(Self.ask)
    #expect(try await fourth.readToEnd() == "")
    clients.removeLast()
    #expect(await eventually { server.openConnections == 2 })
    let fifth = try RawConnection(address)
    fifth.send(Self.ask)
    #expect(try await fifth.read(until: "ok") != nil)
    withExtendedLifetime(clients) {}
    await server.stop()
  }

  @Test("addresses of one IPv6 /64 have as many together, and make room for each other")
  func perNetwork() throws {
    var limits = HTTPLimits()
    limits.connectionsPerAddress = 2
    let deadlines = ConnectionDeadlines(limits: limits)
    let pointer = try #require(OpaquePointer(bitPattern: 1))
    // Nothing here touches the socket or the library's connection.
    func begin(_ peer: String) -> HTTPConnection? {
      let connection = HTTPConnection(pointer: pointer, descriptor: -1, peer: peer)
      guard deadlines.reserve(connection.caller) else { return nil }
      deadlines.begin(connection)
      return connection
    }
    let first = try #require(begin("2001:db8::1"))
    #expect(begin("2001:db8::2") != nil)
    #expect(begin("2001:db8:0:0:ffff::3") == nil)
    #expect(begin("2001:db8:0:1::1") != nil)
    deadlines.end(first)
    #expect(begin("2001:db8::4") != nil)
  }

  @Test("on loopback, where a proxy stands in front, no address is limited")
  func loopback() async throws {
    var limits = HTTPLimits()
    limits.connectionsPerAddress = 1
    let server = try HTTPBench.start(limits)
    let clients = try (0..<3).map { _ in try RawConnection(server.address) }
    for client in clients {
      client.send(Self.ask)
      #expect(try await client.read(until: "ok") != nil)
    }
    await server.stop()
  }

  @Test("beyond the limit for all, connections wait until others end")
  func inAll() async throws {
    var limits = HTTPLimits()
    limits.connections = 4
    limits.idle = .milliseconds(300)
    let server = try HTTPBench.start(limits)
    let clients = try (0..<12).map { _ in
      let client = try RawConnection(server.address)
      client.send(Self.ask)
      return client
    }
    for client in clients { #expect(try await client.readToEnd()?.hasSuffix("ok") == true) }
    await server.stop()
  }
}
