import FaultLab
import TLSTools
import Testing

@testable import ssl_pinning_lab

@Suite("A plain HTTP reader")
struct PlainAnswerTests {
  private static func first(_ text: String) throws(PlainFailure) -> (PlainAnswer, length: Int)? {
    try PlainAnswer.first(in: Array(text.utf8))
  }

  @Test("takes one whole answer of those that came, and waits for the rest of one")
  func answers() throws {
    let text = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhiHTTP/1.1"
    let (answer, length) = try #require(try Self.first(text))
    #expect(answer == PlainAnswer(status: 200, body: Array("hi".utf8), isLast: true))
    #expect(length == text.utf8.count - 8)
    #expect(try Self.first("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhi") == nil)
    #expect(try Self.first("HTTP/1.1 200 OK\r\nContent-Le") == nil)
    for wrong in [
      "HTTP/1.1 200 OK\r\n\r\n", "SSH-2.0\r\n\r\n", "HTTP/1.1 x\r\nContent-Length: 0\r\n\r\n",
    ] {
      #expect(throws: PlainFailure.malformed) { try Self.first(wrong) }
    }
  }

  @Test("keeps its connection, and tells an answer that is cut off from none at all")
  func connections() throws {
    let server = try LocalHTTPServer { _ in .text("hello") }
    let connection = try PlainConnection(port: server.port)
    for _ in 0..<2 { #expect(try connection.get("/").body == Array("hello".utf8)) }
    server.stop()
    #expect(throws: PlainFailure.self) { try connection.get("/") }
    #expect(throws: PlainFailure.self) { try PlainConnection(port: server.port) }
  }
}
