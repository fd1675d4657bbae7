import SslPinningPlatform
import TestSupport
import Testing

@testable import HTTPServing
@testable import RegistryServer

@Suite("Strangers do not starve readers", .timeLimit(.minutes(2))) struct HTTPStrangerTests {
  private static let ask = "GET /ok HTTP/1.1\r\nHost: x\r\n\r\n"
  private static let wait = "GET /wait HTTP/1.1\r\nHost: x\r\n"

  /// A server like ``HTTPBench``'s that trusts who sends `X-Token: good`, or another but `bad`, and believes these proxies.
  private static func start(
    _ limits: HTTPLimits, listen: String = "127.0.0.1:0", proxies: [String] = []
  ) throws -> HTTPServer {
    try HTTPServer(
      listen: try #require(ListenAddress(listen)), limits: limits,
      proxies: TrustedProxies(networks: try proxies.map { try AddressNetwork($0) }),
      routing: HTTPBench.rule,
      trusted: { _, headers in headers["X-Token"].flatMap { $0 == "bad" ? nil : $0 } },
      handler: { request in
        let answer = HTTPBench.answer(request)
        guard case .later(_, let work) = answer else { return answer }
        return .later(isTrusted: request.headers["X-Token"] == "good", work)
      })
  }

  private static func connect(
    _ server: HTTPServer, _ count: Int, _ request: String
  ) throws -> [RawConnection] {
    try (0..<count).map { _ in
      let client = try RawConnection(server.address)
      client.send(request)
      return client
    }
  }

  @Test("on a quarter of the connections they wait at most, and what is ready is answered at once")
  func quarter() async throws {
    var limits = HTTPLimits()
    limits.connections = 40
    let server = try Self.start(limits)
    let clients = try Self.connect(server, 30, "\(Self.wait)\r\n")
    #expect(await eventually { server.suspendedConnections == 10 && server.openConnections == 30 })
    let beyond = try await RawConnection.ask(
      server.address, "\(Self.wait)Connection: close\r\n\r\n")
    #expect(beyond.hasPrefix("HTTP/1.1 503 ") && beyond.contains("Retry-After: 1\r\n"))
    for _ in 0..<10 {
      let reader = try RawConnection(server.address)
      reader.send(Self.ask)
      #expect(try await reader.read(until: "ok") != nil)
    }
    let trusted = try Self.connect(server, 2, "\(Self.wait)X-Token: good\r\n\r\n")
    #expect(await eventually { server.suspendedConnections == 12 })
    withExtendedLifetime((clients, trusted)) {}
    await server.stop()
  }

  @Test("one that has waited makes room for another")
  func room() async throws {
    var limits = HTTPLimits()
    limits.connections = 4
    let server = try Self.start(limits)
    for _ in 0..<3 {
      let client = try RawConnection(server.address)
      client.send("\(Self.wait)\r\n")
      #expect(await eventually { server.suspendedConnections == 1 })
      client.endSending()
      #expect(try await client.readToEnd()?.hasSuffix("cancelled") == true)
      #expect(server.suspendedConnections == 0)
    }
    await server.stop()
  }

  @Test("behind a trusted proxy each waits for itself")
  func waitingOfOne() async throws {
    var limits = HTTPLimits()
    limits.waitingPerAddress = 2
    let server = try Self.start(limits, proxies: ["127.0.0.1"])
    func clients(_ address: String, _ count: Int) throws -> [RawConnection] {
      try Self.connect(server, count, "\(Self.wait)X-Forwarded-For: \(address)\r\n\r\n")
    }
    let first = try clients("2001:db8::1", 2)
    #expect(await eventually { server.suspendedConnections == 2 })
    let same = try clients("2001:db8::2", 1)
    #expect(try await same[0].read(until: "\r\n")?.hasPrefix("HTTP/1.1 503 ") == true)
    let other = try clients("2001:db8:0:1::1", 2)
    #expect(await eventually { server.suspendedConnections == 4 })
    // All of a /56 are two.
    let beyond = try clients("2001:db8:0:2::1", 1)
    #expect(try await beyond[0].read(until: "\r\n")?.hasPrefix("HTTP/1.1 503 ") == true)
    withExtendedLifetime((first, other)) {}
    await server.stop()
  }

  @Test("idle connections, and heads that never end, give way where all are taken")
  func full() async throws {
    for beginning in ["", Self.ask, "GET /ok HTTP/1.1\r\nHo"] {
      var limits = HTTPLimits()
      limits.connections = 16
      (limits.idle, limits.header) = (.seconds(60), .seconds(60))
      let server = try Self.start(limits)
      let clients = try Self.connect(server, 16, beginning)
      // In a crowd an answer is its connection's last.
      if beginning != Self.ask {
        #expect(await eventually { server.openConnections == 16 })
      }
      for _ in 0..<5 {
        let reader = try RawConnection(server.address)
        reader.send(Self.ask)
        #expect(try await reader.read(until: "ok") != nil, "\(beginning)")
      }
      withExtendedLifetime(clients) {}
      await server.stop()
    }
  }

  @Test(
    "whoever has more than a share loses them first, however new they are, and a trusted proxy may have many",
    arguments: [(2, []), (8, ["::1"])])
  func most(_ count: Int, _ proxies: [String]) async throws {
    var limits = HTTPLimits()
    // With 14 a crowd begins, in which one address may have 5.
    (limits.connections, limits.connectionsPerAddress) = (16, 20)
    (limits.idle, limits.header) = (.seconds(60), .seconds(60))
    let server = try Self.start(limits, listen: "[::]:0", proxies: proxies)
    let port = server.address.port
    let (here, there) = (
      try #require(ListenAddress("[::1]:\(port)")),
      try #require(ListenAddress("127.0.0.1:\(port)"))
    )
    let own = try (0..<count).map { _ in try RawConnection(here) }
    for client in own {
      client.send(Self.ask)
      #expect(try await client.read(until: "ok") != nil)
    }
    let others = try (count..<14).map { _ in try RawConnection(there) }
    #expect(await eventually { server.isCrowded })
    let last = try (14..<16).map { _ in try RawConnection(here) }
    #expect(await eventually { server.openConnections == 16 })
    // why: idle for a quarter of a second they could be cut, if they were somebody's too many.
    try await Task.sleep(for: .milliseconds(300))
    let reader = try RawConnection(here)
    for client in [reader] + own {
      client.send(Self.ask)
      #expect(try await client.read(until: "ok") != nil)
    }
    withExtendedLifetime((others, last)) {}
    await server.stop()
  }

  @Test("connections of trusted proxies are not counted as one caller's")
  func proxyConnections() async throws {
    var limits = HTTPLimits()
    limits.connectionsPerAddress = 1
    let server = try Self.start(limits, listen: "0.0.0.0:0", proxies: ["127.0.0.1"])
    let address = try #require(ListenAddress("127.0.0.1:\(server.address.port)"))
    let clients = try (0..<3).map { _ in try RawConnection(address) }
    for client in clients {
      client.send(Self.ask)
      #expect(try await client.read(until: "ok") != nil)
    }
    await server.stop()
  }

  @Test(
    "who called is who a trusted proxy names, and nobody else's word counts",
    arguments: [
      (["127.0.0.0/8"], "X-Forwarded-For: 203.0.113.9\r\n", "203.0.113.9"),
      (
        ["127.0.0.0/8"], "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-For: 203.0.113.9\r\n",
        "203.0.113.9"
      ),
      (["10.0.0.0/8"], "X-Forwarded-For: 203.0.113.9\r\n", "127.0.0.1"),
      ([], "X-Forwarded-For: 203.0.113.9\r\n", "127.0.0.1"),
      (["127.0.0.0/8"], "Forwarded: for=203.0.113.9\r\n", "127.0.0.1"),
    ])
  func forwarded(_ proxies: [String], _ line: String, _ client: String) async throws {
    let server = try Self.start(HTTPLimits(), proxies: proxies)
    let answer = try await RawConnection.ask(
      server.address, "GET /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\(line)\r\n")
    #expect(answer.hasSuffix("from \(client)"), "\(answer)")
    await server.stop()
  }

  @Test("bodies take nothing from those of who has shown another token, or any")
  func bodies() async throws {
    var limits = HTTPLimits()
    (limits.bodies, limits.trustedBodies) = (1500, 1000)
    let server = try Self.start(limits)
    let head = "POST /body HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 1000\r\n"
    let half = try Self.connect(server, 1, "\(head)\r\n\(repeated("a", 999))")
    #expect(await eventually { server.bodyBytes == 999 })
    let stranger = try await RawConnection.ask(
      server.address, "\(head)X-Token: bad\r\n\r\n\(repeated("a", 1000))")
    #expect(stranger.hasPrefix("HTTP/1.1 503 "))
    let trusted = try await RawConnection.ask(
      server.address, "\(head)X-Token: good\r\n\r\n\(repeated("a", 1000))")
    #expect(trusted.hasPrefix("HTTP/1.1 200 "))
    let other = try Self.connect(
      server, 1, "\(head)X-Token: other\r\n\r\n\(repeated("a", 999))")
    #expect(await eventually { server.bodyBytes == 1998 })
    for (token, status) in [("other", 503), ("good", 200)] {
      let answer = try await RawConnection.ask(
        server.address, "\(head)X-Token: \(token)\r\n\r\n\(repeated("a", 1000))")
      #expect(answer.hasPrefix("HTTP/1.1 \(status) "))
    }
    withExtendedLifetime((half, other)) {}
    await server.stop()
  }
}
