import SslPinningPlatform
import TestSupport
import Testing

@testable import HTTPServing
@testable import RegistryServer

@Suite("What a handler is told of a request", .timeLimit(.minutes(2))) struct HTTPRequestTests {
  private static func echo(
    _ line: String, _ lines: String = "", listen: String = "127.0.0.1:0",
    through host: String? = nil
  ) async throws -> String {
    let server = try HTTPBench.start(listen: listen)
    let address = try #require(
      host.map { ListenAddress("\($0):\(server.address.port)") } ?? server.address)
    let answer = try await RawConnection.ask(
      address, "\(line) HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\(lines)\r\n")
    await server.stop()
    return String(answer[try #require(answer.range(of: "\r\n\r\n")).upperBound...])
  }

  @Test(
    "the query is in pairs, decoded once, in order",
    arguments: [
      ("", "[]"), ("?", "[]"), ("?&&", "[]"), ("?a", "[\"a=\"]"), ("?a=", "[\"a=\"]"),
      ("?=b", "[\"=b\"]"), ("?a=b&c=d", "[\"a=b\", \"c=d\"]"), ("?a=b=c", "[\"a=b=c\"]"),
      ("?b=1&a=2&b=3", "[\"b=1\", \"a=2\", \"b=3\"]"), ("?a=b+c%20d%2B", "[\"a=b c d+\"]"),
      ("?%61=%C3%A9", "[\"a=é\"]"), ("?a=%2525", "[\"a=%25\"]"), ("?a=/?:@", "[\"a=/?:@\"]"),
      ("?a=%26b%3Dc", "[\"a=&b=c\"]"), ("?a=b;c=d", "[\"a=b;c=d\"]"),
    ])
  func query(_ query: String, _ pairs: String) async throws {
    #expect(try await Self.echo("GET /echo\(query)").contains("GET /echo \(pairs) a="))
  }

  @Test(
    "a header line is found in any letters, and several are joined",
    arguments: [
      ("", "none"), ("X-A: b\r\n", "b"), ("x-a: b\r\n", "b"), ("X-a:b\r\n", "b"),
      ("x-A: \t b c \t \r\n", "b c"), ("X-A:\r\n", ""), ("X-A: b\r\nx-a: c\r\n", "b, c"),
      ("X-A: b\r\nX-B: d\r\nX-A: c\r\n", "b, c"), ("X-AA: b\r\nX: c\r\nX_A: d\r\n", "none"),
      ("X-A: \u{e9}\r\n", "\u{e9}"),
    ])
  func headers(_ lines: String, _ value: String) async throws {
    #expect(try await Self.echo("GET /echo", lines).contains(" a=\(value) from "))
  }

  @Test(
    "the peer is a numeric address, an IPv4 client's its own also where IPv6 is listened on",
    arguments: [
      ("127.0.0.1:0", nil, "127.0.0.1"), ("[::1]:0", nil, "::1"), (":0", "127.0.0.1", "127.0.0.1"),
      (":0", "[::1]", "::1"),
    ] as [(String, String?, String)])
  func peer(_ listen: String, _ host: String?, _ peer: String) async throws {
    let answer = try await Self.echo("GET /echo", listen: listen, through: host)
    #expect(answer.hasSuffix(" from \(peer)"))
  }

  @Test("HEAD is GET to the handler, and its answer has no body")
  func head() async throws {
    let server = try HTTPBench.start()
    let (get, head) = (
      try await RawConnection.ask(
        server.address, "GET /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
      try await RawConnection.ask(
        server.address, "HEAD /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    )
    let length = { (answer: String) in
      answer.split(separator: "\r\n").first { $0.hasPrefix("Content-Length: ") }
    }
    #expect(length(head) == length(get) && length(get) != nil)
    #expect(head.hasSuffix("\r\n\r\n") && get.contains("GET /echo"))
    await server.stop()
  }

  @Test("pipelined requests are answered in their order, whatever each takes")
  func pipelined() async throws {
    let server = try HTTPBench.start()
    let client = try RawConnection(server.address)
    var asked: [String] = []
    for number in 0..<40 {
      switch number % 4 {
      case 0: client.send("GET /echo?n=\(number) HTTP/1.1\r\nHost: x\r\n\r\n")
      case 1: client.send("GET /late HTTP/1.1\r\nHost: x\r\n\r\n")
      case 2:
        client.send(
          "POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nn=\(number + 100)")
      default: client.send("GET /none HTTP/1.1\r\nHost: x\r\n\r\n")
      }
      asked.append(["\"n=\(number)\"", "late", "n=\(number + 100)", "no such path"][number % 4])
    }
    client.send("GET /ok HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    let answers = try #require(try await client.readToEnd())
    var rest = answers[...]
    for text in asked + ["ok"] {
      let found = try #require(rest.range(of: text), "\(text) is not in its place: \(answers)")
      rest = rest[found.upperBound...]
    }
    #expect(answers.components(separatedBy: "HTTP/1.1 ").count == 42)
    await server.stop()
  }

  @Test("many clients at once each get their own answers")
  func concurrent() async throws {
    let server = try HTTPBench.start()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for client in 0..<24 {
        group.addTask {
          let connection = try RawConnection(server.address)
          for number in 0..<40 {
            let body = "\(client)-\(number)"
            connection.send("GET /late HTTP/1.1\r\nHost: x\r\n\r\n")
            connection.send(
              "POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
          }
          connection.send("GET /ok HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
          let answers = try #require(try await connection.readToEnd())
          #expect(answers.components(separatedBy: "HTTP/1.1 200 ").count == 82)
          for number in 0..<40 { #expect(answers.contains("\r\n\r\n\(client)-\(number)HTTP/1.1 ")) }
        }
      }
      try await group.waitForAll()
    }
    #expect(server.bodyBytes == 0 && server.suspendedConnections == 0)
    await server.stop()
  }

  @Test("whoever counts is told of every answer, refusals too")
  func observed() async throws {
    let told = Locked<[String]>([])
    let server = try HTTPServer(
      listen: try #require(ListenAddress("127.0.0.1:0")), routing: HTTPBench.rule,
      observer: { exchange in
        let line = "\(exchange.method) \(exchange.path ?? "-") \(exchange.status)"
        told.withLock { $0.append(exchange.duration >= .zero ? line : "negative") }
      }, handler: HTTPBench.answer)
    let requests: [(String, String)] = [
      ("GET /ok HTTP/1.1\r\nHost: x\r\n", "GET /ok 200"),
      ("HEAD /ok HTTP/1.1\r\nHost: x\r\n", "GET /ok 200"),
      ("GET /late HTTP/1.1\r\nHost: x\r\n", "GET /late 200"),
      ("GET /none HTTP/1.1\r\nHost: x\r\n", "GET /none 404"),
      ("PUT /ok HTTP/1.1\r\nHost: x\r\n", "PUT /ok 405"),
      ("POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\n", "POST /body 413"),
      ("GET /ok HTTP/1.1\r\nHost: x\r\nHost: x\r\n", " - 400"),
      ("GET /ok HTTP/1.1\r\nHost: x\r\nContent-Length: a\r\n", " - 400"),
      ("GET /ok HTTP/1.1\r\nHost: x\r\nX: \(repeated("y", 20_000))\r\n", " - 431"),
    ]
    for (request, line) in requests {
      _ = try await RawConnection.ask(server.address, "\(request)Connection: close\r\n\r\n")
      #expect(await eventually { told.withLock { $0.last == line } }, "\(told.withLock { $0 })")
    }
    await server.stop()
    #expect(told.withLock { $0 } == requests.map(\.1))
  }
}
