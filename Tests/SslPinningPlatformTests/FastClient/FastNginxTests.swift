import FaultLab
import Foundation
import FoundationNetworking
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@Suite("Requests without a session, nginx and proxies")
struct FastNginxTests {
  private let site: PinnedSite

  init() throws { site = try PinnedSite() }

  private func nginx(
    http2: Bool, directives: String = "location / { return 200 \"nginx\"; }",
    files: [String: String] = [:]
  ) async throws -> Nginx {
    try await Nginx.start(
      Nginx.Site(site.identity, name: "localhost", http2: http2, directives: directives),
      files: files)
  }

  /// A transport like the site's, with other settings.
  private func transport(_ change: (inout RequestSettings) -> Void) throws -> PinnedTransport {
    var settings = RequestSettings()
    change(&settings)
    return try PinnedTransport(
      trust: .anchors([site.authority.root.der]), judge: site.judge, longestRefresh: 60,
      settings: settings)
  }

  /// How many of so many requests at once were served with this body.
  private func served(
    _ count: Int, _ url: URL, over transport: PinnedTransport, body: String = "nginx"
  ) async -> Int {
    await withTaskGroup(of: Bool.self) { group in
      for _ in 0..<count {
        group.addTask { await transport.end(of: url) == .served(200, body) }
      }
      return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
    }
  }

  @Test("share one HTTP/2 connection")
  func multiplexed() async throws {
    let nginx = try await nginx(http2: true)
    let url = try site.url(port: nginx.port)
    #expect(await served(60, url, over: site.transport) == 60)
    let accesses = try await nginx.accesses(waitingFor: 60)
    #expect(accesses.allSatisfy { $0.version == "HTTP/2.0" })
    #expect(Set(accesses.map(\.connection)).count == 1)
    try await nginx.stop()
  }

  @Test("go over HTTP/1.1 with a libcurl that was built without HTTP/2")
  func withoutHTTP2() async throws {
    let nginx = try await nginx(http2: true)
    let transport = try transport { $0.speaksHTTP2 = false }
    #expect(await served(8, try site.url(port: nginx.port), over: transport) == 8)
    #expect(try await nginx.accesses(waitingFor: 8).allSatisfy { $0.version == "HTTP/1.1" })
    try await nginx.stop()
  }

  @Test("send nothing more over an HTTP/2 connection whose pin is removed, and come back")
  func removedOverHTTP2() async throws {
    let nginx = try await nginx(http2: true)
    let url = try site.url(port: nginx.port)
    #expect(await site.transport.end(of: url) == .served(200, "nginx"))
    try site.judge.pin(["localhost": site.rogueIdentity()])
    for _ in 0..<3 { #expect(await site.transport.end(of: url) == .refused("leaf-pin")) }
    #expect(try await nginx.accesses(waitingFor: 1).count == 1)
    try site.judge.pin(["localhost": site.identity])
    #expect(await site.transport.end(of: url) == .served(200, "nginx"))
    try await nginx.stop()
  }

  /// libcurl 7.88 takes bytes from other answers of the connection when an upload is answered before its end, and keeps
  /// what comes for a reader that is behind.
  @Test(
    "carry bodies to a server with HTTP/2, up and down, as a whole and in pieces: over HTTP/1.1, and streams"
  )
  func bodiesOverHTTP2() async throws {
    let upstream = try LocalHTTPServer(handler: echo)
    let nginx = try await nginx(
      http2: true,
      directives: """
        client_max_body_size 10m;
        location / { proxy_pass http://127.0.0.1:\(upstream.port); }
        location /file { root html; }
        """, files: ["html/file": String(repeating: "0123456789", count: 300_000)])
    let url = try site.url(port: nginx.port)
    #expect(await site.transport.end(of: URLRequest(url: url)) == .served(200, "GET 0"))
    let short = URLRequest(url, method: "POST", body: Data(repeating: 1, count: 1))
    #expect(await site.transport.end(of: short) == .served(200, "POST 1"))
    let post = URLRequest(url, method: "POST", body: Data(repeating: 1, count: 700_000))
    #expect(await site.transport.end(of: post) == .served(200, "POST 700000"))
    let chunks = AsyncStream<Data> { continuation in
      for _ in 0..<50 { continuation.yield(Data(repeating: 1, count: 9_000)) }
      continuation.finish()
    }
    let put = URLRequest(url, method: "PUT")
    let (body, _) = try await site.transport.upload(for: put, from: chunks)
    #expect(String(decoding: body, as: UTF8.self) == "PUT 450000")
    let file = URLRequest(url: url.appendingPathComponent("file"))
    let (bytes, _) = try await site.transport.bytes(for: file)
    var count = 0
    for try await chunk in bytes { count += chunk.count }
    #expect(count == 3_000_000)
    let versions = try await nginx.accesses(waitingFor: 5).map(\.version)
    #expect(versions == ["HTTP/2.0", "HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.1"])
    try await nginx.stop()
  }

  /// libcurl takes one of HTTP/1.1 that is in use for one that many can share once the host has one of HTTP/2.
  @Test("go over no connection of one with a body that is under way")
  func apart() async throws {
    let upstream = try LocalHTTPServer { request in
      request.method == "POST"
        ? HTTPResponse(body: Array("x".utf8), delivery: .endless(pauseMilliseconds: 20))
        : .text("got")
    }
    let nginx = try await nginx(
      http2: true,
      directives:
        "location / { proxy_buffering off; proxy_pass http://127.0.0.1:\(upstream.port); }")
    let url = try site.url(port: nginx.port)
    let post = URLRequest(url, method: "POST", body: Data([1]), timeout: 60)
    let upload = Task { [site] in await site.transport.end(of: post) }
    #expect(await eventually { upstream.requests.count == 1 })
    for _ in 0..<4 {
      #expect(await site.transport.end(of: URLRequest(url, timeout: 20)) == .served(200, "got"))
    }
    upload.cancel()
    let accesses = try await nginx.accesses(waitingFor: 5)
    #expect(
      accesses.filter { $0.method == "GET" }.map(\.version)
        == Array(repeating: "HTTP/2.0", count: 4))
    try await nginx.stop()
  }

