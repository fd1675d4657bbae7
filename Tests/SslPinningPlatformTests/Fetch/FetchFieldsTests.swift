import FaultLab
import SslPinningPlatform
import TLSTools
import TestSupport
import Testing

@Suite("Heads and trailers of a registry's answer")
struct FetchFieldsTests {
  @Test(
    "are bounded together, as its body is",
    arguments: [(100, 100, true), (150, 150, false), (0, 300, false)])
  func bounded(head: Int, trailers: Int, isTaken: Bool) async throws {
    let field = "A: " + String(repeating: "b", count: 1000) + "\r\n"
    let text =
      "HTTP/1.1 200 OK\r\n" + String(repeating: field, count: head)
      + "Transfer-Encoding: chunked\r\n\r\n5\r\nwhole\r\n0\r\n"
      + String(repeating: field, count: trailers) + "\r\n"
    let authority = try CertificateAuthority.makeRoot(name: "Root")
    let server = try LocalTLSServer(identity: try authority.issue(names: ["localhost"])) { _ in
      HTTPResponse(body: Array(text.utf8), delivery: .verbatim)
    }
    let fetcher = try DocumentFetcher(trust: .anchors([authority.certificate.der]))
    let request = DocumentRequest(
      url: try RegistryURL("https://localhost:\(server.port)/"), maximumBytes: 100, timeout: 60)
    if isTaken {
      #expect(try await fetcher.fetch(request) == .fresh(Array("whole".utf8), etag: nil))
    } else {
      await #expect(throws: FetchError.self) { try await fetcher.fetch(request) }
    }
  }

  @Test(
    "name one coding at most: of two the first may be gigabytes of which the second leaves nothing")
  func codings() async throws {
    let authority = try CertificateAuthority.makeRoot(name: "Root")
    let identity = try authority.issue(names: ["localhost"])
    let fetcher = try DocumentFetcher(trust: .anchors([authority.certificate.der]))
    for (codings, isTaken) in [
      ("identity", true), ("gzip, br", false),
      ("gzip," + String(repeating: " ", count: 9000) + "br", false),
      ("br\r\nContent-Encoding: gzip", false),
      // A field, though it looks like another head's first line; nor does a short line end a head.
      ("br\r\nHTTP/x: y\r\nContent-Encoding: gzip", false),
      ("br\r\n:\nHTTP/x: y\r\nContent-Encoding: gzip", false),
      ("br\r\n \nHTTP/x: y\r\nContent-Encoding: gzip", false),
    ] {
      let text = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Encoding: \(codings)\r\n\r\n"
      let server = try LocalTLSServer(identity: identity) { _ in
        HTTPResponse(body: Array(text.utf8), delivery: .verbatim)
      }
      let request = DocumentRequest(
        url: try RegistryURL("https://localhost:\(server.port)/"), maximumBytes: 100, timeout: 60)
      #expect((try? await fetcher.fetch(request)) == (isTaken ? .fresh([], etag: nil) : nil))
    }
  }
}
