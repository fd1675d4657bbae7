import FaultLab
import Foundation
import FoundationNetworking
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@Suite("A request without a session")
struct FastClientTests {
  @Test("is served by the pinned server, by name, by subdomain and by address, over one connection")
  func served() async throws {
    let site = try PinnedSite()
    for host in ["localhost", "a.localhost", "127.0.0.1"] {
      let url = try site.url(host: host)
      for _ in 0..<3 { #expect(await site.transport.end(of: url) == .served(200, "hello")) }
    }
    #expect(site.server.counts.connections == 3)
    #expect(site.judge.recorded.allSatisfy { $0.outcome == .matched })
    #expect(site.judge.recorded.count == 3)
  }

  @Test("has a response that Foundation made: status, fields in any case, URL, length, type")
  func response() async throws {
    let site = try PinnedSite { _ in
      HTTPResponse(
        headers: [
          HTTPField("Content-Type", "text/html; charset=utf-8"), HTTPField("X-Twice", "a"),
          HTTPField("x-twice", "b"), HTTPField("ETag", "\"1\""),
        ], body: Array("body".utf8))
    }
    let url = try site.url("/path?q=1#here")
    for _ in 0..<2 {
      let (_, response) = try await site.transport.data(for: URLRequest(url: url))
      let http = try #require(response as? HTTPURLResponse)
      #expect(http.statusCode == 200)
      #expect(http.value(forHTTPHeaderField: "x-TWICE") == "a, b")
      #expect(http.value(forHTTPHeaderField: "etag") == "\"1\"")
      #expect(http.url == url)
      #expect(http.expectedContentLength == 4)
      #expect(http.mimeType == "text/html")
      #expect(http.textEncodingName == "utf-8")
    }
    #expect(site.server.requests.first?.target == "/path?q=1")
  }

  @Test("shares its response with the last one of the same head, where that is small")
  func sharedResponse() async throws {
    let site = try PinnedSite { request in
      let pad = String(repeating: "a", count: request.path == "/large" ? 20_000 : 200)
      return HTTPResponse(headers: [HTTPField("X-Pad", pad)])
    }
    for (path, isShared) in [("/", true), ("/large", false)] {
      let request = URLRequest(url: try site.url(path))
      let first = try await site.transport.data(for: request).1
      #expect(try await (site.transport.data(for: request).1 === first) == isShared, "\(path)")
    }
  }

  @Test("is refused where the key is not pinned: no byte of it leaves, and the verdict is thrown")
  func mismatch() async throws {
    let site = try PinnedSite()
    let rogue = try site.rogueIdentity()
    let attacker = try LocalTLSServer(identity: rogue) { _ in .text("gotcha") }
    let url = try site.url(port: attacker.port)
    do {
      _ = try await site.transport.data(for: URLRequest(url, fields: ["Authorization": "secret"]))
      Issue.record("served")
    } catch let refusal as PinEvaluation {
      #expect(refusal.outcome == .mismatch(.leaf))
      #expect(refusal.presented.first == (try SPKIPin(certificateDER: rogue.leaf.der)))
      #expect(site.transport.refusal(for: refusal) == refusal)
    }
    #expect(await attacker.waitUntilIdle())
    #expect(attacker.counts.connections > 0)
    #expect(attacker.counts.applicationBytesReceived == 0)
    #expect(site.judge.recorded.map(\.rule) == ["leaf-pin"])
    // The control: with the attacker's key pinned the very same request arrives.
    try site.judge.pin(["localhost": rogue])
    #expect(await site.transport.end(of: url) == .served(200, "gotcha"))
    #expect(attacker.counts.applicationBytesReceived > 0)
  }

  @Test("is refused under a bad chain although the key is pinned", arguments: [true, false])
  func chain(expired: Bool) async throws {
    let site = try PinnedSite()
    let now = Int64(Date().timeIntervalSince1970)
    let key = site.identity.key
    let identity =
      expired
      ? try site.authority.issue(
        names: PinnedSite.names, key: key,
        validity: Validity(notBefore: now - 9_000, notAfter: now - 100))
      : try site.authority.issue(names: ["other.example"], key: key)
    let server = try LocalTLSServer(identity: identity) { _ in .text("bad") }
    let end = await site.transport.end(of: try site.url(port: server.port))
    #expect(end == .refused(expired ? "chain" : "host-name"))
    #expect(await server.waitUntilIdle())
    #expect(server.counts.applicationBytesReceived == 0)
  }

  @Test("follows the pinned key alone where the app says so, and no other")
  func pinnedKeysOnly() async throws {
    let site = try PinnedSite(trust: .pinnedKeysOnly)
    let own = try ServerIdentity.selfSigned(names: ["other.example"], key: site.identity.key)
    let device = try LocalTLSServer(identity: own) { _ in .text("device") }
    #expect(
      await site.transport.end(of: try site.url(port: device.port)) == .served(200, "device"))
    let stranger = try LocalTLSServer(identity: site.rogueIdentity()) { _ in .text("stranger") }
    #expect(
      await site.transport.end(of: try site.url(port: stranger.port)) == .refused("leaf-pin"))
    #expect(await stranger.waitUntilIdle())
    #expect(stranger.counts.applicationBytesReceived == 0)
  }

  @Test(
    "is refused to an unlisted host, and goes there under the chain alone where the app says so")
  func unlisted() async throws {
    let site = try PinnedSite()
    try site.judge.pin(["other.localhost": site.identity])
    #expect(await site.transport.end(of: try site.url()) == .refused("unlisted-host"))
    #expect(site.server.counts.applicationBytesReceived == 0)
    try site.judge.pin(["other.localhost": site.identity], unlisted: .systemTrust)
    #expect(await site.transport.end(of: try site.url()) == .served(200, "hello"))
  }

  @Test("is refused in clear text before anything is dialled", arguments: ["http", "ws", "ftp"])
  func clearText(scheme: String) async throws {
    let site = try PinnedSite()
    let plain = try LocalHTTPServer { _ in .text("clear") }
    let url = try #require(URL(string: "\(scheme)://localhost:\(plain.port)/"))
    #expect(await site.transport.end(of: url) == .refused("clear-text"))
    #expect(plain.counts.connections == 0)
    #expect(site.judge.recorded.map(\.rule) == ["clear-text"])
  }

  @Test("is refused where the host is no name, and fails where there is no URL")
  func unreadable() async throws {
    let site = try PinnedSite()
    for host in ["1.2.3", "0x7f.1", "a_b..localhost"] {
      let url = try #require(URL(string: "https://\(host):\(site.server.port)/"))
      let end = await site.transport.end(of: url)
      #expect(end == .refused("unreadable-host") || end == .failed(.badURL), "\(host) \(end)")
    }
    #expect(site.server.counts.connections == 0)
    let other = try #require(URL(string: "gopher://localhost/"))
    #expect(await site.transport.end(of: other) == .failed(.unsupportedURL))
  }

  @Test("cannot smuggle another field or request in a field or a method")
  func smuggling() async throws {
    let site = try PinnedSite()
    let fields = URLRequest(
      try site.url(), fields: ["X-A": "1\r\nX-B: 2"])
    let method = URLRequest(try site.url(), method: "GET / HTTP/1.1\r\nX: 1\r\n\r\nGET")
    // Whether Foundation takes the field is its own affair; it must not arrive as two.
    _ = await site.transport.end(of: fields)
    #expect(site.server.requests.allSatisfy { $0.header("X-B") == nil })
    let before = site.server.requests.count
    #expect(await site.transport.end(of: method) == .failed(.badURL))
    #expect(site.server.requests.count == before)
    #expect(!HeaderRule.isSendable(name: "X-A", value: "1\r\nX-B: 2"))
    #expect(!HeaderRule.isSendable(name: "X-A: 1\r\nX-B", value: "2"))
    #expect(HeaderRule.isSendable(name: "X-A", value: "1\t2 ü"))
  }

  @Test("gets HEAD, 204, 401 and 404 as answers, and sends no password by itself")
  func answers() async throws {
    let site = try PinnedSite { request in
      switch request.path {
      case "/204": HTTPResponse(status: 204)
      case "/401":
        HTTPResponse(
          status: 401, headers: [HTTPField("WWW-Authenticate", "Basic realm=\"x\"")],
          body: Array("who".utf8))
      case "/404": .text("none", status: 404)
      default: .text("\(request.method)")
      }
    }
    let transport = site.transport
    #expect(
      await transport.end(of: URLRequest(try site.url(), method: "HEAD")) == .served(200, ""))
    #expect(await transport.end(of: try site.url("/204")) == .served(204, ""))
    #expect(await transport.end(of: try site.url("/401")) == .served(401, "who"))
    #expect(await transport.end(of: try site.url("/404")) == .served(404, "none"))
    #expect(await transport.end(of: try site.url()) == .served(200, "GET"))
    #expect(site.server.counts.connections == 1)
    #expect(site.server.requests.allSatisfy { $0.header("Authorization") == nil })
  }

  @Test("says why it failed: nobody there, no such name, a cut, silence, too late, cancelled")
  func failures() async throws {
    let site = try PinnedSite { request in
      switch request.path {
      case "/cut": HTTPResponse(body: [1, 2, 3, 4], delivery: .cutOff(afterBytes: 2))
      case "/drip":
        HTTPResponse(
          body: [UInt8](repeating: 1, count: 1000),
          delivery: .drip(pieceBytes: 1, pauseMilliseconds: 100))
      case "/garbage": HTTPResponse(body: Array("what?\r\n\r\n".utf8), delivery: .verbatim)
      default: HTTPResponse(body: [1], delayMilliseconds: 30_000)
      }
    }
    let transport = site.transport
    let closed = try ClosedPort()
    #expect(
      await transport.end(of: try site.url(port: closed.port)) == .failed(.cannotConnectToHost))
    let nobody = try #require(URL(string: "https://nobody.invalid/"))
    #expect(await transport.end(of: nobody) == .failed(.cannotFindHost))
    #expect(await transport.end(of: try site.url("/cut")) == .failed(.networkConnectionLost))
    #expect(await transport.end(of: try site.url("/garbage")) == .failed(.badServerResponse))
    #expect(
      await transport.end(of: URLRequest(try site.url(), timeout: 0.5)) == .failed(.timedOut))
    // Bytes keep coming, so only the limit over everything ends it.
    let dripping = URLRequest(try site.url("/drip"), timeout: 20)
    for seconds in [1, -1, -.infinity] as [Double] {
      #expect(await transport.end(of: dripping, within: seconds) == .failed(.timedOut))
    }
    let url = try site.url("/slow")
    let task = Task { await transport.end(of: url) }
    #expect(await eventually { site.server.requests.contains { $0.path == "/slow" } })
    task.cancel()
    #expect(await task.value == .failed(.cancelled))
    let early = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return await transport.end(of: url)
    }
    #expect(await early.value == .failed(.cancelled))
  }

  @Test("never resumes a TLS session, which would skip the verdict")
  func resumption() async throws {
    let site = try PinnedSite { _ in HTTPResponse(body: [65], closesConnection: true) }
    for _ in 0..<3 { #expect(await site.transport.end(of: try site.url()) == .served(200, "A")) }
    #expect(site.server.counts.handshakesCompleted == 3)
    #expect(site.server.counts.handshakesResumed == 0)
  }

  @Test("keeps nothing: no cookie, no cache")
  func stateless() async throws {
    let site = try PinnedSite { _ in
      HTTPResponse(
        headers: [HTTPField("Set-Cookie", "a=b"), HTTPField("Cache-Control", "max-age=600")],
        body: [65])
    }
    for _ in 0..<2 { _ = await site.transport.end(of: try site.url()) }
    #expect(site.server.requests.count == 2)
    #expect(site.server.requests.allSatisfy { $0.header("Cookie") == nil })
  }

  @Test("gives forty concurrent refusals forty verdicts of their own")
  func manyRefusals() async throws {
    let site = try PinnedSite()
    let attacker = try LocalTLSServer(identity: site.rogueIdentity()) { _ in .text("gotcha") }
    let found = try await withThrowingTaskGroup(of: (String, String?).self) { group in
      for host in (0..<40).map({ "h\($0).localhost" }) {
        let url = try site.url(host: host, port: attacker.port)
        group.addTask {
          do {
            _ = try await site.transport.data(for: URLRequest(url: url))
            return (host, nil)
          } catch { return (host, (error as? PinEvaluation)?.host) }
        }
      }
      return try await group.reduce(into: [(String, String?)]()) { $0.append($1) }
    }
    #expect(found.count == 40)
    #expect(found.allSatisfy { $0.0 == $0.1 })
  }

  @Test("lets go of everything with its transport")
  func lifetime() async throws {
    weak var weakJudge: ScriptedJudge?
    do {
      let site = try PinnedSite()
      weakJudge = site.judge
      _ = await site.transport.end(of: try site.url())
    }
    let released = WeakJudge(weakJudge)
    #expect(await eventually { released.isGone })
  }
}

/// A reference that does not keep its object.
private final class WeakJudge: @unchecked Sendable {
  private weak var judge: ScriptedJudge?

  init(_ judge: ScriptedJudge?) { self.judge = judge }

  var isGone: Bool { judge == nil }
}
