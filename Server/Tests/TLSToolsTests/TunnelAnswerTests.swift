import Testing

@testable import TLSTools

@Suite("A proxy's answer to CONNECT")
struct TunnelAnswerTests {
  private typealias State = TunnelAnswer.State

  private static func read(_ text: String, step: Int = .max) -> TunnelAnswer.State {
    var answer = TunnelAnswer()
    var rest = Array(text.utf8)[...]
    var state = State.incomplete
    while !rest.isEmpty, state == .incomplete {
      state = answer.feed(rest.prefix(step))
      rest = rest.dropFirst(step)
    }
    return state
  }

  @Test(
    "opens the tunnel, however the bytes come",
    arguments: [
      "HTTP/1.1 200 Connection Established\r\n\r\n", "HTTP/1.0 200 OK\r\n\r\n",
      "HTTP/1.1 200\r\n\r\n", "HTTP/1.1 200 \r\n\r\n", "HTTP/1.1 204 Fine\r\n\r\n",
      "HTTP/1.1 200 OK\r\nVia: 1.1 a\r\nProxy-Agent: b c\r\n\r\n",
      "HTTP/1.1 200 OK\r\nEmpty:\r\n\r\n",
      // RFC 9110 section 9.3.6: a client ignores these in an answer that opens a tunnel.
      "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
    ])
  func open(text: String) {
    for step in [1, 2, 3, 7, text.utf8.count] { #expect(Self.read(text, step: step) == .open) }
  }

  @Test(
    "says what was dialled in one field, whatever the case of its name",
    arguments: [
      ("SSL-Pinning-Address: 192.0.2.1\r\nVia: b", "192.0.2.1"),
      ("ssl-pinning-address:2001:db8::1", "2001:db8::1"),
      ("Via: b", nil), ("X-SSL-Pinning-Address: 192.0.2.1", nil),
      ("ssl-pinning-address: 192.0.2.1\r\nssl-pinning-address: 192.0.2.2", nil),
    ] as [(String, String?)])
  func dialled(fields: String, address: String?) {
    var answer = TunnelAnswer()
    #expect(answer.feed(Array("HTTP/1.1 200 OK\r\n\(fields)\r\n\r\n".utf8)) == .open)
    #expect(answer.value(of: TunnelAddress.field) == address)
  }

  @Test(
    "is not over before its empty line",
    arguments: [
      "", "H", "HTTP/1.1 2", "HTTP/1.1 200", "HTTP/1.1 200 OK", "HTTP/1.1 200 OK\r\n",
      "HTTP/1.1 200 OK\r\nA: b\r\n", "HTTP/1.1 200 OK\r\n\r", "HTTP/1.1 407 No\r\n",
    ])
  func incomplete(text: String) { #expect(Self.read(text) == .incomplete) }

  @Test(
    "any other status is a refusal",
    arguments: [100, 101, 199, 300, 302, 400, 403, 407, 500, 502, 999])
  func refused(status: Int) {
    let text = "HTTP/1.1 \(status) Whatever\r\nContent-Length: 3\r\n\r\nabc"
    #expect(Self.read(text) == .fault(.refused(status: status)))
  }

  @Test(
    "what is no answer is told by how it begins",
    arguments: [
      ("HTTP/2 200 OK\r\n\r\n", "HTTP/2 200 OK"), ("HTTP/1.x 200 OK\r\n\r\n", "HTTP/1.x 200 OK"),
      ("http/1.1 200 OK\r\n\r\n", "http/1.1 200 OK"),
      ("HTTP/1.1  200 OK\r\n\r\n", "HTTP/1.1  200 OK"),
      ("HTTP/1.1 2000 OK\r\n\r\n", "HTTP/1.1 2000 OK"),
      ("HTTP/1.1 20 OK\r\n\r\n", "HTTP/1.1 20 OK"),
      ("HTTP/1.1 200OK\r\n\r\n", "HTTP/1.1 200OK"), ("SSH-2.0-x\r\n", "SSH-2.0-x"),
      (" HTTP/1.1 200 OK\r\n\r\n", " HTTP/1.1 200 OK"),
      ("<b>\u{e9}\r\n\r\n", "?b???"), ("\u{16}\u{3}\u{1}\r\n", "???"),
      ("HTTP/1.1 200 OK\r\nno field\r\n\r\n", "HTTP/1.1 200 OK"),
      ("HTTP/1.1 200 OK\r\n: no name\r\n\r\n", "HTTP/1.1 200 OK"),
      ("HTTP/1.1 200 OK\r\nA b: c\r\n\r\n", "HTTP/1.1 200 OK"),
      ("HTTP/1.1 200 OK\r\nA: b\r\n folded\r\n\r\n", "HTTP/1.1 200 OK"),
      ("HTTP/1.1 200 OK\r\nA: b\nC: d\r\n\r\n", "HTTP/1.1 200 OK"),
      ("HTTP/1.1 200 OK\r\nA: b\rC: d\r\n\r\n", "HTTP/1.1 200 OK"),
      ("HTTP/1.1 200 O\nK\r\n\r\n", "HTTP/1.1 200 O"),
    ])
  func notHTTP(text: String, beginning: String) {
    #expect(Self.read(text) == .fault(.notHTTP(beginning: beginning)))
  }

  @Test("nothing may stand behind an answer that opens: no server can have spoken yet")
  func spokeEarly() {
    #expect(Self.read("HTTP/1.1 200 OK\r\n\r\nx") == .fault(.spokeEarly))
    #expect(Self.read("HTTP/1.1 200 OK\r\n\r\n\r\n") == .fault(.spokeEarly))
  }

  @Test("has an end within its limit, and is not waited for beyond")
  func endless() {
    let head = "HTTP/1.1 200 OK\r\nA: "
    let room = TunnelAnswer.limit - head.utf8.count
    let fitting = head + String(repeating: "a", count: room - 4) + "\r\n\r\n"
    #expect(Self.read(fitting, step: 1000) == .open)
    #expect(Self.read(head + String(repeating: "a", count: room)) == .fault(.tooLong))
    #expect(Self.read(head + String(repeating: "a", count: room - 1)) == .incomplete)
  }
}
