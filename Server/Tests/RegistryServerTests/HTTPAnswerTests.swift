import CanonicalJSON
import Foundation
import RegistryServer
import SslPinningRules
import TestSupport
import Testing

@Suite("Answers over HTTP") struct HTTPAnswerTests {
  static let path = "/api/v1/www.example.com.json"

  /// A service with one published document.
  static func publishing() async throws -> ScriptedService {
    let server = try ScriptedService()
    server.observer.show(.accepted(pin(1)), at: "www.example.com")
    try await server.start()
    await server.service.probe("www.example.com")
    return server
  }

  @Test("a document comes with its type, its tag and its age limit")
  func headers() async throws {
    let server = try await Self.publishing()
    let answer = try await server.get(Self.path)
    #expect(answer.status == 200)
    #expect(answer.headers["content-type"] == "application/json")
    #expect(answer.headers["cache-control"] == "public, max-age=60")
    let tag = try #require(answer.headers["etag"])
    #expect(tag.hasPrefix("\"") && tag.hasSuffix("\"") && tag.utf8.count > 20)
    #expect(tag == server.service.currentDocument("www.example.com.json")?.entityTag)
    await server.service.stop()
  }

  @Test("HEAD says what GET would, without the body")
  func head() async throws {
    let server = try await Self.publishing()
    let address = try #require(server.service.address)
    func ask(_ method: String) async throws -> String {
      try await RawConnection.ask(
        address, "\(method) \(Self.path) HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    }
    let (get, head) = (try await ask("GET"), try await ask("HEAD"))
    let end = try #require(get.range(of: "\r\n\r\n")).upperBound
    #expect(!get[end...].isEmpty)
    func lines(_ header: Substring) -> Set<Substring> {
      Set(header.split(separator: "\r\n").filter { !$0.hasPrefix("Date:") })
    }
    #expect(lines(head[...]) == lines(get[..<end]))
    #expect(head.hasSuffix("\r\n\r\n"))
    await server.service.stop()
  }

  @Test(
    "a client that has the document gets 304",
    arguments: [
      ("TAG", 304), ("W/TAG", 304), ("*", 304), ("\"other\", TAG", 304), ("W/\"a\" ,W/TAG", 304),
      ("\"other\"", 200), ("TA", 200), ("", 200), ("W/\"other\", \"\"", 200), ("*, TAG", 200),
    ])
  func conditional(_ condition: String, _ status: Int) async throws {
    let server = try await Self.publishing()
    let tag = try #require(server.service.currentDocument("www.example.com.json")).entityTag
    let value = condition.replacing("TAG", with: tag)
    let answer = try await server.get(Self.path, headers: ["If-None-Match": value])
    #expect(answer.status == status)
    #expect(answer.headers["etag"] == tag)
    #expect(answer.headers["cache-control"] == "public, max-age=60")
    #expect(answer.body.isEmpty == (status == 304))
    await server.service.stop()
  }

  @Test("a tag is found in the second of two header lines")
  func conditionalLines() async throws {
    let server = try await Self.publishing()
    let tag = try #require(server.service.currentDocument("www.example.com.json")).entityTag
    let answer = try await RawConnection.ask(
      try #require(server.service.address),
      "GET \(Self.path) HTTP/1.1\r\nHost: x\r\nIf-None-Match: \"a\"\r\nIf-None-Match: \(tag)\r\n"
        + "Connection: close\r\n\r\n")
    #expect(answer.hasPrefix("HTTP/1.1 304 "))
    await server.service.stop()
  }

  /// A request line with what belongs to it, and the status that it gets.
  static let requests: [(String, Int)] = [
    ("GET /api/v1/www.example.com.json HTTP/1.1", 200),
    ("GET /api/v1/www.example.com.json?x=1 HTTP/1.1", 200),
    ("GET /api/v1/www%2Eexample%2ecom.json HTTP/1.1", 200),
    ("GET /livez HTTP/1.1", 200),
    ("GET /readyz HTTP/1.1", 200),
    ("GET /health/liveness HTTP/1.1", 200),
    ("GET /health/readiness HTTP/1.1", 200),
    ("GET /health/startup HTTP/1.1", 200),
    ("GET /health/ HTTP/1.1", 404),
    ("GET /nothing HTTP/1.1", 404),
    ("GET /api/v1/ HTTP/1.1", 404),
    ("GET /api/v1/other.json HTTP/1.1", 404),
    ("GET /api/v1/WWW.example.com.json HTTP/1.1", 404),
    ("GET /api/v2/www.example.com.json HTTP/1.1", 404),
    ("GET /api/v1/../../../../etc/passwd HTTP/1.1", 404),
    ("GET /api/v1/x/../www.example.com.json HTTP/1.1", 404),
    ("GET //api/v1/www.example.com.json HTTP/1.1", 404),
    ("GET /api/v1/..%2f..%2fetc%2fpasswd HTTP/1.1", 400),
    ("GET /api/v1/..%5cpasswd HTTP/1.1", 400),
    ("GET /api/v1/www.example.com.json%00.txt HTTP/1.1", 400),
    ("GET /api/v1/%zz HTTP/1.1", 400),
    ("GET /api/v1/%e HTTP/1.1", 400),
    ("GET /api/v1/%ff HTTP/1.1", 400),
    ("GET /api/v1/%0d%0aX: HTTP/1.1", 400),
    ("POST /api/v1/www.example.com.json HTTP/1.1\r\nContent-Length: 0", 405),
    ("PUT /api/v1/www.example.com.json HTTP/1.1\r\nContent-Length: 99999999", 405),
    ("DELETE /livez HTTP/1.1", 405),
    ("OPTIONS /livez HTTP/1.1", 405),
    ("get /livez HTTP/1.1", 405),
    ("GET /livez HTTP/1.1\r\nContent-Length: 5", 413),
    ("GET /livez HTTP/1.1\r\nTransfer-Encoding: chunked", 413),
    ("GET http://x/api/v1/www.example.com.json HTTP/1.1", 200),
    ("GET HTTPS://x:1/api/v1/www.example%2ecom.json?q HTTP/1.1", 200),
    ("GET http://x/nothing HTTP/1.1", 404),
    ("GET http://x/api/v1/..%2flivez HTTP/1.1", 400),
    ("GET ftp://x/livez HTTP/1.1", 404),
    ("GET /livez\0 HTTP/1.1", 400),
    ("GET /livez\0/x HTTP/1.1", 400),
    ("GET /livez\0/x?y=1&z=2 HTTP/1.1", 400),
    ("GET /livez?y=1&z=2 HTTP/1.1", 200),
    ("GET /livez HTTP/1.1\r\nX: a\rY: b", 400),
    ("GET /livez HTTP/1.1\r\n: b", 400),
    ("GET /livez HTTP/1.1\r\nHost: y", 400),
    ("GET /livez HTTP/1.1\r\nContent-Length: 0", 200),
  ]

  @Test("every request gets its status, and errors are JSON", arguments: requests)
  func statuses(_ request: String, _ status: Int) async throws {
    let server = try await Self.publishing()
    let answer = try await RawConnection.ask(
      try #require(server.service.address), "\(request)\r\nHost: x\r\nConnection: close\r\n\r\n")
    #expect(answer.hasPrefix("HTTP/1.1 \(status) "), "\(answer)")
    let body = try #require(answer.range(of: "\r\n\r\n")).upperBound
    let json = try JSONValue(parsing: Array(answer[body...].utf8))
    #expect((json.objectValue?["error"] != nil) == (status >= 400))
    #expect(answer.contains("\r\nAllow: GET, HEAD\r\n") == (status == 405))
    #expect(answer.contains("no-store") == (!request.contains("/api") || status >= 400))
    await server.service.stop()
  }

  @Test(
    "where two parsers could see two requests, there is one answer and the end of the connection",
    arguments: [
      "Content-Length: 0\r\nContent-Length: 33", "Content-Length: 33\r\nContent-Length: 0",
      "Content-Length : 33", "Content-Length\t: 33",
      "Content-Length: 0\r\nTransfer-Encoding: chunked", "Transfer-Encoding : chunked",
      "X: a\rContent-Length: 33", "Transfer-Encoding: gzip", "Transfer-Encoding:",
    ])
  func smuggling(_ header: String) async throws {
    let server = try await Self.publishing()
    let address = try #require(server.service.address)
    let second = "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"
    let answer = try await RawConnection.ask(
      address, "GET \(Self.path) HTTP/1.1\r\nHost: x\r\n\(header)\r\n\r\n\(second)")
    #expect(answer.components(separatedBy: "HTTP/1.1 ").count == 2)
    #expect(answer.hasPrefix("HTTP/1.1 4") && answer.contains("Connection: close"), "\(answer)")
    #expect(try await server.get("/livez").status == 200)
    await server.service.stop()
  }

  @Test("304 tells no length but the document's", arguments: ["GET", "HEAD"])
  func unchangedLength(_ method: String) async throws {
    let server = try await Self.publishing()
    let document = try #require(server.service.currentDocument("www.example.com.json"))
    let answer = try await RawConnection.ask(
      try #require(server.service.address),
      "\(method) \(Self.path) HTTP/1.1\r\nHost: x\r\nIf-None-Match: *\r\nConnection: close\r\n\r\n")
    #expect(answer.hasPrefix("HTTP/1.1 304 ") && answer.hasSuffix("\r\n\r\n"))
    #expect(!answer.contains("{"))
    let told = answer.split(separator: "\r\n").filter { $0.hasPrefix("Content-Length: ") }
    #expect(told.allSatisfy { $0 == "Content-Length: \(document.bytes.count)" }, "\(answer)")
    await server.service.stop()
  }

  @Test(
    "what is no HTTP gets no document",
    arguments: [
      "GET /livez HTTP/1.1\r\n\r\n",  // HTTP/1.1 without a Host
      "GET /livez\r\n\r\n\r\n",
      "\u{16}\u{3}\u{1}\r\n\r\n",
      "GET /" + String(repeating: "a", count: 40_000) + " HTTP/1.1\r\nHost: x\r\n\r\n",
      "GET /livez HTTP/1.1\r\nHost: x\r\nX: " + String(repeating: "a", count: 40_000) + "\r\n\r\n",
    ])
  func noHTTP(_ request: String) async throws {
    let server = try await Self.publishing()
    let answer = try await RawConnection.ask(try #require(server.service.address), request)
    #expect(!answer.contains(" 200 "))
    #expect(try await server.get("/livez").status == 200)
    await server.service.stop()
  }

  @Test("one connection serves many requests")
  func keepAlive() async throws {
    let server = try await Self.publishing()
    let connection = try RawConnection(try #require(server.service.address))
    for _ in 0..<9 { connection.send("GET \(Self.path) HTTP/1.1\r\nHost: x\r\n\r\n") }
    connection.send("GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    let answers = try #require(try await connection.readToEnd())
    #expect(answers.components(separatedBy: "HTTP/1.1 200 ").count == 11)
    await server.service.stop()
  }
}
