import FaultLab
import Foundation
import FoundationNetworking
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

/// Foundation's own fault on Linux, which a pinned session shares: see `docs/platform-matrix.md`.
@Suite("A 401 that nobody answers")
struct UnansweredChallengeTests {
  private static let handler: LocalHTTPServer.Handler = { _ in
    HTTPResponse(
      status: 401, headers: [HTTPField("WWW-Authenticate", "Basic realm=\"x\"")],
      body: Array("who".utf8))
  }

  /// Whether the task has ended within two seconds of its request's time-out.
  private func ends(_ session: URLSession, _ url: URL) async throws -> Bool {
    let isOver = Locked(false)
    var request = URLRequest(url: url)
    request.timeoutInterval = 1
    let task = session.dataTask(with: request) { _, _, _ in isOver.withLock { $0 = true } }
    task.resume()
    defer { task.cancel() }
    return await eventually(within: 3) { isOver.withLock { $0 } }
  }

  @Test("keeps a task of a session without a delegate for ever, ordinary or pinned")
  func withoutDelegate() async throws {
    let plain = try LocalHTTPServer(handler: Self.handler)
    let url = try #require(URL(string: "http://127.0.0.1:\(plain.port)/"))
    #expect(try await !ends(URLSession(configuration: .ephemeral), url))
    #expect(!plain.requests.isEmpty)
    let site = try PinnedSite(handler: Self.handler)
    #expect(try await !ends(site.session(), site.url()))
    #expect(!site.server.requests.isEmpty)
  }

  @Test("is an answer to a request without a session")
  func withoutSession() async throws {
    let site = try PinnedSite(handler: Self.handler)
    #expect(await site.transport.end(of: try site.url()) == .served(401, "who"))
  }
}
