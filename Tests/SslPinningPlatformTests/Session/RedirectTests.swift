import FaultLab
import Foundation
import FoundationNetworking
import SslPinningPlatform
import SslPinningRules
import TLSTools
import Testing

@Suite("Redirects on a pinned URLSession")
struct RedirectTests {
  /// A pinned site whose root sends everybody to `target`.
  private func site(to target: String) throws -> PinnedSite {
    try PinnedSite { $0.path == "/" ? .redirect(to: target) : .text("arrived") }
  }

  @Test("are followed to a listed host with the pinned key")
  func listed() async throws {
    let other = try PinnedSite { _ in .text("other") }
    // Both sites stand under one CA here: the second server shows the first one's identity.
    let site = try site(to: "https://b.localhost:\(other.server.port)/")
    try other.server.replaceIdentity(site.identity)
    let body = try await site.session().data(from: site.url()).0
    #expect(String(decoding: body, as: UTF8.self) == "other")
    #expect(site.judge.recorded.map(\.host) == ["localhost", "b.localhost"])
  }

  @Test("are followed to a location without a scheme", arguments: ["//", " \t//"])
  func withoutScheme(prefix: String) async throws {
    let other = try PinnedSite { .text("other \($0.path)") }
    let site = try site(to: "\(prefix)b.localhost:\(other.server.port)/a/b?c=d")
    try other.server.replaceIdentity(site.identity)
    let body = try await site.session().data(from: site.url()).0
    #expect(String(decoding: body, as: UTF8.self).hasPrefix("other /a/b"))
  }

  @Test("are refused to a host whose key is another one, and the verdict names that host")
  func mismatch() async throws {
    let target = try PinnedSite()
    let site = try site(to: "https://b.localhost:\(target.server.port)/")
    try target.server.replaceIdentity(site.rogueIdentity())
    let refusal = await site.refusal(of: try site.url(), over: site.session())
    #expect(refusal?.host == "b.localhost")
    #expect(refusal?.rule == "leaf-pin")
    #expect(await target.server.waitUntilIdle())
    #expect(target.server.counts.applicationBytesReceived == 0)
  }

  @Test("are refused to an unlisted host")
  func unlisted() async throws {
    let target = try PinnedSite()
    let site = try site(to: "https://127.0.0.1:\(target.server.port)/")
    try target.server.replaceIdentity(site.identity)
    try site.judge.pin(["localhost": site.identity])
    let refusal = await site.refusal(of: try site.url(), over: site.session())
    #expect(refusal?.host == "127.0.0.1")
    #expect(refusal?.outcome == .unlisted)
    #expect(await target.server.waitUntilIdle())
    #expect(target.server.counts.applicationBytesReceived == 0)
  }

  @Test("are refused to clear text, even where the app's delegate says yes")
  func clearText() async throws {
    let plain = try LocalHTTPServer { _ in .text("clear") }
    let site = try site(to: "http://localhost:\(plain.port)/")
    // The control: an ordinary session goes there.
    let control = try await URLSession(configuration: .ephemeral)
      .data(from: #require(URL(string: "http://localhost:\(plain.port)/"))).0
    #expect(String(decoding: control, as: UTF8.self) == "clear")
    plain.clearLog()
    let delegate = RecordingDelegate(followsRedirects: true)
    let record = try await delegate.run(site.session(delegate: delegate).dataTask(with: site.url()))
    #expect(record.events.contains("redirect 302"))
    let refusal = site.transport.refusal(for: try #require(record.error))
    #expect(refusal?.outcome == .clearText(scheme: "http"))
    #expect(plain.counts.connections == 0)
  }

  @Test("are the app's to deny")
  func deniedByApp() async throws {
    let target = try PinnedSite()
    let site = try site(to: "https://b.localhost:\(target.server.port)/")
    let delegate = RecordingDelegate(followsRedirects: false)
    let record = try await delegate.run(site.session(delegate: delegate).dataTask(with: site.url()))
    #expect(record.error == nil)
    #expect(record.events.contains("response 302"))
    #expect(target.server.counts.connections == 0)
  }

  @Test(
    "are not followed to other schemes", arguments: ["ftp://localhost/x", "gopher://localhost/x"])
  func otherSchemes(target: String) async throws {
    let site = try site(to: target)
    await #expect(throws: (any Error).self) { try await site.session().data(from: site.url()) }
  }

  /// An ordinary session sends the next request with an empty body.
  @Test(
    "that would need the request's body again are the app's answer",
    arguments: [("POST", 307), ("POST", 308), ("PUT", 301), ("PATCH", 302)])
  func withBody(method: String, status: Int) async throws {
    let site = try PinnedSite {
      $0.path == "/"
        ? .redirect(to: "/next", status: status) : .text("\($0.method) \($0.body.count)")
    }
    var post = URLRequest(url: try site.url())
    post.httpMethod = method
    post.httpBody = Data("body".utf8)
    let (_, response) = try await site.session().data(for: post)
    #expect((response as? HTTPURLResponse)?.statusCode == status)
    #expect(site.server.requests.map(\.path) == ["/"])
    // Without one it is followed.
    post.httpBody = nil
    let (body, _) = try await site.session().data(for: post)
    #expect(String(decoding: body, as: UTF8.self) == "\(method) 0")
  }

  @Test("that need no body any more are followed", arguments: [("POST", 302), ("PUT", 303)])
  func withoutBody(method: String, status: Int) async throws {
    let site = try PinnedSite {
      $0.path == "/"
        ? .redirect(to: "/next", status: status) : .text("\($0.method) \($0.body.count)")
    }
    var request = URLRequest(url: try site.url())
    request.httpMethod = method
    request.httpBody = Data("body".utf8)
    let (body, _) = try await site.session().data(for: request)
    #expect(String(decoding: body, as: UTF8.self) == "GET 0")
  }
}
