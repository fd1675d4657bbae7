import TestSupport
import Testing

@testable import HTTPServing
@testable import RegistryServer

@Suite("Requests with bodies", .timeLimit(.minutes(2))) struct HTTPBodyTests {
  private static let head = "POST /body HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"

  /// A body in chunks of one size.
  private static func chunks(_ body: String, of size: Int) -> String {
    var rest = body.utf8[...]
    var text = ""
    while !rest.isEmpty {
      let part = rest.prefix(size)
      text += "\(String(part.count, radix: 16))\r\n\(String(decoding: part, as: UTF8.self))\r\n"
      rest = rest.dropFirst(size)
    }
    return text + "0\r\n\r\n"
  }

  private static func body(_ answer: String) throws -> String {
    String(answer[try #require(answer.range(of: "\r\n\r\n")).upperBound...])
  }

  @Test(
    "up to the limit, a body reaches the handler whole",
    arguments: [
      (0, 200), (1, 200), (HTTPBench.bodyLimit - 1, 200), (HTTPBench.bodyLimit, 200),
      (HTTPBench.bodyLimit + 1, 413), (HTTPBench.bodyLimit * 100, 413),
    ])
  func limit(_ count: Int, _ status: Int) async throws {
    let server = try HTTPBench.start()
    let body = String((0..<count).map { Character(Unicode.Scalar(UInt8(97 + $0 % 26))) })
    let framed = [
      "Content-Length: \(count)\r\n\r\n\(body)",
      "Transfer-Encoding: chunked\r\n\r\n\(Self.chunks(body, of: 7))",
      "Transfer-Encoding: chunked\r\n\r\n\(Self.chunks(body, of: 4096))",
    ]
    for framed in framed {
      let answer = try await RawConnection.ask(server.address, Self.head + framed)
      #expect(answer.hasPrefix("HTTP/1.1 \(status) "), "\(answer.prefix(200))")
      if status == 200 { #expect(try Self.body(answer) == body) }
    }
    #expect(server.bodyBytes == 0)
    await server.stop()
  }

  @Test("a large body comes in many parts and stays one")
  func large() async throws {
    let server = try HTTPBench.start()
    let body = repeated("0123456789abcdef", 1 << 16)
    let answer = try await RawConnection.ask(
      server.address,
      "POST /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: \(body.utf8.count)"
        + "\r\n\r\n\(body)")
    #expect(try Self.body(answer) == body)
    await server.stop()
  }

  @Test("a client that asks first is told to go on, or why not")
  func expectation() async throws {
    let server = try HTTPBench.start()
    let client = try RawConnection(server.address)
    client.send("\(Self.head)Content-Length: 5\r\nExpect: 100-continue\r\n\r\n")
    #expect(try await client.read(until: "\r\n\r\n") == "HTTP/1.1 100 Continue\r\n\r\n")
    client.send("hello")
    let answer = try #require(try await client.readToEnd())
    #expect(answer.hasPrefix("HTTP/1.1 200 ") && answer.hasSuffix("hello"))
    for (length, path, status) in [("1001", "/body", 413), ("1", "/ok", 405), ("1", "/no", 404)] {
      let refusal = try await RawConnection.ask(
        server.address,
        "POST \(path) HTTP/1.1\r\nHost: x\r\nContent-Length: \(length)\r\n"
          + "Expect: 100-continue\r\n\r\n")
      #expect(refusal.hasPrefix("HTTP/1.1 \(status) "), "\(refusal)")
      #expect(!refusal.contains("100 Continue"))
    }
    await server.stop()
  }

  @Test("all bodies together are bounded, and what one gives back another may take")
  func budget() async throws {
    var limits = HTTPLimits()
    limits.bodies = 1500
    let server = try HTTPBench.start(limits)
    let first = try RawConnection(server.address)
    first.send("\(Self.head)Content-Length: 1000\r\n\r\n\(repeated("a", 999))")
    #expect(await eventually { server.bodyBytes == 999 })
    let lengthy = try await RawConnection.ask(
      server.address, "\(Self.head)Content-Length: 502\r\n\r\n\(repeated("b", 502))")
    #expect(lengthy.hasPrefix("HTTP/1.1 503 ") && lengthy.contains("Retry-After: 1\r\n"))
    let chunked = try await RawConnection.ask(
      server.address,
      "\(Self.head)Transfer-Encoding: chunked\r\n\r\n\(Self.chunks(repeated("b", 502), of: 100))")
    #expect(chunked.hasPrefix("HTTP/1.1 503 "))
    let small = try await RawConnection.ask(
      server.address, "\(Self.head)Content-Length: 501\r\n\r\n\(repeated("b", 501))")
    #expect(small.hasPrefix("HTTP/1.1 200 "))
    first.send("a")
    #expect(try await first.readToEnd()?.hasPrefix("HTTP/1.1 200 ") == true)
    #expect(await eventually { server.bodyBytes == 0 })
    let again = try await RawConnection.ask(
      server.address, "\(Self.head)Content-Length: 1000\r\n\r\n\(repeated("b", 1000))")
    #expect(again.hasPrefix("HTTP/1.1 200 "))
    await server.stop()
  }

  @Test("a client that leaves in the middle of its body leaves nothing behind")
  func abandoned() async throws {
    let server = try HTTPBench.start()
    do {
      let client = try RawConnection(server.address)
      client.send("\(Self.head)Content-Length: 1000\r\n\r\n\(repeated("a", 500))")
      #expect(await eventually { server.bodyBytes == 500 })
    }
    #expect(await eventually { server.bodyBytes == 0 && server.openConnections == 0 })
    await server.stop()
  }

  @Test("a chunked body without an end is not read for ever")
  func endless() async throws {
    let server = try HTTPBench.start()
    let client = try RawConnection(server.address)
    client.send("\(Self.head)Transfer-Encoding: chunked\r\n\r\n")
    let chunk = Array("10000\r\n\(repeated("a", 65_536))\r\n".utf8)
    var sent = 0
    while sent < 1000, client.send(chunk) { sent += 1 }
    #expect(sent < 1000)
    #expect(try await client.readToEnd() == "")
    #expect(await eventually { server.bodyBytes == 0 && server.openConnections == 0 })
    await server.stop()
  }

  @Test("a refused body of any length does not keep its sender from reading why")
  func refusedWhileSending() async throws {
    let server = try HTTPBench.start()
    let answer = try await RawConnection.ask(
      server.address, "\(Self.head)Content-Length: 5000\r\n\r\n\(repeated("a", 5000))")
    #expect(answer.hasPrefix("HTTP/1.1 413 ") && answer.contains("the body is too large"))
    await server.stop()
  }
}
