import FaultLab
import Foundation
import FoundationNetworking
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@Suite("A pinned URLSession and nginx")
struct NginxTests {
  private let site: PinnedSite

  init() throws { site = try PinnedSite() }

  /// nginx under the site's identity.
  private func nginx(
    http2: Bool, protocols: String = "TLSv1.2 TLSv1.3",
    directives: String = "location / { return 200 \"nginx\"; }", files: [String: String] = [:]
  ) async throws -> Nginx {
    try await Nginx.start(
      Nginx.Site(
        site.identity, name: "localhost", http2: http2, protocols: protocols,
        directives: directives),
      files: files)
  }

  private func text(_ session: URLSession, _ url: URL) async throws -> String {
    String(decoding: try await session.data(from: url).0, as: UTF8.self)
  }

  @Test(
    "is served over every protocol that both speak",
    arguments: [
      (false, "TLSv1.2", "HTTP/1.1"), (false, "TLSv1.3", "HTTP/1.1"),
      (true, "TLSv1.2", "HTTP/2.0"), (true, "TLSv1.3", "HTTP/2.0"),
    ])
  func protocols(http2: Bool, protocols: String, version: String) async throws {
    let nginx = try await nginx(http2: http2, protocols: protocols)
    #expect(try await text(site.session(), site.url(port: nginx.port)) == "nginx")
    let access = try #require(try await nginx.accesses(waitingFor: 1).last)
    #expect(access.version == version)
    #expect(access.tlsVersion == protocols)
    try await nginx.stop()
  }

