import FaultLab
import Foundation
import FoundationNetworking
import TLSTools
import TestSupport
import Testing

@testable import SslPinningPlatform

@Suite("Requests without a session whose kept connection died", .timeLimit(.minutes(3)))
struct FastRedialTests {
  private let hello = End.served(200, "hello")

  /// A site that hangs up at the first request for `/die`, and two ways to it: the second, which carries
  /// nothing, is where the first leads once that is said.
  private struct Place {
    let site: PinnedSite
    let relay, lost: SwitchableRelay
    let deaths = Locked(0)

    init() throws {
      let deaths = deaths
      site = try PinnedSite { request in
        guard request.path == "/die" else {
          return HTTPResponse(
            body: Array("hello".utf8), delayMilliseconds: request.path == "/slow" ? 8000 : 0)
        }
        let count = deaths.withLock { count in
          count += 1
          return count
        }
        return count == 1 ? HTTPResponse(delivery: .hangUp) : .text("again")
      }
      lost = try SwitchableRelay(to: .loopback(site.server.port))
      relay = try SwitchableRelay(to: .loopback(site.server.port))
      lost.suspend(true)
    }

    /// Whether dials to come hang.
    func hang(_ hangs: Bool) {
      relay.redirect(
        to: .loopback(hangs ? lost.port : site.server.port), closingConnections: false)
    }

    func url(_ path: String = "/") throws -> URL { try site.url(path, port: relay.port) }

    func end(_ url: URL, method: String = "GET", timeout: Double) async -> End {
      await site.transport.end(of: URLRequest(url, method: method, timeout: timeout))
    }
  }

  @Test("hold no others up when the dial for it hangs")
  func hangingRedial() async throws {
    let place = try Place()
    let (url, die) = (try place.url(), try place.url("/die"))
    #expect(await place.end(url, timeout: 60) == hello)
    place.hang(true)
    let again = Task { await place.end(die, timeout: 120) }
    #expect(await eventually { place.relay.connections == 2 })
    place.hang(false)
    let others = (0..<10).map { _ in Task { await place.end(url, timeout: 20) } }
    for other in others { #expect(await other.value == hello) }
    #expect(await place.end(url, timeout: 20) == hello)
    again.cancel()
  }

  @Test(
    "do not wait for a dial of others that hangs: sent again, or told of",
    arguments: [("GET", End.served(200, "again")), ("POST", .failed(.networkConnectionLost))])
  func behindHangingDial(method: String, end: End) async throws {
    let place = try Place()
    let (url, slow, die) = (try place.url(), try place.url("/slow"), try place.url("/die"))
    #expect(await place.end(url, timeout: 60) == hello)
    let keeping = Task { await place.end(slow, timeout: 60) }
    #expect(await eventually { place.site.server.requests.count == 2 })
    place.hang(true)
    let patient = Task { await place.end(url, timeout: 120) }
    #expect(await eventually { place.relay.connections == 2 })
    place.hang(false)
    // Its connection is kept from then on.
    #expect(await keeping.value == hello)
    #expect(await place.end(die, method: method, timeout: 20) == end)
    patient.cancel()
  }

  @Test(
    "are sent over another one if their own takes no more, where that does no harm twice",
    arguments: [("GET", End.served(200, "hello")), ("POST", .failed(.networkConnectionLost))])
  func refusedStream(method: String, end: End) async throws {
    let site = try PinnedSite()
    // Other requests of a connection than its first have their stream reset, or the connection.
    let nginx = try await Nginx.start(
      Nginx.Site(
        site.identity, name: "localhost", http2: true,
        directives: """
          location / { return 200 "hello"; }
          location /first {
            if ($connection_requests != 1) { return 444; }
            return 200 "hello";
          }
          """))
    let (url, first) = (
      try site.url(port: nginx.port), try site.url("/first", port: nginx.port)
    )
    let kept = URLRequest(url, method: method, timeout: 60)
    #expect(await site.transport.end(of: kept) == hello)
    #expect(await site.transport.end(of: URLRequest(first, method: method, timeout: 20)) == end)
    try await nginx.stop()
  }
}
