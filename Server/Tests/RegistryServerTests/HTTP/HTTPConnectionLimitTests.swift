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
    func connection(_ peer: String) -> HTTPConnection {
      HTTPConnection(pointer: pointer, descriptor: -1, peer: peer)
    }
    let first = connection("2001:db8::1")
    #expect(deadlines.begin(first, isLimited: true))
    #expect(deadlines.begin(connection("2001:db8::2"), isLimited: true))
    let third = connection("2001:db8:0:0:ffff::3")
    #expect(!deadlines.begin(third, isLimited: true))
    #expect(deadlines.begin(connection("2001:db8:0:1::1"), isLimited: true))
    deadlines.end(third)
    deadlines.end(first)
    #expect(deadlines.begin(connection("2001:db8::4"), isLimited: true))
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
