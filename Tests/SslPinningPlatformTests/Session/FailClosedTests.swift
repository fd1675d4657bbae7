import FaultLab
import Foundation
import FoundationNetworking
import TLSTools
import Testing

@testable import SslPinningPlatform

@Suite("A session that cannot pin")
struct FailClosedTests {
  @Test("this process can pin")
  func selfTest() {
    #expect(throws: Never.self) { try PinnedTransport.selfTest() }
  }

  @Test(
    "fails every kind of request with the cause, and dials nobody", arguments: ["https", "http"])
  func failsClosed(scheme: String) async throws {
    let site = try PinnedSite()
    let plain = try LocalHTTPServer { _ in .text("clear") }
    let port = scheme == "https" ? site.server.port : plain.port
    let url = try #require(URL(string: "\(scheme)://localhost:\(port)/"))
    let session = RefusingProtocol.session(
      cause: .cannotPin(reason: "no hook"), configuration: .default, delegate: nil,
      delegateQueue: nil)
    var post = URLRequest(url: url)
    post.httpMethod = "POST"
    let attempts: [@Sendable () async throws -> Void] = [
      { _ = try await session.data(from: url) },
      { [post] in _ = try await session.upload(for: post, from: Data("secret".utf8)) },
      { _ = try await session.download(from: url) },
    ]
    for attempt in attempts {
      do {
        try await attempt()
        Issue.record("a request was served")
      } catch {
        #expect("\(error)".contains("this platform cannot pin: no hook"))
      }
    }
    #expect(site.server.counts.connections == 0)
    #expect(plain.counts.connections == 0)
  }
}
