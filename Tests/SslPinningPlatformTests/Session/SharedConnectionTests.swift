import FaultLab
import Foundation
import FoundationNetworking
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

/// What libcurl puts onto which connection, and how many it may make.
@Suite("Requests of a pinned URLSession beside others")
struct SharedConnectionTests {
  private let site: PinnedSite

  init() throws { site = try PinnedSite() }

  private func text(_ session: URLSession, _ request: URLRequest) async throws -> String {
    String(decoding: try await session.data(for: request).0, as: UTF8.self)
  }

  /// libcurl 7.88 takes a connection of HTTP/1.1 that is in use for one that many can share, once the host has one of HTTP/2:
  /// of two answers each request gets some.
  @Test(
    "go over no connection of HTTP/1.1 that carries another one, where the host has one of HTTP/2",
    arguments: [false, true])
  func mixedFleet(hasSession: Bool) async throws {
    let fleet = try await MixedFleet(site)
    let session = site.session()
    func ask(_ path: String) async throws -> String {
      let request = URLRequest(url: try site.url(path, port: fleet.relay.port), timeoutInterval: 20)
      guard hasSession else {
        return String(decoding: try await site.transport.data(for: request).0, as: UTF8.self)
      }
      return try await text(session, request)
    }
    let first = Task { try await ask("/endless") }
    #expect(await eventually { fleet.upstream.requests.count == 1 })
    fleet.change()
    let second = Task { try await ask("/endless") }
    #expect(await eventually { fleet.upstream.requests.count == 2 })
    for number in 0..<4 { #expect(try await ask("/\(number)") == "got /\(number)") }
    first.cancel()
    second.cancel()
    let accesses = try await fleet.old.accesses(waitingFor: 5)
    #expect(accesses.allSatisfy { $0.version == "HTTP/1.1" })
    let endless = try #require(accesses.first { $0.target == "/endless" }).connection
    #expect(accesses.filter { $0.connection == endless }.count == 1)
    try await fleet.stop()
  }

  /// An ordinary session ends the process then.
  @Test("are redirected while another one is under way on their connection of HTTP/2")
  func redirected() async throws {
    let upstream = try LocalHTTPServer { request in
      request.path == "/endless"
        ? HTTPResponse(body: Array("x".utf8), delivery: .endless(pauseMilliseconds: 20))
        : .text("got")
    }
    let nginx = try await Nginx.start(
      Nginx.Site(
        site.identity, name: "localhost",
        directives: """
          location / { proxy_buffering off; proxy_pass http://127.0.0.1:\(upstream.port); }
          location /moved { return 302 /; }
          """))
    let session = site.session()
    func request(_ path: String) throws -> URLRequest {
      URLRequest(url: try site.url(path, port: nginx.port), timeoutInterval: 20)
    }
    let endless = Task { try await text(session, request("/endless")) }
    #expect(await eventually { upstream.requests.count == 1 })
    for _ in 0..<3 { #expect(try await text(session, request("/moved")) == "got") }
    endless.cancel()
    #expect(try await nginx.accesses(waitingFor: 6).allSatisfy { $0.version == "HTTP/2.0" })
    try await nginx.stop()
  }

  /// An order without a body is an order: libcurl sends again what a kept connection died under.
  @Test(
    "are not sent twice over a kept connection that died, unless their method is safe and they have no body",
    arguments: [
      ("GET", true), ("HEAD", true), ("OPTIONS", true), ("POST", false), ("PUT", false),
      ("DELETE", false),
    ])
  func diedUnderRequest(method: String, isRepeated: Bool) async throws {
    let upstream = try LocalHTTPServer { .text("\($0.method)") }
    // The second request of a connection has it ended.
    let nginx = try await Nginx.start(
      Nginx.Site(
        site.identity, name: "localhost", http2: false,
        directives: """
          location / {
            if ($connection_requests = 2) { return 444; }
            proxy_pass http://127.0.0.1:\(upstream.port);
          }
          """))
    let session = site.session()
    var request = URLRequest(url: try site.url(port: nginx.port), timeoutInterval: 20)
    request.httpMethod = method
    let answer = method == "HEAD" ? "" : method
    #expect(try await text(session, request) == answer)
    if isRepeated {
      #expect(try await text(session, request) == answer)
    } else {
      await #expect(throws: URLError.self) { try await text(session, request) }
    }
    let accesses = try await nginx.accesses(waitingFor: isRepeated ? 3 : 2)
    #expect(accesses.map(\.status) == (isRepeated ? [200, 444, 200] : [200, 444]))
    try await nginx.stop()
  }

  /// Bodies have connections of their own, as many as the app allows to a host.
  @Test(
    "are served while as many are under way that must not be sent twice as the app allows connections",
    arguments: [false, true])
  func besideUploads(haveBodies: Bool) async throws {
    let gate = try EventSignal()
    let upstream = try LocalHTTPServer { request in
      // why: until the test lets it go on
      if request.method == "POST" { _ = gate.sleep(milliseconds: 60_000) }
      return .text("\(request.method) \(request.body.count)")
    }
    let nginx = try await Nginx.start(
      Nginx.Site(
        site.identity, name: "localhost",
        directives: "location / { proxy_pass http://127.0.0.1:\(upstream.port); }"))
    let configuration = URLSessionConfiguration.ephemeral
    configuration.httpMaximumConnectionsPerHost = 2
    let session = site.session(configuration)
    let url = try site.url(port: nginx.port)
    let uploads = (1...5).map { count in
      Task {
        try await text(
          session,
          URLRequest(url, method: "POST", body: haveBodies ? Data(repeating: 1, count: count) : nil)
        )
      }
    }
    #expect(await eventually { upstream.requests.count == 2 })
    for _ in 0..<3 { #expect(try await text(session, URLRequest(url, timeout: 20)) == "GET 0") }
    #expect(upstream.requests.filter { $0.method == "POST" }.count == 2)
    uploads[4].cancel()
    // Before the others end: it would have its turn, and its answer, sooner than it is cancelled.
    await #expect(throws: (any Error).self) { try await uploads[4].value }
    gate.raise()
    for (index, upload) in uploads.prefix(4).enumerated() {
      #expect(try await upload.value == "POST \(haveBodies ? index + 1 : 0)")
    }
    try await nginx.stop()
  }
}

/// Two servers behind one address, of which one speaks HTTP/2 and lets one request at a time onto a connection. `/endless` is under way
/// until it is given up.
private struct MixedFleet {
  let upstream: LocalHTTPServer
  let new, old: Nginx
  let relay: SwitchableRelay

  init(_ site: PinnedSite) async throws {
    upstream = try LocalHTTPServer { request in
      request.path == "/endless"
        ? HTTPResponse(body: Array("x".utf8), delivery: .endless(pauseMilliseconds: 20))
        : .text("got \(request.path)")
    }
    let location =
      "location / { proxy_buffering off; proxy_pass http://127.0.0.1:\(upstream.port); }"
    new = try await Nginx.start(
      Nginx.Site(
        site.identity, name: "localhost", http2: true,
        directives: "http2_max_concurrent_streams 1; \(location)"))
    old = try await Nginx.start(
      Nginx.Site(site.identity, name: "localhost", http2: false, directives: location))
    relay = try SwitchableRelay(to: .loopback(new.port))
  }

  /// Connections lead to the one without HTTP/2 from now on.
  func change() { relay.redirect(to: .loopback(old.port), closingConnections: false) }

  func stop() async throws {
    try await new.stop()
    try await old.stop()
  }
}
