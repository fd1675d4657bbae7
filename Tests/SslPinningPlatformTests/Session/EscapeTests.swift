import FaultLab
import Foundation
import FoundationNetworking
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@Suite("Ways around a pinned URLSession", .serialized)
struct EscapeTests {
  @Test(
    "are closed to a protocol class that an app registers for the whole process",
    arguments: ["HTTP", "ftps", "gopher"])
  func registeredClass(scheme: String) async throws {
    let site = try PinnedSite()
    let url = try #require(URL(string: "\(scheme)://localhost:\(site.server.port)/"))
    #expect(URLProtocol.registerClass(TakeAllProtocol.self))
    defer { URLProtocol.unregisterClass(TakeAllProtocol.self) }
    // The control: an ordinary session is answered by the class.
    let plain = try await URLSession(configuration: .ephemeral).data(from: url).0
    #expect(String(decoding: plain, as: UTF8.self) == "escaped")
    do {
      _ = try await site.session().data(from: url)
      Issue.record("served")
    } catch {
      let isClearText = ["http", "ws", "ftp"].contains(scheme.lowercased())
      #expect((site.transport.refusal(for: error)?.rule == "clear-text") == isClearText)
      #expect(isClearText || (error as? URLError)?.code == .unsupportedURL)
    }
    #expect(site.server.requests.isEmpty)
  }

  @Test(
    "are closed to it, too, where an upper-case HTTPS goes to Foundation's transport",
    arguments: ["HTTPS", "Https"])
  func registeredClassAndUpperCase(scheme: String) async throws {
    let site = try PinnedSite()
    let rogue = try LocalTLSServer(identity: site.rogueIdentity()) { _ in .text("gotcha") }
    #expect(URLProtocol.registerClass(TakeAllProtocol.self))
    defer { URLProtocol.unregisterClass(TakeAllProtocol.self) }
    let url = try #require(URL(string: "\(scheme)://localhost:\(site.server.port)/"))
    let body = try await site.session().data(from: url).0
    #expect(String(decoding: body, as: UTF8.self) == "hello")
    let bad = try #require(URL(string: "\(scheme)://localhost:\(rogue.port)/"))
    #expect(await site.refusal(of: bad, over: site.session())?.rule == "leaf-pin")
    #expect(rogue.counts.applicationBytesReceived == 0)
  }

  @Test("take no data: URLs, which dial nobody")
  func dataURL() async throws {
    let url = try #require(URL(string: "data:text/plain,here"))
    let body = try await PinnedSite().session().data(from: url).0
    #expect(String(decoding: body, as: UTF8.self) == "here")
  }

  @Test("a session made of a pinned session's configuration has no pins, and refuses everything")
  func madeOfConfiguration() async throws {
    let site = try PinnedSite()
    let pinned = site.session()
    #expect(try await pinned.data(from: site.url()).0 == Data("hello".utf8))
    let clear = try LocalHTTPServer { _ in .text("in clear text") }
    let urls = [try site.url(), try #require(URL(string: "http://127.0.0.1:\(clear.port)/"))]
    let again = URLSession(configuration: pinned.configuration).configuration
    for configuration in [pinned.configuration, again] {
      for url in urls {
        let error = await #expect(throws: URLError.self) {
          try await URLSession(configuration: configuration).data(from: url)
        }
        #expect(error?.localizedDescription.contains("none of its pins") == true)
      }
    }
    #expect(site.server.requests.count == 1 && clear.requests.isEmpty)
    // The control: the session itself goes on.
    #expect(try await pinned.data(from: site.url()).0 == Data("hello".utf8))
  }

