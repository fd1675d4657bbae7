import FaultLab
import Foundation
import FoundationNetworking
import SslPinningPlatform
import SslPinningRules
import TLSTools
import Testing

/// The same as ``FastRedirectTests`` shows for requests without a session. What Foundation carries along,
/// the controls show on an ordinary session.
@Suite("What a pinned URLSession carries along a redirect")
struct RedirectSecretsTests {
  private static let secrets = [
    "Authorization": "Bearer a", "cookie": "b=1", "Proxy-Authorization": "Basic c",
  ]

  /// Two servers under one key: `/` leads from the first to the second.
  private struct Pair {
    let first: PinnedSite
    let second: PinnedSite

    /// - Parameter path: on the second server; `/on` leads on to `/`, and `/back` to the first.
    init(path: String = "/", status: Int = 302) throws {
      let home = Locked("")
      let second = try PinnedSite { request in
        switch request.path {
        case "/on": .redirect(to: "/end")
        case "/back": .redirect(to: home.withLock { $0 })
        default: .text("there")
        }
      }
      first = try PinnedSite {
        $0.path == "/"
          ? .redirect(to: "https://b.localhost:\(second.server.port)\(path)", status: status)
          : .text("here")
      }
      try second.server.replaceIdentity(first.identity)
      home.withLock { [port = first.server.port] in $0 = "https://localhost:\(port)/home" }
      self.second = second
    }

    func request() throws -> URLRequest {
      var request = URLRequest(url: try first.url(), timeoutInterval: 20)
      for (name, value) in secrets { request.setValue(value, forHTTPHeaderField: name) }
      request.setValue("d", forHTTPHeaderField: "X-Own")
      return request
    }
  }

  private func expectNoSecrets(_ request: HTTPRequest) {
    for name in Self.secrets.keys { #expect(request.header(name) == nil, "\(name)") }
    #expect(request.header("X-Own") == "d")
  }

  /// Foundation takes user and password over from the last URL if `Location` names no scheme.
  @Test("is no password of the URL, also if only the scheme stays; an ordinary session sends it")
  func passwordOfURL() async throws {
    let second = try PinnedSite { _ in .text("there") }
    let port = second.server.port
    // Also that of the redirect: whoever sends it does not choose as whom the client signs in elsewhere.
    for location in ["//b.localhost:\(port)/", "https://eve:pw@b.localhost:\(port)/"] {
      let first = try PinnedSite { .redirect(to: $0.path == "/" ? "/next" : location) }
      try second.server.replaceIdentity(first.identity)
      let url = try #require(URL(string: "https://us:pw@localhost:\(first.server.port)/"))
      _ = try await first.session().data(from: url)
      #expect(
        first.server.requests.map { $0.header("Authorization") } == [
          "Basic dXM6cHc=", "Basic dXM6cHc=",
        ])
    }
    #expect(second.server.requests.map { $0.header("Authorization") } == [nil, nil])

    let plain = try LocalHTTPServer { _ in .text("there") }
    let leading = try LocalHTTPServer { _ in .redirect(to: "//b.localhost:\(plain.port)/") }
    let clear = try #require(URL(string: "http://us:pw@localhost:\(leading.port)/"))
    _ = try await URLSession(configuration: .ephemeral).data(from: clear)
    #expect(plain.requests.map { $0.header("Authorization") } == ["Basic dXM6cHc="])
  }

  @Test(
    "is no secret where the origin changes, on no later hop either",
    arguments: [("/", 302), ("/", 307), ("/on", 301), ("/back", 308)])
  func across(path: String, status: Int) async throws {
    let pair = try Pair(path: path, status: status)
    _ = try await pair.first.session().data(for: pair.request())
    #expect(pair.first.server.requests.first?.header("Authorization") == "Bearer a")
    #expect(pair.first.server.requests.first?.header("Cookie") == "b=1")
    #expect(!pair.second.server.requests.isEmpty)
    for request in pair.second.server.requests { expectNoSecrets(request) }
    for request in pair.first.server.requests.dropFirst() { expectNoSecrets(request) }
  }

  @Test("is no secret where an app's own delegate says yes to the redirect")
  func delegate() async throws {
    let pair = try Pair(path: "/on")
    let delegate = RecordingDelegate()
    let own = pair.first.session(delegate: delegate)
    #expect(try await delegate.run(own.dataTask(with: pair.request())).error == nil)
    #expect(!pair.second.server.requests.isEmpty)
    for request in pair.second.server.requests { expectNoSecrets(request) }
  }

  @Test("is a port's and a host's own: another of either is another origin")
  func otherPort() async throws {
    let other = try PinnedSite { _ in .text("other") }
    let site = try PinnedSite { _ in .redirect(to: "https://localhost:\(other.server.port)/") }
    try other.server.replaceIdentity(site.identity)
    var request = URLRequest(url: try site.url(), timeoutInterval: 20)
    request.setValue("Bearer a", forHTTPHeaderField: "Authorization")
    _ = try await site.session().data(for: request)
    #expect(other.server.requests.count == 1)
    #expect(other.server.requests.first?.header("Authorization") == nil)
  }

  @Test("stays whole within an origin, however it is spelled")
  func within() async throws {
    let port = Locked<UInt16>(0)
    let site = try PinnedSite {
      $0.path == "/"
        ? .redirect(to: "HTTPS://LOCALHOST:\(port.withLock { $0 })/there") : .text("there")
    }
    port.withLock { $0 = site.server.port }
    var request = URLRequest(url: try site.url(), timeoutInterval: 20)
    for (name, value) in Self.secrets { request.setValue(value, forHTTPHeaderField: name) }
    _ = try await site.session().data(for: request)
    #expect(site.server.requests.last?.path == "/there")
    for (name, value) in Self.secrets {
      #expect(site.server.requests.last?.header(name) == value, "\(name)")
    }
  }

  @Test("are the new host's cookies, and none of the old one's", arguments: [false, true])
  func storedCookies(withDelegate: Bool) async throws {
    let pair = try Pair()
    let configuration = URLSessionConfiguration.ephemeral
    let storage = try #require(configuration.httpCookieStorage)
    for (host, value) in [("localhost", "old"), ("b.localhost", "new")] {
      let cookie = try #require(
        HTTPCookie(properties: [.domain: host, .path: "/", .name: "sid", .value: value]))
      storage.setCookie(cookie)
    }
    let request = URLRequest(url: try pair.first.url(), timeoutInterval: 20)
    if withDelegate {
      let delegate = RecordingDelegate()
      let session = pair.first.session(configuration, delegate: delegate)
      #expect(await delegate.run(session.dataTask(with: request)).error == nil)
    } else {
      _ = try await pair.first.session(configuration).data(for: request)
    }
    #expect(pair.first.server.requests.first?.header("Cookie") == "sid=old")
    #expect(pair.second.server.requests.first?.header("Cookie") == "sid=new")
  }

  @Test("is everything on an ordinary session, which is left as it is")
  func control() async throws {
    let second = try LocalHTTPServer { _ in .text("there") }
    let first = try LocalHTTPServer { _ in .redirect(to: "http://b.localhost:\(second.port)/") }
    // One that is pinned stands beside it.
    let site = try PinnedSite()
    _ = try await site.session().data(from: site.url())
    var request = URLRequest(
      url: try #require(URL(string: "http://localhost:\(first.port)/")), timeoutInterval: 20)
    request.setValue("Bearer a", forHTTPHeaderField: "Authorization")
    _ = try await URLSession(configuration: .ephemeral).data(for: request)
    #expect(second.requests.first?.header("Authorization") == "Bearer a")
  }
}
