import TestSupport
import Testing

@testable import HTTPServing
@testable import RegistryServer

@Suite("Deadlines that no traffic moves", .timeLimit(.minutes(2))) struct HTTPDeadlineTests {
  /// Sends a first text and then another one again and again, and says what came back.
  private static func drip(
    _ first: String, _ drop: String, _ server: HTTPServer
  ) async throws -> String? {
    let client = try RawConnection(server.address)
    client.send(first)
    let dripping = Task {
      while !Task.isCancelled, client.send(drop) {
        // why: the drip itself; the server's clock is the kernel's.
        try? await Task.sleep(for: .milliseconds(20))
      }
    }
    defer { dripping.cancel() }
    return try await client.readToEnd()
  }

  /// All long but one.
  private static func limits(_ phase: WritableKeyPath<HTTPLimits, Duration>) -> HTTPLimits {
    var limits = HTTPLimits()
    for path in [\HTTPLimits.idle, \.header, \.body, \.answer, \.later] {
      limits[keyPath: path] = .seconds(600)
    }
    limits[keyPath: phase] = .milliseconds(300)
    return limits
  }

  @Test(
    "a request that drips in is cut, in each of its parts",
    arguments: [
      (\HTTPLimits.header, "", "G"),
      (\.header, "GET /ok", "k"),
      (\.header, "GET /ok HTTP/1.1\r\nHost: x\r\n", "X: y\r\n"),
      (\.header, "GET /ok HTTP/1.1\r\nHost: x\r\nX: ", "y"),
      (\.header, "", "\r\n"),
      (\.body, "POST /large HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n", "a"),
      (
        \.body, "POST /large HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
        "1\r\na\r\n"
      ),
      (\.body, "POST /large HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5;", "a"),
      (
        \.body, "POST /large HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
        "X: y\r\n"
      ),
    ] as [(WritableKeyPath<HTTPLimits, Duration> & Sendable, String, String)])
  func drips(
    _ phase: WritableKeyPath<HTTPLimits, Duration> & Sendable, _ first: String, _ drop: String
  ) async throws {
    let server = try HTTPBench.start(Self.limits(phase))
    #expect(try await Self.drip(first, drop, server) == "")
    #expect(await eventually { server.openConnections == 0 && server.bodyBytes == 0 })
    await server.stop()
  }

  @Test("a connection that asks nothing more is closed")
  func idle() async throws {
    let server = try HTTPBench.start(Self.limits(\.idle))
    let client = try RawConnection(server.address)
    client.send("GET /ok HTTP/1.1\r\nHost: x\r\n\r\n")
    #expect(try await client.readToEnd()?.hasSuffix("ok") == true)
    await server.stop()
  }

  @Test("a next request that drips in is cut as well")
  func second() async throws {
    var limits = Self.limits(\.header)
    (limits.header, limits.idle) = (.seconds(1), .milliseconds(300))
    let server = try HTTPBench.start(limits)
    let answer = try await Self.drip("GET /ok HTTP/1.1\r\nHost: x\r\n\r\nGET /ok", "k", server)
    #expect(answer?.components(separatedBy: "HTTP/1.1 ").count == 2)
    let other = try await Self.drip(
      "GET /ok HTTP/1.1\r\nHost: x\r\n\r\nGET /ok HTTP/1.1\r\n", "X: y\r\n", server)
    #expect(other?.components(separatedBy: "HTTP/1.1 ").count == 2)
    await server.stop()
  }

  @Test("an answer that nobody reads is cut, one that came later too")
  func slowReader() async throws {
    let large = HTTPResponse(
      status: 200, headers: [], body: [UInt8](repeating: 0x20, count: 64 << 20))
    let server = try HTTPServer(
      listen: try #require(ListenAddress("127.0.0.1:0")), limits: Self.limits(\.answer),
      routing: { _, _ in .noBody },
      handler: { $0.path == "/now" ? .now(large) : .later { large } })
    for path in ["/now", "/later"] {
      let client = try RawConnection(server.address)
      client.send("GET \(path) HTTP/1.1\r\nHost: x\r\n\r\n")
      #expect(await eventually { server.openConnections == 1 })
      #expect(await eventually { server.openConnections == 0 })
      #expect(try #require(try await client.readToEnd()).utf8.count < 64 << 20)
    }
    await server.stop()
  }

  @Test("whoever keeps a request coming in time is served, however small its pieces")
  func pieces() async throws {
    let server = try HTTPBench.start()
    let client = try RawConnection(server.address)
    let request =
      "POST /body HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello"
    for byte in request.utf8 {
      client.send([byte])
      // why: lets the kernel deliver most bytes one by one.
      await Task.yield()
    }
    #expect(try await client.readToEnd()?.hasSuffix("hello") == true)
    await server.stop()
  }

  @Test("the operator's time-outs count for each phase, and 0 is no endless one")
  func configured() {
    let standard = HTTPConfiguration().limits
    #expect([standard.header, standard.body, standard.answer].allSatisfy { $0 == .seconds(5) })
    #expect(standard.later > standard.answer)
    let own = HTTPConfiguration(readTimeout: 1500, writeTimeout: 2500).limits
    #expect(own.header == .milliseconds(1500) && own.body == own.header)
    #expect(own.answer == .milliseconds(2500))
    let none = HTTPConfiguration(readTimeout: 0, writeTimeout: 0).limits
    #expect(none.header == .seconds(30) && none.body == none.header)
    #expect(none.answer == .seconds(120))
  }
}
