import Testing

@testable import RegistryServer

@Suite("Hostile header lines", .timeLimit(.minutes(2))) struct HTTPHeaderLineTests {
  static let names: [HostileRequest] = [
    .lines("a space before the colon", "X : y\r\n", 400),
    .lines("a tab before the colon", "X\t: y\r\n", 400),
    .lines("a space in the name", "X Y: z\r\n", 400),
    .lines("a space before the name", " X: y\r\n", .twice(400)),
    .lines("no name", ": y\r\n", 400),
    .lines("a space for a name", " : y\r\n", .twice(400)),
    .lines("no colon", "X\r\n", 400),
    .lines("no colon in the last of two", "X: y\r\nZ\r\n", 400),
    .lines("a name in brackets", "[X]: y\r\n", 400),
    .lines("a name in parentheses", "(X): y\r\n", 400),
    .lines("a name with a quote", "\"X\": y\r\n", 400),
    .lines("a name with a comma", "X,Y: z\r\n", 400),
    .lines("a name with a semicolon", "X;Y: z\r\n", 400),
    .lines("a name with a slash", "X/Y: z\r\n", 400),
    .lines("a name with an at sign", "X@Y: z\r\n", 400),
    .lines("a name with an equals sign", "X=Y: z\r\n", 400),
    .lines("a name with braces", "{X}: y\r\n", 400),
    .lines("a name with a NUL", "X\0Y: z\r\n", 400),
    .lines("a name that begins with a NUL", "\0X: y\r\n", 400),
    .lines("a name that ends with a NUL", "X\0: y\r\n", 400),
    .lines("a name with a control character", "X\u{1}: y\r\n", 400),
    .lines("a name with DEL", "X\u{7f}: y\r\n", 400),
    .lines("a name above ASCII", "X\u{e9}: y\r\n", 400),
    .lines("a name with a CR", "X\rY: z\r\n", 400),
    .lines("a hidden framing: a control character", "\u{b}Content-Length: 5\r\n", 400),
    .lines("a hidden framing: a no-break space", "Content-Length\u{a0}: 5\r\n", 400),
  ]

  static let values: [HostileRequest] = [
    .lines("a NUL", "X: a\0b\r\n", 400),
    .lines("a NUL first", "X: \0a\r\n", 400),
    .lines("a NUL last", "X: a\0\r\n", 400),
    .lines("a NUL alone", "X: \0\r\n", 400),
    .lines("two NULs, like an end of line", "X: a\0\0Y: b\r\n", 400),
    .lines("four NULs, like an end of the header", "X: a\0\0\0\0\r\n", 400),
    .lines("a NUL in the middle of three lines", "X: a\r\nY: b\0c\r\nZ: d\r\n", 400),
    .lines("a NUL that hides a framing", "X: a\0\r\nContent-Length: 5\r\n", 400),
    .lines("a CR", "X: a\rb\r\n", 400),
    .lines("a CR and a header", "X: a\rContent-Length: 5\r\n", 400),
    .lines("a CR last", "X: a\r\r\n", 400),
    .lines("a CR alone", "X: \r\r\n", 400),
    .lines("a control character", "X: a\u{1}b\r\n", 400),
    .lines("a backspace", "X: a\u{8}\r\n", 400),
    .lines("a vertical tab", "X: a\u{b}b\r\n", 400),
    .lines("a form feed", "X: a\u{c}b\r\n", 400),
    .lines("an escape character", "X: \u{1b}[31m\r\n", 400),
    .lines("DEL", "X: a\u{7f}\r\n", 400),
    .lines("a tab, which is allowed", "X: a\tb\r\nConnection: close\r\n", 200),
    .lines("Latin-1, which is allowed", "X: \u{e9}\r\nConnection: close\r\n", 200),
    .lines("nothing, which is allowed", "X:\r\nConnection: close\r\n", 200),
    .lines("blanks around, which are allowed", "X: \t a \t \r\nConnection: close\r\n", 200),
  ]

  static let ends: [HostileRequest] = [
    .lines("a bare LF", "X: a\nY: b\r\n", 400),
    .lines("a bare LF in the last line", "X: a\n", 400),
    .lines("a bare LF before a framing", "X: a\nContent-Length: 5\r\n", 400),
    .lines("a bare LF with a NUL elsewhere for its CR", "X: a\0\r\nY: b\nZ: c\r\n", 400),
    .lines("a bare LF with a blank elsewhere for its CR", "X:  a\r\nY: b\nZ: c\r\n", 400),
    .lines("a LF and a CR", "X: a\n\rY: b\r\n", 400),
    .lines("a CR, a CR and a LF", "X: a\r\r\nY: b\r\n", 400),
    .lines("a folded line", "X: a\r\n b\r\n", 400),
    .lines("a line folded with a tab", "X: a\r\n\tb\r\n", 400),
    .lines("a line folded twice", "X: a\r\n b\r\n c\r\n", 400),
    .post(
      "a fold that libmicrohttpd would make a length of", "Content-: 1\r\n Length\r\n", "a", 400),
    .lines("a fold of blanks alone", "X: a\r\n  \r\n", 400),
    .lines("a fold that looks like a header", "X: a\r\n Content-Length: 5\r\n", 400),
    .lines("a folded framing", "Transfer-Encoding:\r\n chunked\r\n", 400),
    .lines("a folded length", "Content-Length:\r\n 5\r\n", 400),
    .lines("a fold before the other lines", "X: a\r\n b\r\nY: c\r\n", 400),
    HostileRequest(
      "a fold of the request line", "GET /ok HTTP/1.1\r\n X: a\r\nHost: x\r\n\r\n", 400),
    HostileRequest(
      "a bare LF behind the host", "GET /ok HTTP/1.1\r\nHost: x\nX: y\r\n\r\n", 400),
    HostileRequest("a bare LF for an empty line", "GET /ok HTTP/1.1\r\nHost: x\r\n\n", 400),
    HostileRequest(
      "a bare LF as the only line end without headers", "GET /ok HTTP/1.0\r\n\n", 400),
  ]

  static let hosts: [HostileRequest] = [
    HostileRequest("no host", "GET /ok HTTP/1.1\r\n\r\n", .twice(400)),
    HostileRequest("no host beside another line", "GET /ok HTTP/1.1\r\nX: y\r\n\r\n", .twice(400)),
    HostileRequest(
      "no host, with a body", "POST /body HTTP/1.1\r\nContent-Length: 1\r\n\r\na", .twice(400)),
    .lines("two hosts", "Host: y\r\n", 400),
    .lines("the same host twice", "Host: x\r\n", 400),
    .lines("two hosts in other letters", "hOST: x\r\n", 400),
    host("an empty host", "", 400),
    host("blanks for a host", " \t ", 400),
    host("a list", "x, y", 400),
    host("a list without a blank", "x,y", 400),
    host("a URL", "http://x", 400),
    host("a path", "x/ok", 400),
    host("a query", "x?a", 400),
    host("a fragment", "x#a", 400),
    host("user information", "user@x", 400),
    host("a blank in it", "x y", 400),
    host("an escape", "%78", 400),
    host("a backslash", "x\\y", 400),
    host("a port of letters", "x:http", 400),
    host("a negative port", "x:-1", 400),
    host("two ports", "x:1:2", 400),
    host("a port of six digits", "x:123456", 400),
    host("a port alone", ":80", 400),
    host("a bare IPv6 address", "::1", 400),
    host("half a bracket", "[::1", 400),
    host("empty brackets", "[]", 400),
    host("brackets around a name", "[x]", 400),
    host("something behind the brackets", "[::1]x", 400),
    host("a NUL", "x\0y", 400),
    host("raw UTF-8", "\u{c3}\u{a9}", 400),
    host("a quote", "\"x\"", 400),
    host("a script", "<script>", 400),
    host("a host and a port", "x:80", 200),
    host("an IPv6 address and a port", "[::1]:80", 200),
    host("an IPv4 address", "127.0.0.1", 200),
    host("blanks around the host", "  x  ", 200),
  ]

  static let expectations: [HostileRequest] = [
    .post("another expectation", "Content-Length: 1\r\nExpect: 200-ok\r\n", "a", 417),
    .post("two expectations", "Content-Length: 1\r\nExpect: 100-continue, x\r\n", "a", 417),
    .lines("an expectation without a body", "Expect: x\r\n", 417),
  ]

  private static func host(_ name: String, _ value: String, _ status: Int) -> HostileRequest {
    HostileRequest(
      name, "GET /ok HTTP/1.1\r\nHost: \(value)\r\nConnection: close\r\n\r\n", .status(status))
  }

  @Test("a name is a token", arguments: names)
  func name(_ request: HostileRequest) async throws { try await request.verify() }

  @Test("a value has no control characters", arguments: values)
  func value(_ request: HostileRequest) async throws { try await request.verify() }

  @Test("a line ends with CRLF and is not folded", arguments: ends)
  func end(_ request: HostileRequest) async throws { try await request.verify() }

  @Test("there is one host, and it is one", arguments: hosts)
  func host(_ request: HostileRequest) async throws { try await request.verify() }

  @Test("100-continue is the only expectation", arguments: expectations)
  func expectation(_ request: HostileRequest) async throws { try await request.verify() }

  @Test(
    "a head is judged the same however it comes in",
    arguments: (names + values + ends).filter { $0.bytes.count < 90 })
  func inPieces(_ request: HostileRequest) async throws {
    let server = try HTTPBench.start()
    let connection = try RawConnection(server.address)
    for byte in request.bytes where connection.send([byte]) {
      // why: lets the kernel deliver most bytes one by one.
      await Task.yield()
    }
    connection.endSending()
    let answer = try #require(try await connection.readToEnd())
    #expect(answer.contains(" 200 ") == (request.outcome == .status(200)), "\(answer)")
    await server.stop()
  }
}
