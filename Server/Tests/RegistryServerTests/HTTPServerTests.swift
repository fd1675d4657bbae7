import Foundation
import TestSupport
import Testing

@testable import HTTPServing
@testable import RegistryServer

@Suite("The HTTP server bounds what a client may take", .timeLimit(.minutes(2)))
struct HTTPServerTests {
  static func start(
    _ listen: String = "127.0.0.1:0", _ limits: HTTPLimits = HTTPLimits(),
    body: [UInt8] = Array("{}".utf8)
  ) throws -> HTTPServer {
    let response = HTTPResponse(status: 200, headers: JSONHeaders.uncached, body: body)
    return try HTTPServer(
      listen: try #require(ListenAddress(listen)), limits: limits, routing: { _, _ in .noBody },
      handler: { _ in .now(response) })
  }

  @Test("cuts a request that drips in, however steadily")
  func slowDrip() async throws {
    var limits = HTTPLimits()
    limits.header = .milliseconds(500)
    let server = try Self.start("127.0.0.1:0", limits)
    let connection = try RawConnection(server.address)
    connection.send("GET / HTTP/1.1\r\nHost: x\r\n")
    let dripping = Task {
      // A byte every 100 ms never lets the idle time-out of 15 s begin.
      while !Task.isCancelled, connection.send("X: y\r\n") {
        // why: the drip itself; the server's clock is the kernel's.
        try? await Task.sleep(for: .milliseconds(100))
      }
    }
    #expect(try await connection.readToEnd()?.contains("200") == false)
    dripping.cancel()
    await server.stop()
  }

  @Test("cuts a client that does not read its answer")
  func slowReader() async throws {
    var limits = HTTPLimits()
    limits.answer = .milliseconds(500)
    let server = try Self.start(
      "127.0.0.1:0", limits, body: [UInt8](repeating: 0x20, count: 64 << 20))
    let connection = try RawConnection(server.address)
    connection.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    // Not for ever: on a busy machine the connection may be over before this task runs again.
    for _ in 0..<100 where server.openConnections == 0 {
      // why: nothing tells when libmicrohttpd has taken a connection.
      try await Task.sleep(for: .milliseconds(10))
    }
    while server.openConnections > 0 {
      // why: nothing tells when libmicrohttpd has closed a connection.
      try await Task.sleep(for: .milliseconds(20))
    }
    // Nobody read, so the server closed with most of the body unsent.
    let answer = try #require(try await connection.readToEnd())
    #expect(answer.utf8.count < 64 << 20)
    await server.stop()
  }

  @Test("says which of the usual mistakes keeps it from listening")
  func listening() async throws {
    let server = try Self.start()
    #expect(throws: HTTPServerError.addressInUse(server.address)) {
      try Self.start("\(server.address)")
    }
    // TEST-NET-3 (RFC 5737) is nobody's.
    let foreign = try #require(ListenAddress("203.0.113.1:0"))
    #expect(throws: HTTPServerError.noSuchAddress(foreign)) { try Self.start("203.0.113.1:0") }
    await server.stop()
    // The port is free again as soon as the server has stopped.
    await (try Self.start("\(server.address)")).stop()
  }

  @Test("listens on IPv6 where it is asked to")
  func ipv6() async throws {
    let server = try Self.start("[::1]:0")
    let answer = try await RawConnection.ask(
      server.address, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    #expect(answer.hasPrefix("HTTP/1.1 200 "))
    await server.stop()
  }

  @Test(
    "listens on every address of both families where none is named", arguments: [":0", "[::]:0"])
  func everyAddress(_ text: String) async throws {
    let server = try Self.start(text)
    for host in ["127.0.0.1", "[::1]"] {
      let address = try #require(ListenAddress("\(host):\(server.address.port)"))
      let answer = try await RawConnection.ask(
        address, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
      #expect(answer.hasPrefix("HTTP/1.1 200 "), "\(host)")
    }
    await server.stop()
  }

  @Test("lets an answer that is under way go out before it stops")
  func drain() async throws {
    let size = 8 << 20
    let server = try Self.start(body: [UInt8](repeating: 0x20, count: size))
    let busy = try RawConnection(server.address)
    let idle = try RawConnection(server.address)
    busy.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    let reading = Task { try await busy.readToEnd() }
    // The answer has begun when the first connection's request was seen; a second request on a
    // third connection is answered after it.
    _ = try await HTTPProbe.fetch("http://\(server.address)/")
    let listening = try #require(try listener(on: server.address.port))
    await server.stop()
    #expect(try #require(try await reading.value).utf8.count > size)
    #expect(try await idle.readToEnd() == "")
    #expect(try listener(on: server.address.port) != listening)
  }

  @Test("tells busy clients that it stops, instead of cutting them off")
  func drainsBusyClients() async throws {
    let server = try Self.start()
    let address = server.address
    let answers = try await withThrowingTaskGroup(of: String?.self) { group in
      for _ in 0..<4 {
        let connection = try RawConnection(address)
        group.addTask {
          // Asks on until the server ends the connection: the last answer must say so.
          let asking = Task {
            while !Task.isCancelled, connection.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n") {
              // why: a pace that the server keeps up with.
              try? await Task.sleep(for: .milliseconds(1))
            }
          }
          defer { asking.cancel() }
          return try await connection.readToEnd()
        }
      }
      while server.openConnections < 4 { await Task.yield() }
      await server.stop()
      return try await group.reduce(into: [String?]()) { $0.append($1) }
    }
    for answer in answers {
      let last = try #require(answer).components(separatedBy: "HTTP/1.1 ").last
      #expect(last?.contains("Connection: close") == true && last?.hasSuffix("{}") == true)
    }
  }

  @Test(
    "decodes a path once and refuses what two layers could read differently",
    arguments: [
      ("/a", "/a"), ("/%61", "/a"), ("/%2561", "/%61"), ("/%C3%A9", "/é"), ("/a%20b", "/a b"),
      ("/%2F", nil), ("/%5C", nil), ("/%00", nil), ("/%0A", nil), ("/%7F", nil), ("/%", nil),
      ("/%4", nil), ("/%G0", nil), ("/%C3", nil), ("/%+1", nil),
    ] as [(String, String?)])
  func paths(_ path: String, _ decoded: String?) {
    #expect(TargetPath.decoded(path) == decoded)
  }
}
