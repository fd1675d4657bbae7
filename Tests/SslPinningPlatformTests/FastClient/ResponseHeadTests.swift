import Testing

@testable import SslPinningPlatform

@Suite("The head of an answer to a request without a session")
struct ResponseHeadTests {
  private func fields(_ lines: String) -> [String: String] {
    ResponseHead(Array("HTTP/1.1 200 OK\r\n\(lines)\r\n\r\n".utf8)).fields
  }

  @Test(
    "has the lines of a folded field united with a space",
    arguments: [
      ("X-F: a\r\n  b", "a b"), ("X-F: a \r\n\tb\r\n c", "a b c"), ("X-F:\r\n a", "a"),
      ("X-F: a\r\n b: c", "a b: c"), ("X-F: a\r\nX-F: b\r\n c", "a, b c"),
    ])
  func folded(lines: String, value: String) {
    #expect(fields(lines + "\r\nX-G: d") == ["X-F": value, "X-G": "d"])
  }

  @Test("has nothing of a folded line that goes on with what is no field")
  func foldedWithNone() {
    #expect(fields(" a\r\nX-G: d") == ["X-G": "d"])
    #expect(fields("X-G: d\r\nno field\r\n a") == ["X-G": "d"])
    let long = String(repeating: "\u{fc}", count: 5000)
    #expect(fields("X-G: d\r\nX-F: \(long)\r\n a") == ["X-G": "d"])
    #expect(fields("X-F: a\r\n \(long)\r\n b\r\nX-G: d") == ["X-F": "a", "X-G": "d"])
  }
}