  @Test("send no cookie of the jar that ordinary sessions fill, and share one of their own")
  func sharedJar() async throws {
    let site = try PinnedSite { request in
      request.path == "/away"
        ? .redirect(to: "https://a.\(request.header("Host") ?? "")/")
        : HTTPResponse(
          headers: [HTTPField("Set-Cookie", "own=2")],
          body: Array((request.header("Cookie") ?? "none").utf8))
    }
    func sent(_ path: String = "/", by session: URLSession) async throws -> String {
      String(decoding: try await session.data(from: site.url(path)).0, as: UTF8.self)
    }
    let planted = try #require(
      HTTPCookie(properties: [
        .domain: ".localhost", .path: "/", .name: "planted", .value: "1",
      ]))
    HTTPCookieStorage.shared.setCookie(planted)
    let (first, second) = (site.session(.default), site.session(.default))
    let jar = try #require(first.configuration.httpCookieStorage)
    defer {
      HTTPCookieStorage.shared.deleteCookie(planted)
      for cookie in jar.cookies ?? [] { jar.deleteCookie(cookie) }
    }
    #expect(try await sent("/away", by: first) == "none")
    #expect(try await sent(by: first) == "none")
    #expect(try await sent(by: second) == "own=2")
    #expect(HTTPCookieStorage.shared.cookies?.contains(where: { $0.name == "own" }) == false)
    // The control: a jar that the app chose counts.
    let configuration = URLSessionConfiguration.ephemeral
    configuration.httpCookieStorage?.setCookie(planted)
    #expect(try await sent(by: site.session(configuration)) == "planted=1")
  }

  /// What a pin says of a host that sets a cookie.
  enum CookieSetter: Sendable { case pinned, unlisted, forgiven }

  @Test(
    "take cookies for other hosts from a pinned one alone, and for a top-level domain from none",
    arguments: [
      (CookieSetter.pinned, "a=1", true, false), (.unlisted, "a=1", true, false),
      (.forgiven, "a=1; Secure", true, false), (.pinned, "a=1; Domain=bank.localhost", true, true),
      (.pinned, "a=1; domain=.BANK.localhost", true, true),
      (.pinned, "a=1; Domain=localhost", false, false),
      (.unlisted, "a=1; Domain=localhost", false, false),
      (.unlisted, "a=1; Domain=bank.localhost", false, false),
      (.unlisted, "a=1; DOMAIN = .login.bank.localhost", false, false),
      (.unlisted, "b=1, a=1; Domain=bank.localhost", false, false),
      (.forgiven, "a=1; Domain=bank.localhost", false, false),
    ])
  func domainCookies(
    by setter: CookieSetter, _ field: String, reachesItself: Bool, reachesOther: Bool
  ) async throws {
    let site = try PinnedSite { request in
      HTTPResponse(
        headers: request.path == "/set" ? [HTTPField("Set-Cookie", field)] : [],
        body: Array((request.header("Cookie") ?? "none").utf8))
    }
    let identity = try site.authority.issue(names: ["login.bank.localhost", "api.bank.localhost"])
    try site.server.replaceIdentity(identity)
    func entry(
      _ host: String, _ identity: ServerIdentity, _ enforcement: PolicyEntry.Enforcement
    ) throws -> PolicyEntry {
      PolicyEntry(
        try HostPattern(host),
        leaf: PinSet([Pin(try SPKIPin(certificateDER: identity.leaf.der))]),
        enforcement: enforcement)
    }
    var entries = [try entry("api.bank.localhost", identity, .enforce)]
    switch setter {
    case .pinned: entries.append(try entry("login.bank.localhost", identity, .enforce))
    case .forgiven:
      entries.append(try entry("login.bank.localhost", site.rogueIdentity(), .reportOnly))
    case .unlisted: break
    }
    site.judge.apply(
      try PinningPolicy(
        entries: entries, denied: [], trust: .anchors([site.authority.root.der]),
        unlistedHosts: .systemTrust))
    let session = site.session()
    func sent(_ path: String = "/", to host: String) async throws -> String {
      String(decoding: try await session.data(from: site.url(path, host: host)).0, as: UTF8.self)
    }
    #expect(try await sent("/set", to: "login.bank.localhost") == "none")
    let (itself, other) = (
      try await sent(to: "login.bank.localhost"), try await sent(to: "api.bank.localhost")
    )
    #expect((itself == "a=1") == reachesItself && (itself == "none") != reachesItself)
    #expect((other == "a=1") == reachesOther && (other == "none") != reachesOther)
  }
}

private final class TakeAllProtocol: URLProtocol {
  override class func canInit(with request: URLRequest) -> Bool { true }
  override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }
  override func stopLoading() {}
  override func startLoading() {
    guard let url = request.url,
      let response = HTTPURLResponse(
        url: url, statusCode: 200, httpVersion: nil, headerFields: nil)
    else { return }
    client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
    client?.urlProtocol(self, didLoad: Data("escaped".utf8))
    client?.urlProtocolDidFinishLoading(self)
  }
}