  @Test("multiplexes pinned requests over one HTTP/2 connection")
  func multiplexed() async throws {
    let nginx = try await nginx(http2: true)
    let session = site.session()
    let url = try site.url(port: nginx.port)
    _ = try await text(session, url)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<20 { group.addTask { _ = try await session.data(from: url) } }
      try await group.waitForAll()
    }
    let accesses = try await nginx.accesses(waitingFor: 21)
    #expect(accesses.count == 21)
    #expect(Set(accesses.map(\.connection)).count == 1)
    try await nginx.stop()
  }

  @Test("leaves an HTTP/2 connection that gave no answer: the next request goes over another one")
  func leavesSilent() async throws {
    let nginx = try await nginx(
      http2: true, directives: "location / { return 200 \"$connection\"; }")
    let relay = try SwitchableRelay(to: .loopback(nginx.port))
    let session = site.session()
    let url = try site.url(port: relay.port)
    let first = try await text(session, url)
    relay.suspend(true)
    var request = URLRequest(url: url)
    request.timeoutInterval = 1
    await #expect(throws: URLError.self) { try await session.data(for: request) }
    relay.suspend(false)
    #expect(try await text(session, url) != first)
    try await nginx.stop()
  }

  /// Foundation takes no notice of the initializer's time-out.
  private func timed(_ url: URL, seconds: Double) -> URLRequest {
    var request = URLRequest(url: url)
    request.timeoutInterval = seconds
    return request
  }

  /// Two relays, so that the connection that is open can be lost, and new ones are not.
  @Test(
    "leaves an HTTP/2 connection over which nothing comes, also if others wait on it: all later requests share one other",
    arguments: [6, 1])
  func leavesSilentBesideOthers(most: Int) async throws {
    let nginx = try await nginx(http2: true)
    let lost = try SwitchableRelay(to: .loopback(nginx.port))
    let relay = try SwitchableRelay(to: .loopback(lost.port))
    let configuration = URLSessionConfiguration.ephemeral
    configuration.httpMaximumConnectionsPerHost = most
    let session = site.session(configuration)
    let url = try site.url(port: relay.port)
    _ = try await text(session, url)
    lost.suspend(true)
    relay.redirect(to: .loopback(nginx.port), closingConnections: false)
    let patient = Task { try await session.data(from: url).0 }
    let late = [2.0, 4.0].map { seconds in
      let request = timed(url, seconds: seconds)
      return Task { try await session.data(for: request).0 }
    }
    for task in late {
      await #expect(throws: URLError.self) { try await task.value }
      for _ in 0..<2 {
        let (body, _) = try await session.data(for: timed(url, seconds: 20))
        #expect(body == Data("nginx".utf8))
      }
    }
    #expect(relay.connections == 2)
    lost.suspend(false)
    #expect(try await patient.value == Data("nginx".utf8))
    try await nginx.stop()
  }

  @Test(
    "keeps an HTTP/2 connection if a request was cancelled at once, or was late while another one was answered"
  )
  func keepsHeard() async throws {
    let gate = try EventSignal()
    let upstream = try LocalHTTPServer { _ in
      // why: until the test lets it go on
      _ = gate.sleep(milliseconds: 60_000)
      return .text("slow")
    }
    let nginx = try await nginx(
      http2: true,
      directives: """
        location / { return 200 "$connection"; }
        location /slow { proxy_pass http://127.0.0.1:\(upstream.port); }
        """)
    let session = site.session()
    let url = try site.url(port: nginx.port)
    let slow = try site.url("/slow", port: nginx.port)
    let first = try await text(session, url)
    // Else nothing would be on the connection, and libcurl would close it.
    let patient = Task { try await session.data(from: slow).0 }
    #expect(await eventually { upstream.requests.count == 1 })
    let begun = Date()
    let cancelled = Task { try await session.data(from: slow).0 }
    #expect(await eventually { upstream.requests.count == 2 })
    cancelled.cancel()
    await #expect(throws: (any Error).self) { try await cancelled.value }
    let seconds = Date().timeIntervalSince(begun)
    let second = try await text(session, url)
    // On a machine that is too busy it was not at once.
    #expect(second == first || seconds > 0.8)
    let request = timed(slow, seconds: 3)
    let late = Task { try await session.data(for: request).0 }
    #expect(await eventually { upstream.requests.count == 3 })
    #expect(try await text(session, url) == second)
    await #expect(throws: URLError.self) { try await late.value }
    #expect(try await text(session, url) == second)
    gate.raise()
    #expect(try await patient.value == Data("slow".utf8))
    try await nginx.stop()
  }

  @Test("sends nothing more over an HTTP/2 connection whose pin is removed, and comes back")
  func removedOverHTTP2() async throws {
    let nginx = try await nginx(http2: true)
    let session = site.session()
    let url = try site.url(port: nginx.port)
    _ = try await text(session, url)
    try site.judge.pin(["localhost": site.rogueIdentity()])
    for _ in 0..<3 { #expect(await site.refusal(of: url, over: session)?.rule == "leaf-pin") }
    #expect(try await nginx.accesses(waitingFor: 1).count == 1)
    try site.judge.pin(["localhost": site.identity])
    #expect(try await text(session, url) == "nginx")
    #expect(try await nginx.accesses(waitingFor: 2).count == 2)
    try await nginx.stop()
  }

  @Test(
    "follows a rotation over HTTP/2: parked, refreshed, replayed; with a body over HTTP/1.1",
    arguments: [(0, "HTTP/2.0"), (1, "HTTP/1.1"), (100_000, "HTTP/1.1")])
  func rotatedOverHTTP2(length: Int, version: String) async throws {
    let upstream = try LocalHTTPServer { .text("\($0.method) \($0.body.count)") }
    let nginx = try await nginx(
      http2: true,
      directives: "location / { proxy_pass http://127.0.0.1:\(upstream.port); }")
    let session = site.session()
    let url = try site.url(port: nginx.port)
    _ = try await text(session, url)
    let next = try site.rogueIdentity()
    try await nginx.replaceIdentity(with: next)
    try site.judge.pin(["localhost": site.rogueIdentity()])
    site.judge.onRefresh { judge in try? judge.pin(["localhost": next]) }
    var request = URLRequest(url: url)
    if length > 0 {
      request.httpMethod = "POST"
      request.httpBody = Data(repeating: 65, count: length)
    }
    let method = length > 0 ? "POST" : "GET"
    let (body, _) = try await session.data(for: request)
    #expect(String(decoding: body, as: UTF8.self) == "\(method) \(length)")
    let accesses = try await nginx.accesses(waitingFor: 2)
    #expect(accesses.map(\.method) == ["GET", method])
    #expect(accesses.map(\.version) == ["HTTP/2.0", version])
    try await nginx.stop()
  }

  @Test("answers nginx's Basic challenge, and gives nothing to a man in the middle")
  func basicAuthentication() async throws {
    let nginx = try await nginx(
      http2: false,
      directives: """
        auth_basic "members";
        auth_basic_user_file passwords;
        """,
      files: [
        "passwords": Nginx.passwords(["user": "pass"]), "html/page.txt": "members only",
      ])
    let credential = URLCredential(user: "user", password: "pass", persistence: .forSession)
    let delegate = RecordingDelegate(credential: credential)
    let url = try site.url("/page.txt", port: nginx.port)
    let record = await delegate.run(site.session(delegate: delegate).dataTask(with: url))
    #expect(record.events.contains("challenge NSURLAuthenticationMethodHTTPBasic"))
    // Foundation hands its delegate the 401 answer's body too.
    #expect(String(decoding: record.body, as: UTF8.self).hasSuffix("members only"))
    let attacker = try LocalTLSServer(identity: site.rogueIdentity()) { _ in
      HTTPResponse(
        status: 401, headers: [HTTPField("WWW-Authenticate", "Basic realm=\"members\"")])
    }
    let attacked = RecordingDelegate(credential: credential)
    let refused = try await attacked.run(
      site.session(delegate: attacked).dataTask(with: site.url(port: attacker.port)))
    #expect(site.transport.refusal(for: try #require(refused.error))?.rule == "leaf-pin")
    #expect(await attacker.waitUntilIdle())
    #expect(attacker.counts.applicationBytesReceived == 0)
    try await nginx.stop()
  }

  /// Foundation sends such a body again as an empty one, or waits for ever; an ordinary session has that answered with 200.
  @Test(
    "sends no body twice over a kept connection that died: the task fails",
    arguments: [false, true])
  func diedUnderBody(isStream: Bool) async throws {
    let upstream = try LocalHTTPServer { .text("\($0.method) \($0.body.count)") }
    // Other requests of a connection than its first have it ended.
    let nginx = try await nginx(
      http2: true,
      directives: """
        client_max_body_size 10m;
        location / {
          if ($connection_requests != 1) { return 444; }
          proxy_pass http://127.0.0.1:\(upstream.port);
        }
        """)
    let session = site.session()
    var post = URLRequest(url: try site.url(port: nginx.port), timeoutInterval: 20)
    post.httpMethod = "POST"
    func send() async throws -> String {
      let body = Data(repeating: 65, count: 300_000)
      if isStream { post.httpBodyStream = InputStream(data: body) } else { post.httpBody = body }
      return String(decoding: try await session.data(for: post).0, as: UTF8.self)
    }
    #expect(try await send() == "POST 300000")
    await #expect(throws: URLError.self) { try await send() }
    #expect(upstream.requests.map(\.body.count) == [300_000])
    try await nginx.stop()
  }

  /// libcurl takes one of HTTP/1.1 that is in use for one that many can share once the host has one of HTTP/2.
  @Test(
    "asks for nothing over the connection of a request with a body that is under way, or of what that leads to",
    arguments: [false, true])
  func apart(isRedirected: Bool) async throws {
    let upstream = try LocalHTTPServer { request in
      if isRedirected, request.method == "POST" { return .redirect(to: "/endless", status: 303) }
      return request.path == (isRedirected ? "/endless" : "/")
        && (isRedirected || request.method == "POST")
        ? HTTPResponse(body: Array("x".utf8), delivery: .endless(pauseMilliseconds: 20))
        : .text("got")
    }
    let nginx = try await nginx(
      http2: true,
      directives:
        "location / { proxy_buffering off; proxy_pass http://127.0.0.1:\(upstream.port); }")
    let session = site.session()
    let url = try site.url(port: nginx.port)
    var post = URLRequest(url: url)
    post.httpMethod = "POST"
    post.httpBody = Data([65])
    let upload = session.dataTask(with: post)
    upload.resume()
    #expect(await eventually { upstream.requests.count == (isRedirected ? 2 : 1) })
    for _ in 0..<4 {
      #expect(try await text(session, url) == "got")
    }
    upload.cancel()
    let accesses = try await nginx.accesses(waitingFor: isRedirected ? 6 : 5)
    #expect(
      accesses.filter { $0.method == "GET" && $0.target == "/" }.map(\.version)
        == Array(repeating: "HTTP/2.0", count: 4))
    try await nginx.stop()
  }
}
