import TestSupport
import Testing

@testable import RegistryServer

@Suite("Hostile framing", .timeLimit(.minutes(2))) struct HTTPFramingTests {
  static let lengths: [HostileRequest] = [
    .post("letters", "Content-Length: abc\r\n", "a", .twice(400)),
    .post("nothing", "Content-Length:\r\n", "a", .twice(400)),
    .post("blanks", "Content-Length:  \r\n", "a", .twice(400)),
    .post("a sign", "Content-Length: +1\r\n", "a", .twice(400)),
    .post("a negative number", "Content-Length: -1\r\n", "a", .twice(400)),
    .post("a hexadecimal number", "Content-Length: 0x1\r\n", "a", .twice(400)),
    .post("a fraction", "Content-Length: 1.0\r\n", "a", .twice(400)),
    .post("an exponent", "Content-Length: 1e0\r\n", "a", .twice(400)),
    .post("a list", "Content-Length: 1, 1\r\n", "a", .twice(400)),
    .post("a list without a blank", "Content-Length: 1,1\r\n", "a", .twice(400)),
    .post("two numbers", "Content-Length: 1 1\r\n", "a", .twice(400)),
    .post("a unit", "Content-Length: 1b\r\n", "a", .twice(400)),
    .post("quotes", "Content-Length: \"1\"\r\n", "a", .twice(400)),
    .post("an underscore", "Content-Length: 1_0\r\n", "a", .twice(400)),
    .post("more than 64 bits", "Content-Length: 18446744073709551617\r\n", "a", .twice(413)),
    .post("40 digits", "Content-Length: \(repeated("9", 40))\r\n", "a", .twice(413)),
    .post("19 digits", "Content-Length: 9999999999999999999\r\n", "a", 413),
    HostileRequest(
      "letters, for an answer without a body",
      "HEAD /ok HTTP/1.1\r\nHost: x\r\nContent-Length: abc\r\n\r\n", .twice(400)),
    .post("twice", "Content-Length: 1\r\nContent-Length: 2\r\n", "ab", 400),
    .post("twice the same", "Content-Length: 1\r\nContent-Length: 1\r\n", "a", 400),
    .post("twice in other letters", "Content-Length: 1\r\ncontent-length: 0\r\n", "a", 400),
    .post("once zero, once not", "Content-Length: 0\r\nContent-Length: 33\r\n", "", 400),
    .post("a blank before the colon", "Content-Length : 1\r\n", "a", 400),
    .post("a NUL behind it", "Content-Length: 1\0\r\n", "a", 400),
    .post("a NUL in it", "Content-Length: 1\u{0}0\r\n", "a", 400),
    .post("a vertical tab before it", "Content-Length: \u{b}1\r\n", "a", .twice(400)),
    .post("more than the path takes", "Content-Length: 1001\r\n", "a", 413),
    .lines("a body where none is taken", "Content-Length: 1\r\n", 413),
    HostileRequest(
      "a body in HTTP/1.0 where none is taken",
      "GET /ok HTTP/1.0\r\nContent-Length: 1\r\n\r\na", 413),
    HostileRequest(
      "a body where nothing is served",
      "POST /none HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\na", 404),
    HostileRequest(
      "a body for another method",
      "PUT /body HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\na", 405),
    .post(
      "letters, before a whole other request", "Content-Length: abc\r\n",
      "GET /next HTTP/1.1\r\nHost: x\r\n\r\n", .twice(400)),
    .post("zeros before it", "Content-Length: 0001\r\nConnection: close\r\n", "a", 200),
    .post("zero", "Content-Length: 0\r\nConnection: close\r\n", "", 200),
    .post("none, which is an empty body", "Connection: close\r\n", "", 200),
  ]

  static let codings: [HostileRequest] = [
    coding("another coding", "gzip", 400),
    coding("nothing", "", 400),
    coding("identity", "identity", 400),
    coding("a name that ends alike", "xchunked", 400),
    coding("a name that begins alike", "chunkedx", 400),
    coding("chunked, but not last", "chunked, identity", 400),
    coding("chunked, then gzip", "chunked, gzip", 400),
    coding("chunked last of two", "gzip, chunked", 400),
    coding("identity before chunked", "identity, chunked", 400),
    coding("chunked twice", "chunked, chunked", 400),
    coding("a comma before it", ", chunked", 400),
    coding("a comma behind it", "chunked,", 400),
    coding("a parameter", "chunked;q=1", 400),
    coding("quotes", "\"chunked\"", 400),
    coding("a blank behind it", "chunked ", 400),
    coding("a tab behind it", "chunked\t", 400),
    coding("a vertical tab before it", "\u{b}chunked", 400),
    coding("a control character behind it", "chunked\u{1}", 400),
    coding("a NUL behind it", "chunked\0", 400),
    coding("a NUL and more", "chunked\0, identity", 400),
    coding("a CR before it", "\rchunked", 400),
    coding("a colon before it", ": chunked", 400),
    coding("a capital in another alphabet", "\u{c3}\u{a7}hunked", 400),
    .post(
      "twice", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n", 400),
    .post(
      "identity first", "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n",
      "0\r\n\r\n", 400),
    .post(
      "chunked first", "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
      "0\r\n\r\n", 400),
    .post(
      "with a length", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n", 400),
    .post(
      "with a length behind it", "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
      "0\r\n\r\n", 400),
    .post(
      "with a length of zero", "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n",
      "0\r\n\r\n", 400),
    .post("a blank before the colon", "Transfer-Encoding : chunked\r\n", "0\r\n\r\n", 400),
    .post(
      "an underscore in the name, which is another header",
      "Transfer_Encoding: chunked\r\nConnection: close\r\n", "", 200),
    .lines("chunked where no body is taken", "Transfer-Encoding: chunked\r\n", 413),
    HostileRequest(
      "HTTP/1.0", "POST /body HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    HostileRequest(
      "HTTP/1.0 with a length",
      "POST /body HTTP/1.0\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\na", 400),
    coding("capitals, which are allowed", "CHUNKED", 200),
  ]

  static let chunks: [HostileRequest] = [
    chunked("a whole body", "5\r\nhello\r\n0\r\n\r\n", 200),
    chunked("zeros before the size", "0005\r\nhello\r\n000\r\n\r\n", 200),
    chunked("an extension, which is ignored", "5;a=b\r\nhello\r\n0\r\n\r\n", 200),
    chunked("no size", "\r\nhello\r\n0\r\n\r\n", 400),
    chunked("letters", "xyz\r\nhello\r\n0\r\n\r\n", 400),
    chunked("a prefix", "0x5\r\nhello\r\n0\r\n\r\n", 400),
    chunked("a sign", "+5\r\nhello\r\n0\r\n\r\n", 400),
    chunked("a negative size", "-5\r\nhello\r\n0\r\n\r\n", 400),
    chunked("a blank before the size", " 5\r\nhello\r\n0\r\n\r\n", 400),
    chunked("a blank behind the size", "5 \r\nhello\r\n0\r\n\r\n", 400),
    chunked("a tab behind the size", "5\t\r\nhello\r\n0\r\n\r\n", 400),
    chunked("an underscore", "0_5\r\nhello\r\n0\r\n\r\n", 400),
    chunked("a NUL in the size", "5\0\r\nhello\r\n0\r\n\r\n", 400),
    chunked("an extension without a size", ";a=b\r\nhello\r\n0\r\n\r\n", 400),
    chunked("more than 64 bits", "10000000000000005\r\nhello\r\n0\r\n\r\n", 413),
    chunked("32 digits", "\(repeated("f", 32))\r\nhello\r\n0\r\n\r\n", 413),
    chunked("a chunk longer than its size", "5\r\nhello!\r\n0\r\n\r\n", 400),
    chunked("a chunk without its end", "5\r\nhello0\r\n\r\n", 400),
    chunked("a CR in place of a chunk's end", "5\r\nhello\r0\r\n\r\n", 400),
    chunked("a trailer", "5\r\nhello\r\n0\r\nX: y\r\n\r\n", 400),
    chunked("a trailer that looks like a framing", "0\r\nContent-Length: 5\r\n\r\n", 400),
    chunked("a trailer without a colon", "0\r\nGET /next HTTP/1.1\r\n\r\n", 400),
    chunked(
      "another request behind it, which is not read",
      "0\r\n\r\nGET /next HTTP/1.1\r\nHost: x\r\n\r\n", 200),
    // libmicrohttpd takes these, so the answer is the connection's last: whatever another parser
    // sees behind them is never answered.
    chunked("a bare LF behind the size", "5\nhello\r\n0\r\n\r\n", 200),
    chunked("a bare LF behind the chunk", "5\r\nhello\n0\r\n\r\n", 200),
    chunked("bare LFs at the end", "5\r\nhello\r\n0\n\n", 200),
    chunked("a bare LF in an extension", "5;a\nhello\r\n0\r\n\r\n", 200),
    chunked("a CR in an extension", "5;a\rb\r\nhello\r\n0\r\n\r\n", 200),
  ]

  private static func coding(_ name: String, _ coding: String, _ status: Int) -> HostileRequest {
    .post(name, "Transfer-Encoding: \(coding)\r\n", "0\r\n\r\n", .status(status))
  }

  private static func chunked(_ name: String, _ body: String, _ status: Int) -> HostileRequest {
    .post(name, "Transfer-Encoding: chunked\r\n", body, .status(status))
  }

  @Test("a length is digits, once", arguments: lengths)
  func length(_ request: HostileRequest) async throws { try await request.verify() }

  @Test("a transfer coding is chunked, once, and without a length", arguments: codings)
  func coding(_ request: HostileRequest) async throws { try await request.verify() }

  @Test("a chunked body is one request and the end of the connection", arguments: chunks)
  func chunk(_ request: HostileRequest) async throws { try await request.verify() }
}
