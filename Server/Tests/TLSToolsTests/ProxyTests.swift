import FaultLab
import Foundation
import TLSTools
import TestSupport
import Testing

@Suite("Proxies and relays")
struct ProxyTests {
  let site: TestSite
  let attacker: CertificateAuthority

  init() throws {
    site = try TestSite { HTTPResponse(body: Array("\($0.method) \($0.target)".utf8) + $0.body) }
    attacker = try CertificateAuthority.makeRoot(name: "Attacker")
  }

  /// Sends curl to another port than the site's own.
  private func via(_ port: UInt16) -> [String] {
    ["--connect-to", "site.test:\(site.server.port):127.0.0.1:\(port)"]
  }

  private func through(_ proxy: InterceptingProxy) -> [String] {
    ["--noproxy", "", "--proxy", "http://127.0.0.1:\(proxy.port)"]
  }

  /// The way from names to test servers.
  private var route: InterceptingProxy.Route {
    let port = site.server.port
    return { host, _ in host == "site.test" ? .loopback(port) : nil }
  }

  @Test("a man in the middle whose authority the client trusts reads everything")
  func interception() async throws {
    let proxy = try InterceptingProxy.transparent(
      upstream: .loopback(site.server.port), authority: attacker)
    let outcome = try await site.curl(
      "/secret?x", via(proxy.port) + ["-d", "password=1"], trusting: attacker)
    #expect(outcome.stdout == "POST /secret?xpassword=1", "\(outcome.stderr)")
    let request = try #require(proxy.requests.first)
    #expect(request.target == "/secret?x")
    #expect(request.body == Array("password=1".utf8))
    #expect(request.serverName == "site.test")
    #expect(proxy.plaintextBytes >= 10)
    #expect(proxy.handshakesCompleted == 1)
    #expect(site.server.requests.count == 1)
  }

  @Test("a client that does not trust him gives him nothing, and the server hears nothing")
  func refusal() async throws {
    let proxy = try InterceptingProxy.transparent(
      upstream: .loopback(site.server.port), authority: attacker)
    let outcome = try await site.curl("/secret", via(proxy.port))
    #expect(outcome.exitCode == 60)
    proxy.stop()
    #expect(proxy.requests.isEmpty)
    #expect(proxy.plaintextBytes == 0)
    #expect(proxy.handshakesCompleted == 0)
    #expect(proxy.handshakesFailed == 1)
    #expect(site.server.counts.connections == 0)
  }

  @Test("without a server name the attacker is the address that was dialled")
  func withoutServerName() async throws {
    let proxy = try InterceptingProxy.transparent(
      upstream: .loopback(site.server.port), authority: attacker)
    let root = try site.directory.write(attacker.root.pem, to: "attacker").path
    let outcome = try await ChildProcess.run(
      "curl", ["-sS", "--cacert", root, "https://127.0.0.1:\(proxy.port)/x"])
    #expect(outcome.stdout == "GET /x", "\(outcome.stderr)")
    #expect(proxy.requests.map(\.serverName) == [nil])
  }

  @Test("an honest proxy carries what it cannot read")
  func tunnel() async throws {
    let proxy = try InterceptingProxy.tunnelling(route: route)
    let outcome = try await site.curl("/hello", through(proxy))
    #expect(outcome.stdout == "GET /hello", "\(outcome.stderr)")
    #expect(proxy.tunnels.map(\.host) == ["site.test"])
    #expect(proxy.tunnels.map(\.port) == [site.server.port])
    #expect(proxy.tunnels.map(\.status) == [200])
    #expect(proxy.requests.isEmpty)
    #expect(proxy.plaintextBytes == 0)
    #expect(try proxy.identity(for: "site.test") == nil)
  }

  @Test("a proxy in the middle reads with the client's trust and nothing without")
  func interceptedTunnel() async throws {
    let proxy = try InterceptingProxy.intercepting(authority: attacker, route: route)
    let refused = try await site.curl("/first", through(proxy))
    #expect(refused.exitCode == 60)
    let read = try await site.curl("/second", through(proxy), trusting: attacker)
    #expect(read.stdout == "GET /second", "\(read.stderr)")
    #expect(proxy.requests.map(\.target) == ["/second"])
    #expect(proxy.tunnels.map(\.host) == ["site.test", "site.test"])
  }

  @Test("a host without a route gets 502, anything but CONNECT 405, nonsense 400")
  func noRoute() async throws {
    let proxy = try InterceptingProxy.tunnelling()
    let outcome = try await site.curl("/", through(proxy))
    #expect(outcome.exitCode == 56)
    #expect(proxy.tunnels.map(\.status) == [502])
    for (text, status) in [
      ("GET http://example.com/ HTTP/1.1\r\n\r\n", 405), ("CONNECT nowhere HTTP/1.1\r\n\r\n", 405),
      ("CONNECT localhost:1 HTTP/1.1\r\n\r\n", 502), ("\u{1}\r\n\r\n", 400),
    ] {
      let answer = try await RawClient.exchange(text, port: proxy.port)
      #expect(answer.hasPrefix("HTTP/1.1 \(status) "), "\(text)")
    }
  }

