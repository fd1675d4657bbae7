import FaultLab
import Foundation
import FoundationNetworking
import SslPinningPlatform
import SslPinningRules
import TLSTools
import Testing

/// Foundation begins a task anew, from its first URL, when a delegate answers the challenge of a 401.
@Suite("A 401 behind a redirect on a pinned URLSession")
struct RedirectPasswordTests {
  private static let credential = URLCredential(
    user: "u", password: "p", persistence: .forSession)

  /// Asks for a password, in a folded field too, and serves whoever has one.
  private static let closed: LocalHTTPServer.Handler = { request in
    guard request.header("Authorization") == nil else { return .text("in") }
    return HTTPResponse(
      status: 401,
      headers: [
        HTTPField("X-First", "1"), HTTPField("www-authenticate", "Basic\r\n realm=\"x\""),
        HTTPField("WWW-Authenticate", "Basic realm=\"y\""), HTTPField("X-Last", "2"),
      ], body: Array("who".utf8))
  }

  @Test("of another origin is the answer, and no password is asked for or sent")
  func across() async throws {
    let second = try PinnedSite(handler: Self.closed)
    let first = try PinnedSite { request in
      .redirect(to: "https://b.localhost:\(second.server.port)/")
    }
    try second.server.replaceIdentity(first.identity)
    let delegate = RecordingDelegate(credential: Self.credential)
    let task = first.session(delegate: delegate).dataTask(with: try first.url())
    let record = await delegate.run(task)
    #expect(record.error == nil)
    #expect(record.events == ["redirect 302", "response 401"])
    #expect(String(decoding: record.body, as: UTF8.self) == "who")
    let response = try #require(task.response as? HTTPURLResponse)
    #expect(response.value(forHTTPHeaderField: "X-First") == "1")
    #expect(response.value(forHTTPHeaderField: "X-Last") == "2")
    #expect(first.server.requests.count == 1)
    #expect(second.server.requests.count == 1)
    for request in first.server.requests + second.server.requests {
      #expect(request.header("Authorization") == nil)
    }
  }

  /// Behind a redirect Foundation ends in a circle, on ordinary sessions too; it has asked all the same.
  @Test("of the same origin asks the delegate, and one without a redirect gets the password")
  func within() async throws {
    let site = try PinnedSite { request in
      request.path == "/" ? .redirect(to: "/closed") : Self.closed(request)
    }
    func record(_ path: String) async throws -> RecordingDelegate.Record {
      let delegate = RecordingDelegate(credential: Self.credential)
      let session = site.session(delegate: delegate)
      let record = await delegate.run(session.dataTask(with: try site.url(path)))
      #expect(record.events.contains("challenge \(NSURLAuthenticationMethodHTTPBasic)"))
      return record
    }
    _ = try await record("/")
    let direct = try await record("/closed")
    #expect(direct.error == nil)
    // Foundation hands over both bodies.
    #expect(String(decoding: direct.body, as: UTF8.self) == "whoin")
    #expect(site.server.requests.last?.header("Authorization") == "Basic dTpw")
  }

  @Test("of another origin sends the password to the first on an ordinary session")
  func control() async throws {
    let second = try LocalHTTPServer(handler: Self.closed)
    let first = try LocalHTTPServer { _ in
      .redirect(to: "http://b.localhost:\(second.port)/")
    }
    let delegate = RecordingDelegate(credential: Self.credential)
    let session = URLSession(
      configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
    let url = try #require(URL(string: "http://localhost:\(first.port)/"))
    _ = await delegate.run(session.dataTask(with: url))
    #expect(first.requests.contains { $0.header("Authorization") == "Basic dTpw" })
  }
}
