import FaultLab
import Foundation
import FoundationNetworking
import SslPinningPlatform
import TLSTools
import TestSupport
import Testing

@Suite("A body in more records than any server may send in one turn", .serialized)
struct LongTransferTests {
  @Test(
    "arrives whole, over a session and without one: turns end", .timeLimit(.minutes(5)),
    arguments: [true, false])
  func whole(isHTTP2: Bool) async throws {
    let site = try PinnedSite()
    let size = 30_000_000
    let nginx = try await Nginx.start(
      Nginx.Site(
        site.identity, name: "localhost", http2: isHTTP2,
        directives: "ssl_buffer_size 1k;\nlocation /file { root html; }"),
      files: ["html/file": String(repeating: "0123456789", count: size / 10)])
    let request = URLRequest(
      url: try site.url(port: nginx.port).appendingPathComponent("file"), timeoutInterval: 200)
    let (body, _) = try await site.transport.data(for: request)
    #expect(body.count == size)
    let session = site.session()
    let (again, _) = try await session.data(for: request)
    #expect(again.count == size)
    session.invalidateAndCancel()
    try await nginx.stop()
  }
}