  @Test("the default route leads to loopback and nowhere else")
  func loopbackOnly() {
    let route = InterceptingProxy.loopbackOnly
    #expect(route("localhost", 1) == .loopback(1))
    #expect(route("A.LocalHost", 2) == .loopback(2))
    #expect(route("127.0.0.9", 3) == Endpoint(address: "127.0.0.9", port: 3))
    #expect(route("::1", 4) == Endpoint(address: "::1", port: 4))
    for host in ["example.com", "10.0.0.1", "localhost.example.com", "127.0.0.1.example.com"] {
      #expect(route(host, 5) == nil, "\(host)")
    }
  }

  @Test("megabytes pass both ways at once, whole and in order")
  func volume() async throws {
    let proxy = try InterceptingProxy.transparent(
      upstream: .loopback(site.server.port), authority: attacker)
    let relay = try SwitchableRelay(to: .loopback(proxy.port))
    let bytes = (0..<(6 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 8 &+ $0) }
    let file = try site.directory.write(bytes, to: "big").path
    let answer = site.directory.path("answer")
    let outcome = try await site.curl(
      "/", via(relay.port) + ["--data-binary", "@\(file)", "-o", answer], trusting: attacker)
    #expect(outcome.exitCode == 0, "\(outcome.stderr)")
    let received = try [UInt8](Data(contentsOf: URL(filePath: answer)))
    #expect(received == Array("POST /".utf8) + bytes)
  }

  @Test("one URL leads to the server, then to the attacker, then back")
  func switching() async throws {
    let proxy = try InterceptingProxy.transparent(
      upstream: .loopback(site.server.port), authority: attacker)
    let relay = try SwitchableRelay(to: .loopback(site.server.port))
    #expect(try await site.curl("/1", via(relay.port)).exitCode == 0)
    relay.redirect(to: .loopback(proxy.port))
    #expect(relay.destination == .loopback(proxy.port))
    #expect(try await site.curl("/2", via(relay.port)).exitCode == 60)
    #expect(try await site.curl("/3", via(relay.port), trusting: attacker).exitCode == 0)
    relay.redirect(to: .loopback(site.server.port))
    #expect(try await site.curl("/4", via(relay.port)).exitCode == 0)
    #expect(site.server.requests.map(\.target) == ["/1", "/3", "/4"])
    #expect(relay.connections == 4)
  }

  @Test("switching cuts open connections, unless told to leave them")
  func openConnections() async throws {
    let clear = try LocalHTTPServer { .text($0.target) }
    let relay = try SwitchableRelay(to: .loopback(clear.port))
    let client = try RawClient(port: relay.port)
    #expect(try await client.get("/1").contains("/1"))
    relay.redirect(to: .loopback(site.server.port), closingConnections: false)
    #expect(try await client.get("/2").contains("/2"))
    relay.redirect(to: .loopback(site.server.port))
    await #expect(throws: (any Error).self) { try await client.get("/3") }
  }

  @Test("a suspended forwarder carries nothing, ends nothing, and goes on where it was")
  func suspending() async throws {
    let clear = try LocalHTTPServer { .text($0.target) }
    let relay = try SwitchableRelay(to: .loopback(clear.port))
    let kept = try RawClient(port: relay.port)
    #expect(try await kept.get("/1").contains("/1"))
    relay.suspend(true)
    async let second = kept.get("/2")
    let fresh = try RawClient(port: relay.port)
    async let third = fresh.get("/3")
    // why: that nothing arrives can only be waited for.
    try await Task.sleep(for: .milliseconds(150))
    #expect(clear.requests.map(\.target) == ["/1"])
    relay.suspend(false)
    #expect(try await second.contains("/2"))
    #expect(try await third.contains("/3"))
  }

  @Test("stopping ends tunnels that stand and clients that say nothing")
  func stopping() async throws {
    let proxy = try InterceptingProxy.tunnelling(route: route)
    let silent = try RawClient(port: proxy.port)
    let tunnel = try RawClient(port: proxy.port)
    try tunnel.send("CONNECT site.test:443 HTTP/1.1\r\n\r\n")
    while proxy.tunnels.isEmpty { await Task.yield() }
    try await offTheCooperativePool { proxy.stop() }
    // Both see the end; had it left them open, reading would end in a time-out (EAGAIN).
    for client in [silent, tunnel] {
      do {
        _ = try await client.get("/")
        Issue.record("answered after the stop")
      } catch RawClient.Failure.socket(let code) {
        #expect([EPIPE, ECONNRESET].contains(code))
      } catch RawClient.Failure.ended {}
    }
  }
}
