import Testing

@testable import RegistryServer

@Suite("Hostile request lines", .timeLimit(.minutes(2))) struct HTTPRequestLineTests {
  private static let rest = "\r\nHost: x\r\n\r\n"
  private static let closing = "\r\nHost: x\r\nConnection: close\r\n\r\n"

  static let versions: [HostileRequest] = [
    HostileRequest("HTTP/1.1", "GET /ok HTTP/1.1\(closing)", 200),
    HostileRequest("HTTP/1.0", "GET /ok HTTP/1.0\(rest)", 200),
    HostileRequest("HTTP/1.0 without a host", "GET /ok HTTP/1.0\r\n\r\n", 200),
    HostileRequest("HTTP/1.2, which nobody has defined", "GET /ok HTTP/1.2\(rest)", 505),
    HostileRequest("HTTP/1.9", "GET /ok HTTP/1.9\(rest)", 505),
    HostileRequest("HTTP/0.9 with a version", "GET /ok HTTP/0.9\(rest)", 505),
    HostileRequest("HTTP/0.9 without one", "GET /ok\r\n", 400),
    HostileRequest("HTTP/0.9 with a bare LF", "GET /ok\n", 400),
    HostileRequest("HTTP/2.0", "GET /ok HTTP/2.0\(rest)", 505),
    HostileRequest("the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    HostileRequest("HTTP/3.0", "GET /ok HTTP/3.0\(rest)", 505),
    HostileRequest("HTTP/9.9", "GET /ok HTTP/9.9\(rest)", 505),
    HostileRequest("a major version alone", "GET /ok HTTP/1\(rest)", 400),
    HostileRequest("a dot and no minor version", "GET /ok HTTP/1.\(rest)", 400),
    HostileRequest("two digits of a minor version", "GET /ok HTTP/1.10\(rest)", 400),
    HostileRequest("two digits of a major version", "GET /ok HTTP/11.1\(rest)", 400),
    HostileRequest("three numbers", "GET /ok HTTP/1.1.1\(rest)", 400),
    HostileRequest("a negative version", "GET /ok HTTP/-1.1\(rest)", 400),
    HostileRequest("a version with letters", "GET /ok HTTP/x.y\(rest)", 400),
    HostileRequest("a comma in the version", "GET /ok HTTP/1,1\(rest)", 400),
    HostileRequest("the protocol in small letters", "GET /ok http/1.1\(rest)", 400),
    HostileRequest("the protocol in mixed letters", "GET /ok Http/1.1\(rest)", 400),
    HostileRequest("no protocol", "GET /ok 1.1\(rest)", 400),
    HostileRequest("another protocol", "GET /ok HTTQ/1.1\(rest)", 400),
    HostileRequest("RTSP", "GET /ok RTSP/1.0\(rest)", 400),
    HostileRequest("SIP", "OPTIONS sip:x SIP/2.0\(rest)", 400),
    HostileRequest("a NUL in the version", "GET /ok HTTP/1.1\0\(rest)", 400),
    HostileRequest("a NUL as the version's dot", "GET /ok HTTP/1\u{0}1\(rest)", 400),
    HostileRequest("a CR in the version", "GET /ok HTTP/1.1\r\(rest)", 400),
  ]

  static let spacing: [HostileRequest] = [
    HostileRequest("two spaces before the target", "GET  /ok HTTP/1.1\(rest)", 400),
    HostileRequest("two spaces before the version", "GET /ok  HTTP/1.1\(rest)", .closed),
    HostileRequest("a space behind the version", "GET /ok HTTP/1.1 \(rest)", 400),
    HostileRequest("a tab behind the version", "GET /ok HTTP/1.1\t\(rest)", 400),
    HostileRequest("a space before the method", " GET /ok HTTP/1.1\(rest)", .closed),
    HostileRequest("a tab before the method", "\tGET /ok HTTP/1.1\(rest)", 400),
    HostileRequest("a tab in place of the first space", "GET\t/ok HTTP/1.1\(rest)", 400),
    HostileRequest("a tab in place of the second space", "GET /ok\tHTTP/1.1\(rest)", 400),
    HostileRequest("tabs in place of both", "GET\t/ok\tHTTP/1.1\(rest)", .closed),
    HostileRequest("a form feed in place of a space", "GET\u{c}/ok HTTP/1.1\(rest)", 400),
    HostileRequest("a vertical tab in place of a space", "GET /ok\u{b}HTTP/1.1\(rest)", 400),
    HostileRequest("a no-break space", "GET /ok\u{a0}HTTP/1.1\(rest)", 400),
    HostileRequest("a space in the target", "GET /ok /ok HTTP/1.1\(rest)", .closed),
    HostileRequest("two versions", "GET /ok HTTP/1.1 HTTP/1.1\(rest)", .closed),
    HostileRequest("a bare LF", "GET /ok HTTP/1.1\nHost: x\r\n\r\n", 400),
    HostileRequest("bare LFs alone", "GET /ok HTTP/1.1\nHost: x\n\n", 400),
    HostileRequest("a CR alone", "GET /ok HTTP/1.1\rHost: x\r\n\r\n", 400),
    HostileRequest("a CR and a space", "GET /ok HTTP/1.1\r \nHost: x\r\n\r\n", 400),
    HostileRequest("no space at all", "GET\(rest)", .closed),
    HostileRequest("a method and a space", "GET \(rest)", 400),
    HostileRequest("a space alone", " \(rest)", .closed),
    HostileRequest("no method", " /ok HTTP/1.1\(rest)", .closed),
    HostileRequest("a version alone", "HTTP/1.1\(rest)", .closed),
  ]

  static let methods: [HostileRequest] = [
    HostileRequest("HEAD, which has no body", "HEAD /ok HTTP/1.1\(closing)", 200),
    HostileRequest("small letters", "get /ok HTTP/1.1\(rest)", 405),
    HostileRequest("mixed letters", "Get /ok HTTP/1.1\(rest)", 405),
    HostileRequest("GETT", "GETT /ok HTTP/1.1\(rest)", 405),
    HostileRequest("GE", "GE /ok HTTP/1.1\(rest)", 405),
    HostileRequest("POST", "POST /ok HTTP/1.1\(rest)", 405),
    HostileRequest("PUT", "PUT /ok HTTP/1.1\(rest)", 405),
    HostileRequest("PATCH", "PATCH /ok HTTP/1.1\(rest)", 405),
    HostileRequest("DELETE", "DELETE /ok HTTP/1.1\(rest)", 405),
    HostileRequest("OPTIONS", "OPTIONS /ok HTTP/1.1\(rest)", 405),
    HostileRequest("TRACE, which gives credentials back", "TRACE /ok HTTP/1.1\(rest)", 405),
    HostileRequest("TRACK", "TRACK /ok HTTP/1.1\(rest)", 405),
    HostileRequest("PROPFIND", "PROPFIND /ok HTTP/1.1\(rest)", 405),
    HostileRequest("GET where only POST is served", "GET /body HTTP/1.1\(rest)", 405),
    HostileRequest("HEAD where only POST is served", "HEAD /body HTTP/1.1\(rest)", 405),
    HostileRequest("PUT where nothing is served", "PUT /none HTTP/1.1\(closing)", 404),
    HostileRequest("a method of 1000 letters", "\(repeated("G", 1000)) /ok HTTP/1.1\(rest)", 405),
    HostileRequest("a method with a colon", "GET: /ok HTTP/1.1\(rest)", 400),
    HostileRequest("a method in brackets", "[GET] /ok HTTP/1.1\(rest)", 400),
    HostileRequest("a method with a quote", "\"GET\" /ok HTTP/1.1\(rest)", 400),
    HostileRequest("a method with a slash", "GET/ok HTTP/1.1 HTTP/1.1\(rest)", 400),
    HostileRequest("a method with a comma", "GET,POST /ok HTTP/1.1\(rest)", 400),
    HostileRequest("a method with a NUL", "GE\0T /ok HTTP/1.1\(rest)", 400),
    HostileRequest("a method that ends with a NUL", "GET\0 /ok HTTP/1.1\(rest)", 400),
    HostileRequest("a NUL for a method", "\0 /ok HTTP/1.1\(rest)", 400),
    HostileRequest("a method with a control character", "GET\u{1} /ok HTTP/1.1\(rest)", 400),
    HostileRequest("a method with DEL", "GET\u{7f} /ok HTTP/1.1\(rest)", 400),
    HostileRequest("a method above ASCII", "G\u{c9}T /ok HTTP/1.1\(rest)", 400),
    HostileRequest("a method with a CR", "GET\r /ok HTTP/1.1\(rest)", 400),
  ]

  static let noise: [HostileRequest] = [
    HostileRequest(
      "a TLS hello", "\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}\u{0}\u{1}\u{fc}\u{3}\u{3}\r\n", .closed),
    HostileRequest("an SSH greeting", "SSH-2.0-OpenSSH_9.2p1\r\n", .closed),
    HostileRequest("an SMTP greeting", "EHLO x\r\nMAIL FROM:<a@x>\r\n", 400),
    HostileRequest("a Redis command", "*1\r\n$4\r\nPING\r\n", .closed),
    HostileRequest("a proxy's preamble", "PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n", 400),
    HostileRequest("a header line first", "Host: x\r\n\r\n", 400),
    HostileRequest("a byte order mark", "\u{ef}\u{bb}\u{bf}GET /ok HTTP/1.1\(rest)", 400),
    HostileRequest("UTF-16", "G\0E\0T\0 \0/\0o\0k\0 \0H\0T\0T\0P\0\r\n\r\n", 400),
    HostileRequest("an answer", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 400),
    HostileRequest(
      "an empty line first, which is tolerated", "\r\nGET /ok HTTP/1.1\(closing)", 200),
  ]

  @Test("a version is 1.0 or 1.1", arguments: versions)
  func version(_ request: HostileRequest) async throws { try await request.verify() }

  @Test("one space stands between the parts, and CRLF behind them", arguments: spacing)
  func space(_ request: HostileRequest) async throws { try await request.verify() }

  @Test("a method is a token that the path takes", arguments: methods)
  func method(_ request: HostileRequest) async throws { try await request.verify() }

  @Test("what is no HTTP is told so, or hung up on", arguments: noise)
  func isNoise(_ request: HostileRequest) async throws { try await request.verify() }
}

/// A text many times over.
func repeated(_ text: String, _ count: Int) -> String { String(repeating: text, count: count) }
