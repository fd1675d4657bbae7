import SslPinningPlatform
import TestSupport
import Testing

@testable import HTTPServing
@testable import RegistryServer

@Suite("Answers that come later", .timeLimit(.minutes(2))) struct HTTPLaterAnswerTests {
  private static let ask = "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n"

  /// A server whose one path is answered later, by `work`.
  private static func start(
    _ limits: HTTPLimits = HTTPLimits(), work: @escaping @Sendable () async -> HTTPResponse
  ) throws -> HTTPServer {
    try HTTPServer(
      listen: try #require(ListenAddress("127.0.0.1:0")), limits: limits,
      routing: { _, _ in .noBody }, handler: { _ in .later(work) })
  }

  @Test("hundreds wait at once, each on nobody's thread, while others are served")
  func many() async throws {
    let gate = Gate()
    var limits = HTTPLimits()
    limits.connections = 2048
    let server = try Self.start(limits) {
      await gate.wait()
      return HTTPBench.text("opened")
    }
    let other = try HTTPBench.start()
    let clients = try (0..<500).map { _ in
      let client = try RawConnection(server.address)
      client.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
      return client
    }
    #expect(await eventually { server.suspendedConnections == 500 })
    let good = try await RawConnection.ask(
      other.address, "GET /late HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    #expect(good.hasSuffix("late"))
    gate.open()
    for client in clients { #expect(try await client.readToEnd()?.hasSuffix("opened") == true) }
    #expect(server.suspendedConnections == 0)
    await server.stop()
    await other.stop()
  }

  @Test("the connection goes on behind a late answer")
  func keepAlive() async throws {
    let server = try HTTPBench.start()
    let client = try RawConnection(server.address)
    for _ in 0..<3 {
      client.send("GET /late HTTP/1.1\r\nHost: x\r\n\r\n")
      #expect(try await client.read(until: "\r\n\r\nlate") != nil)
    }
    await server.stop()
  }

  @Test("work is cancelled when its client goes away, whatever it sent behind its request")
  func disconnects() async throws {
    let cancelled = Locked(0)
    let server = try Self.start {
      await HTTPBench.untilCancelled()
      cancelled.withLock { $0 += 1 }
      return HTTPBench.text("cancelled")
    }
    do {
      let clients = try (0..<50).map { number in
        let client = try RawConnection(server.address)
        client.send(Self.ask + (number % 2 == 0 ? Self.ask : ""))
        return client
      }
      #expect(await eventually { server.suspendedConnections == 50 })
      #expect(cancelled.withLock { $0 } == 0)
      withExtendedLifetime(clients) {}
    }
    #expect(await eventually { server.openConnections == 0 })
    #expect(cancelled.withLock { $0 } >= 50)
    await server.stop()
  }

  @Test("a client that only ends its sending side gets the last answer")
  func halfClosed() async throws {
    let server = try HTTPBench.start()
    let client = try RawConnection(server.address)
    client.send(Self.ask)
    #expect(await eventually { server.suspendedConnections == 1 })
    client.endSending()
    #expect(try await client.readToEnd()?.hasSuffix("cancelled") == true)
    await server.stop()
  }

  @Test("a stop ends every wait at once, with its last answer")
  func stop() async throws {
    var limits = HTTPLimits()
    // Far beyond the test's own limit: only a stop that does not wait for it comes back in time.
    limits.drain = .seconds(600)
    let server = try HTTPBench.start(limits)
    let clients = try (0..<100).map { _ in
      let client = try RawConnection(server.address)
      client.send(Self.ask)
      return client
    }
    #expect(await eventually { server.suspendedConnections == 100 })
    await server.stop()
    for client in clients {
      let answer = try #require(try await client.readToEnd())
      #expect(answer.hasPrefix("HTTP/1.1 200 ") && answer.hasSuffix("cancelled"), "\(answer)")
      #expect(answer.contains("Connection: close\r\n"))
    }
    #expect(server.openConnections == 0)
  }

  @Test("work that does not heed a stop is answered for, and its late answer goes nowhere")
  func stubborn() async throws {
    var limits = HTTPLimits()
    limits.drain = .milliseconds(200)
    let gate = Gate()
    let server = try Self.start(limits) {
      await gate.wait()
      return HTTPBench.text("opened")
    }
    let client = try RawConnection(server.address)
    client.send(Self.ask)
    #expect(await eventually { server.suspendedConnections == 1 })
    await server.stop()
    let answer = try #require(try await client.readToEnd())
    #expect(answer.isEmpty || answer.hasPrefix("HTTP/1.1 503 "), "\(answer)")
    gate.open()
  }

  @Test("work is told when its time is up, and what it has is sent")
  func late() async throws {
    var limits = HTTPLimits()
    limits.later = .milliseconds(300)
    let server = try HTTPBench.start(limits)
    let client = try RawConnection(server.address)
    client.send(Self.ask)
    #expect(try await client.read(until: "\r\n\r\ncancelled") != nil)
    client.send("GET /ok HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    #expect(try await client.readToEnd()?.hasSuffix("ok") == true)
    await server.stop()
  }

  @Test("work that does not heed its time is answered for")
  func tooLate() async throws {
    var limits = HTTPLimits()
    limits.later = .milliseconds(200)
    limits.answer = .seconds(1)
    let gate = Gate()
    let server = try Self.start(limits) {
      await gate.wait()
      return HTTPBench.text("opened")
    }
    let answer = try await RawConnection.ask(server.address, Self.ask)
    #expect(answer.hasPrefix("HTTP/1.1 503 ") && answer.contains("Connection: close\r\n"))
    gate.open()
    await server.stop()
  }

  @Test("waits longer than a silent client would be left alone")
  func outlivesIdle() async throws {
    var limits = HTTPLimits()
    (limits.idle, limits.body, limits.later) = (
      .milliseconds(100), .milliseconds(100), .milliseconds(900)
    )
    let server = try HTTPBench.start(limits)
    let client = try RawConnection(server.address)
    client.send(Self.ask)
    // Its own time is up before the answer, so this is more than an idle connection gets.
    #expect(try await client.read(until: "\r\n\r\ncancelled") != nil)
    await server.stop()
  }
}