  @Test("get compressed answers in clear, and compressed ones where the app asked for such")
  func gzip() async throws {
    let text = String(repeating: "compress me ", count: 1000)
    let nginx = try await nginx(
      http2: false,
      directives: "gzip on; gzip_min_length 1; gzip_types text/plain; location / { root html; }",
      files: ["html/a.txt": text])
    let url = try site.url("/a.txt", port: nginx.port)
    let (body, response) = try await site.transport.data(for: URLRequest(url: url))
    #expect(String(decoding: body, as: UTF8.self) == text)
    #expect(
      (response as? HTTPURLResponse)?.value(forHTTPHeaderField: "Content-Encoding") == "gzip")
    let own = URLRequest(url, fields: ["Accept-Encoding": "gzip"])
    let (raw, _) = try await site.transport.data(for: own)
    #expect(raw.prefix(2) == Data([0x1f, 0x8b]))
    try await nginx.stop()
  }

  @Test("ten thousand at once are all served, over a few connections")
  func many() async throws {
    let nginx = try await nginx(http2: false)
    let url = try site.url(port: nginx.port)
    #expect(await served(10_000, url, over: site.transport) == 10_000)
    let accesses = try await nginx.accesses(waitingFor: 10_000)
    #expect(Set(accesses.map(\.connection)).count <= 80)
    try await nginx.stop()
  }

  @Test("take no more connections than they may, also while the first answers are awaited")
  func coldStart() async throws {
    let most = RequestSettings().perOrigin
    let slow = try PinnedSite { _ in HTTPResponse(body: [65], delayMilliseconds: 200) }
    let url = try slow.url()
    let served = await withTaskGroup(of: Bool.self) { group in
      let ask = { @Sendable in await slow.transport.end(of: url) == .served(200, "A") }
      for _ in 0..<2 * most { group.addTask(operation: ask) }
      var served = await group.next() == true ? 1 : 0
      // That every request has a connection of its own is known from here on.
      for _ in 0..<2 * most { group.addTask(operation: ask) }
      for await one in group where one { served += 1 }
      return served
    }
    #expect(served == 4 * most)
    #expect(slow.server.counts.connections <= most)
  }

  @Test("to one host do not keep those to another out, even where the limit is small")
  func fair() async throws {
    let slow = try PinnedSite { _ in HTTPResponse(body: [65], delayMilliseconds: 50) }
    try slow.server.replaceIdentity(site.identity)
    let transport = try transport {
      $0.perOrigin = 2
      $0.total = 3
    }
    let slowURL = try site.url(host: "a.localhost", port: slow.server.port)
    let url = try site.url()
    async let slowOnes = served(20, slowURL, over: transport, body: "A")
    async let others = served(50, url, over: transport, body: "hello")
    #expect(await slowOnes == 20)
    #expect(await others == 50)
  }

  @Test("to hosts that hang leave those to others the places of all loops")
  func hanging() async throws {
    let slow = try PinnedSite { _ in HTTPResponse(body: [65], delayMilliseconds: 600_000) }
    try slow.server.replaceIdentity(site.identity)
    // Two loops, where there are two cores: all of this is on the first.
    let transport = try transport {
      $0.perOrigin = 16
      $0.total = 24
    }
    let urls = try ["a.localhost", "b.localhost"].map {
      try site.url(host: $0, port: slow.server.port)
    }
    let hung = urls.map { url in Task { await served(8, url, over: transport, body: "A") } }
    #expect(await eventually { slow.server.requests.count == 16 })
    let healthy = await transport.end(of: URLRequest(try site.url(), timeout: 20))
    #expect(healthy == .served(200, "hello"))
    for task in hung {
      task.cancel()
      #expect(await task.value == 0)
    }
  }

  @Test("that wait for a place can be cancelled and come too late")
  func waiting() async throws {
    let slow = try PinnedSite { _ in HTTPResponse(body: [65], delayMilliseconds: 60_000) }
    try slow.server.replaceIdentity(site.identity)
    let transport = try transport { $0.perOrigin = 1 }
    let url = try site.url(port: slow.server.port)
    let first = Task { await transport.end(of: url) }
    #expect(await eventually { slow.server.requests.count == 1 })
    let second = Task { await transport.end(of: url) }
    let third = await transport.end(of: URLRequest(url: url), within: 0.3)
    #expect(third == .failed(.timedOut))
    second.cancel()
    #expect(await second.value == .failed(.cancelled))
    first.cancel()
    #expect(await first.value == .failed(.cancelled))
    #expect(slow.server.requests.count == 1)
  }

  @Test("go through a proxy's tunnel, and no man in the middle gets a byte there")
  func proxies() async throws {
    let honest = try InterceptingProxy.tunnelling()
    let url = try site.url()
    let through = try transport { $0.proxy = "http://127.0.0.1:\(honest.port)" }
    #expect(await through.end(of: url) == .served(200, "hello"))
    #expect(honest.tunnels.map(\.host) == ["localhost"])
    let attacker = try InterceptingProxy.intercepting(authority: site.authority)
    let attacked = try transport { $0.proxy = "http://127.0.0.1:\(attacker.port)" }
    #expect(await attacked.end(of: url) == .refused("leaf-pin"))
    #expect(attacker.plaintextBytes == 0)
    // The control: unpinned, the same proxy reads along.
    try site.judge.pin(["other.localhost": site.identity], unlisted: .systemTrust)
    let open = try transport { $0.proxy = "http://127.0.0.1:\(attacker.port)" }
    #expect(await open.end(of: url) == .served(200, "hello"))
    #expect(attacker.plaintextBytes > 0)
  }

  @Test("end where a proxy talks on and on behind a refusal")
  func talkative() async throws {
    let head =
      "HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm=\"x\"\r\n"
      + "Content-Length: 9999999999\r\n\r\n"
    let answer = Array(head.utf8) + [UInt8](repeating: 120, count: 200_000)
    let proxy = try LocalRawServer(.sends(answer))
    let transport = try transport { $0.proxy = "http://127.0.0.1:\(proxy.port)" }
    for method in ["GET", "POST"] {
      let body = method == "POST" ? Data([1]) : nil
      let request = URLRequest(try site.url(), method: method, body: body)
      #expect(await transport.end(of: request, within: 60) == .failed(.cannotConnectToHost))
    }
  }

  @Test("are not sent through a proxy that speaks TLS itself, whoever it is")
  func secureProxy() async throws {
    let proxy = try PinnedSite()
    try proxy.server.replaceIdentity(site.rogueIdentity())
    let transport = try transport { $0.proxy = "https://localhost:\(proxy.server.port)" }
    let end = await transport.end(of: try site.url())
    #expect(end == .refused("leaf-pin"))
    #expect(site.server.counts.connections == 0)
    #expect(await proxy.server.waitUntilIdle())
    #expect(proxy.server.counts.applicationBytesReceived == 0)
  }

  @Test("go on over fresh connections where the server drops the kept ones")
  func dropped() async throws {
    let url = try site.url()
    for _ in 0..<5 {
      #expect(await site.transport.end(of: url) == .served(200, "hello"))
      site.server.closeConnections()
    }
    #expect(site.server.requests.count == 5)
  }
}
