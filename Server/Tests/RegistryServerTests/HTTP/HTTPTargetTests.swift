import Testing

@testable import RegistryServer

@Suite("Hostile targets", .timeLimit(.minutes(2))) struct HTTPTargetTests {
  static let forms: [HostileRequest] = [
    .target("origin-form", "/ok", 200),
    .target("absolute-form", "http://x/ok", 200),
    .target("absolute-form of another host", "http://other/ok", 200),
    .target("absolute-form, https, with a port", "HTTPS://x:443/ok?a=b", 200),
    .target("absolute-form of an IPv6 address", "http://[::1]:80/ok", 200),
    .target("absolute-form without a path", "http://x", 404),
    .target("absolute-form with a query and no path", "http://x?a=b", 404),
    .target("absolute-form without a host", "http:///ok", 400),
    .target("absolute-form with user information", "http://user@x/ok", 400),
    .target("absolute-form with a password", "http://user:secret@x/ok", 400),
    .target("absolute-form with a port of letters", "http://x:http/ok", 400),
    .target("absolute-form with one slash", "http:/ok", 400),
    .target("absolute-form without slashes", "http:ok", 400),
    .target("absolute-form with a backslash", "http:\\\\x/ok", 400),
    .target("another scheme", "ftp://x/ok", 404),
    .target("a file", "file:///etc/passwd", 404),
    .target("a script", "javascript:alert(1)", 400),
    .target("no slash", "ok", 400),
    .target("a dot and no slash", "./ok", 400),
    .target("a query alone", "?a=b", 400),
    .target("a host and a port", "x:80", 400),
    .target("an asterisk", "*", 400),
    HostileRequest(
      "OPTIONS and an asterisk", "OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 404),
    HostileRequest(
      "CONNECT to a host", "CONNECT x:443 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 404),
    HostileRequest("CONNECT to a path", "CONNECT /ok HTTP/1.1\r\nHost: x\r\n\r\n", 405),
    HostileRequest("CONNECT to nobody", "CONNECT @ HTTP/1.1\r\nHost: x\r\n\r\n", 400),
  ]

  static let characters: [HostileRequest] = [
    .target("a fragment", "/ok#a", 400),
    .target("a fragment in the query", "/ok?a#b", 400),
    .target("a backslash", "\\ok", 400),
    .target("a backslash in the path", "/a\\..\\ok", 400),
    .target("a NUL", "/ok\0", 400),
    .target("a NUL and more", "/ok\0.json", 400),
    .target("a NUL in the query", "/ok?a=\0b", 400),
    .target("a NUL for a target", "\0", 400),
    .target("a control character", "/ok\u{1}", 400),
    .target("an escape character", "/ok\u{1b}[31m", 400),
    .target("DEL", "/ok\u{7f}", 400),
    .target("a CR", "/ok\rX: y", .closed),
    .target("a tab", "/o\tk", 400),
    .target("raw UTF-8", "/\u{c3}\u{a9}", 400),
    .target("raw Latin-1", "/\u{e9}", 400),
    .target("a raw byte order mark", "/\u{ef}\u{bb}\u{bf}ok", 400),
    .target("a quote", "/ok\"", 400),
    .target("angle brackets", "/<script>", 400),
    .target("braces", "/{ok}", 400),
    .target("a circumflex", "/ok^", 400),
    .target("a backtick", "/`id`", 400),
    .target("a bar", "/ok|id", 400),
    .target("brackets", "/[ok]", 400),
    .target("a control character in the query", "/ok?a=\u{8}", 400),
    .target("raw UTF-8 in the query", "/ok?a=\u{c3}\u{a9}", 400),
    .target("a quote in the query", "/ok?a=\"", 400),
    .target("angle brackets in the query", "/ok?a=<b>", 400),
    .target("a backslash in the query", "/ok?a=\\", 400),
    .target("sub-delimiters, which a path may have", "/!$&'()*+,;=:@", 404),
  ]

  static let escapes: [HostileRequest] = [
    .target("an escaped letter", "/%6fk", 200),
    .target("an escaped letter in capitals", "/%6Fk", 200),
    .target("an escape of an escape, which is decoded once", "/%256fk", 404),
    .target("an escaped NUL", "/ok%00", 400),
    .target("an escaped NUL before an ending", "/ok%00.json", 400),
    .target("an escaped LF", "/ok%0a", 400),
    .target("an escaped CRLF and a header", "/ok%0d%0aX:%20y", 400),
    .target("an escaped DEL", "/ok%7f", 400),
    .target("an escaped slash", "/a%2fok", 400),
    .target("an escaped slash in capitals", "/a%2Fok", 400),
    .target("an escaped backslash", "/a%5cok", 400),
    .target("an escape of one digit", "/ok%4", 400),
    .target("an escape of no digit", "/ok%", 400),
    .target("an escape of other letters", "/ok%zz", 400),
    .target("an escape with a sign", "/%+6fk", 400),
    .target("an escape with a prefix", "/%0x6f", 400),
    .target("a script's escape", "/%u006fk", 400),
    .target("an escaped byte that is no UTF-8", "/%ff", 400),
    .target("an overlong slash", "/..%c0%af..", 400),
    .target("an overlong dot", "/%c0%ae%c0%ae/", 400),
    .target("an overlong NUL", "/ok%c0%80", 400),
    .target("half a character", "/%c3", 400),
    .target("a surrogate", "/%ed%a0%80", 400),
    .target("beyond Unicode", "/%f5%80%80%80", 400),
    .target("a name in UTF-8, which is not served", "/%c3%a9", 404),
    .target("an escaped question mark, which ends no path", "/ok%3fa=b", 404),
    .target("an escaped host", "http://%78/ok", 400),
  ]

  static let traversals: [HostileRequest] = [
    .target("dots", "/../ok", 404),
    .target("many dots", "/../../../../../../etc/passwd", 404),
    .target("dots behind a name", "/a/../ok", 404),
    .target("one dot", "/./ok", 404),
    .target("escaped dots", "/%2e%2e/ok", 404),
    .target("escaped dots and slash", "/%2e%2e%2fok", 400),
    .target("dots escaped twice", "/%252e%252e%252fok", 404),
    .target("dots with a parameter", "/..;/ok", 404),
    .target("dots at the end", "/ok/..", 404),
    .target("a slash at the end", "/ok/", 404),
    .target("two slashes", "//ok", 404),
    .target("two slashes and a host", "//other/ok", 404),
    .target("a drive", "/c:/windows/win.ini", 404),
    .target("a tilde", "/~root/", 404),
    .target("a hidden file", "/.git/config", 404),
    .target("another letter case", "/OK", 404),
    .target("a blank at the end", "/ok%20", 404),
    .target("a dot at the end", "/ok.", 404),
    .target("no path", "/", 404),
  ]

  static let queries: [HostileRequest] = [
    .target("a pair", "/ok?a=b", 200),
    .target("nothing behind the mark", "/ok?", 200),
    .target("empty pieces", "/ok?&&=&a=b&", 200),
    .target("brackets, as browsers send them", "/ok?a[]=b|{c}^`", 200),
    .target("an escaped NUL in a value", "/ok?a=%00", 400),
    .target("an escaped LF in a value", "/ok?a=%0a", 400),
    .target("an escaped NUL in a name", "/ok?%00=a", 400),
    .target("half an escape", "/ok?a=%4", 400),
    .target("no UTF-8", "/ok?a=%ff", 400),
    .target("an overlong slash in a value", "/ok?a=%c0%af", 400),
    .target("a surrogate in a value", "/ok?a=%ed%a0%80", 400),
    .target("400 pairs, more than libmicrohttpd has memory for", "/ok?" + repeated("a&", 400), 200),
    .target("a bad escape behind 400 pairs", "/ok?" + repeated("a&", 400) + "%", 400),
  ]

  @Test("a target is a path, or a URL of this server's kind", arguments: forms)
  func form(_ request: HostileRequest) async throws { try await request.verify() }

  @Test("only what belongs into a target stands there", arguments: characters)
  func character(_ request: HostileRequest) async throws { try await request.verify() }

  @Test("escapes are decoded once, and strictly", arguments: escapes)
  func escape(_ request: HostileRequest) async throws { try await request.verify() }

  @Test("paths are names, not steps", arguments: traversals)
  func traversal(_ request: HostileRequest) async throws { try await request.verify() }

  @Test("a query is read strictly", arguments: queries)
  func query(_ request: HostileRequest) async throws { try await request.verify() }
}
