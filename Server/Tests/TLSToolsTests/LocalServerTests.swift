import FaultLab
import Foundation
import TLSTools
import TestSupport
import Testing

@Suite("Local servers")
struct LocalServerTests {
  @Test("curl gets a page over TLS with the right CA, and none with another")
  func trust() async throws {
    let site = try TestSite()
    let page = try await site.curl("/hello")
    #expect(page.exitCode == 0, "\(page.stderr)")
    #expect(page.stdout == "GET /hello")
    #expect(site.server.counts.handshakesCompleted == 1)
    #expect(site.server.counts.applicationBytesReceived > 0)

    site.server.clearLog()
    let other = try CertificateAuthority.makeRoot(name: "Other")
    let refused = try await site.curl("/hello", trusting: other)
    #expect(refused.exitCode == 60, "\(refused.stderr)")
    #expect(await site.server.waitUntilIdle())
    #expect(site.server.requests.isEmpty)
    #expect(site.server.counts.applicationBytesReceived == 0)
    #expect(site.server.counts.handshakesCompleted == 0)
    #expect(site.server.counts.handshakesFailed == 1)
  }

  @Test("requests arrive whole: method, headers, and bodies of either framing")
  func bodies() async throws {
    let site = try TestSite()
    let body = String(repeating: "0123456789", count: 30_000)
    let file = try site.directory.write(body, to: "body").path
    for extra in [[], ["-H", "Transfer-Encoding: chunked"], ["-H", "Expect: 100-continue"]] {
      site.server.clearLog()
      let outcome = try await site.curl("/up?x=1", ["--data-binary", "@\(file)"] + extra)
      #expect(outcome.exitCode == 0, "\(outcome.stderr)")
      let request = try #require(site.server.requests.first)
      #expect(request.method == "POST")
      #expect(request.path == "/up")
      #expect(request.target == "/up?x=1")
      #expect(request.body == Array(body.utf8))
      #expect(request.header("host") == "site.test:\(site.server.port)")
      #expect(request.serverName == "site.test")
      #expect(request.tlsVersion == .tls13)
    }
  }

  @Test("one connection serves several requests, and a rotation can end it")
  func keepAlive() async throws {
    let site = try TestSite()
    let outcome = try await site.curl("/a", [site.url("/b"), site.url("/c")])
    #expect(outcome.stdout == "GET /bGET /cGET /a")
    #expect(site.server.requests.map(\.connection) == [1, 1, 1])
    let client = try await RawClient.connect(to: site)
    #expect(try await client.get("/1").contains("GET /1"))
    try site.server.replaceIdentity(site.authority.issue(names: ["site.test"]))
    #expect(try await client.get("/2").contains("GET /2"))
    site.server.closeConnections()
    await #expect(throws: (any Error).self) { try await client.get("/3") }
  }

  @Test("a HEAD has no body, an empty status no length")
  func head() async throws {
    let site = try TestSite { request in
      request.path == "/none" ? HTTPResponse(status: 204) : .text("twelve bytes")
    }
    let head = try await site.curl("/", ["--head"])
    #expect(head.stdout.contains("Content-Length: 12\r\n"))
    #expect(head.stdout.hasSuffix("\r\n\r\n"))
    let none = try await site.curl("/none", ["-i"])
    #expect(none.stdout.hasPrefix("HTTP/1.1 204 No Content\r\n"))
    #expect(!none.stdout.contains("Content-Length"))
  }

  @Test(
    "every delivery looks to curl as it should",
    arguments: [
      (HTTPResponse.Delivery.whole, Int32(0), 1000), (.chunked(pieceBytes: 7), 0, 1000),
      (.drip(pieceBytes: 100, pauseMilliseconds: 1), 0, 1000), (.cutOff(afterBytes: 10), 18, 10),
      (.hangUp, 52, 0), (.verbatim, 1, 0),
    ])
  func deliveries(delivery: HTTPResponse.Delivery, exitCode: Int32, received: Int) async throws {
    let site = try TestSite { _ in
      HTTPResponse(body: [UInt8](repeating: 120, count: 1000), delivery: delivery)
    }
    let outcome = try await site.curl("/", ["--http1.1"])
    #expect(outcome.exitCode == exitCode, "\(outcome.stderr)")
    #expect(outcome.stdout.utf8.count == received)
  }

  @Test("an endless answer ends when the client has had enough")
  func endless() async throws {
    let site = try TestSite { _ in
      HTTPResponse(body: [UInt8](repeating: 120, count: 1000), delivery: .endless())
    }
    let outcome = try await site.curl("/", ["--max-time", "1"])
    #expect(outcome.exitCode == 28)
    #expect(outcome.stdout.utf8.count > 1000)
    #expect(await site.server.waitUntilIdle())
  }

  @Test("the identity can be changed between two connections")
  func rotation() async throws {
    let site = try TestSite()
    #expect(try await site.curl("/").exitCode == 0)
    let attacker = try CertificateAuthority.makeRoot(name: "Attacker")
    try site.server.replaceIdentity(attacker.issue(names: ["site.test"]))
    #expect(try await site.curl("/").exitCode == 60)
    #expect(try await site.curl("/", trusting: attacker).exitCode == 0)
  }

  @Test(
    "versions outside the range are refused",
    arguments: [
      (TLSVersion.tls12, TLSVersion.tls12, "-tls1_2", true), (.tls12, .tls12, "-tls1_3", false),
      (.tls13, .tls13, "-tls1_3", true), (.tls13, .tls13, "-tls1_2", false),
      (.tls10, .tls11, "-tls1_1", true),
    ])
  func versions(
    minimum: TLSVersion, maximum: TLSVersion, flag: String, accepted: Bool
  ) async throws {
    let site = try TestSite(options: TLSServerOptions(minimum: minimum, maximum: maximum))
    let outcome = try await site.openssl([flag, "-cipher", "ALL:@SECLEVEL=0"])
    #expect((outcome.exitCode == 0) == accepted, "\(outcome.stderr)")
    #expect(await site.server.waitUntilIdle())
    #expect(site.server.counts.handshakesCompleted == (accepted ? 1 : 0))
  }

  @Test(
    "sessions resume while tickets are on, and across a rotation only when asked",
    arguments: ["-tls1_2", "-tls1_3"])
  func resumption(flag: String) async throws {
    let site = try TestSite()
    let session = site.directory.path("session")
    let save = [flag, "-ign_eof", "-sess_out", session]
    let resume = [flag, "-ign_eof", "-sess_in", session]
    #expect(try await site.openssl(save).exitCode == 0)
    #expect(try await site.openssl(resume).stdout.contains("Reused"))
    #expect(site.server.counts.handshakesResumed == 1)
    #expect(site.server.requests.map(\.isResumed) == [false, true])

    let next = try site.authority.issue(names: ["site.test"])
    try site.server.replaceIdentity(next, keepingSessions: true)
    #expect(try await site.openssl(resume).stdout.contains("Reused"))
    try site.server.replaceIdentity(next)
    #expect(try await site.openssl(resume).stdout.contains("New"))

    let without = try TestSite(options: TLSServerOptions(sessionTickets: false))
    let other = without.directory.path("session")
    _ = try await without.openssl([flag, "-ign_eof", "-sess_out", other])
    if FileManager.default.fileExists(atPath: other) {
      let again = try await without.openssl([flag, "-ign_eof", "-sess_in", other])
      #expect(again.stdout.contains("New"))
    }
  }

  @Test("only http/1.1 is negotiated")
  func alpn() async throws {
    let site = try TestSite()
    let both = try await site.openssl(["-alpn", "h2,http/1.1"])
    #expect(both.stdout.contains("ALPN protocol: http/1.1"))
    #expect(try await site.openssl(["-alpn", "h2"]).exitCode != 0)
  }

  @Test("clear text is served by the same code, and TLS at its door fails")
  func clearText() async throws {
    let server = try LocalHTTPServer { .text("\($0.method) \($0.target)") }
    let url = "http://127.0.0.1:\(server.port)/x"
    #expect(try await ChildProcess.run("curl", ["-sS", url]).stdout == "GET /x")
    #expect(server.requests.first?.tlsVersion == nil)
    let tls = try await ChildProcess.run("curl", ["-sSk", "https://127.0.0.1:\(server.port)/x"])
    #expect(tls.exitCode == 35)
  }

  @Test("a request that could be read in two ways gets 400")
  func ambiguous() async throws {
    let server = try LocalHTTPServer { _ in .text("served") }
    for head in [
      "Content-Length: 1\r\nContent-Length: 2", "Content-Length: +1", "Content-Length: -1",
      "Content-Length: 1\r\nTransfer-Encoding: chunked", "no colon", "Bad Name: x",
    ] {
      let answer = try await RawClient.exchange(
        "GET / HTTP/1.1\r\nHost: a\r\n\(head)\r\n\r\n", port: server.port)
      #expect(answer.hasPrefix("HTTP/1.1 400 "), "\(head)")
    }
    let huge = "GET / HTTP/1.1\r\nX: " + String(repeating: "x", count: 70_000)
    #expect(try await RawClient.exchange(huge, port: server.port).hasPrefix("HTTP/1.1 431 "))
    #expect(server.requests.isEmpty)
  }

  @Test("requests in one packet, in odd pieces, with chunk extensions and trailers are all read")
  func framing() async throws {
    let server = try LocalHTTPServer { HTTPResponse(body: $0.body) }
    let text =
      "\r\nPOST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\none"
      + "POST /2 HTTP/1.1\r\nTransfer-Encoding: CHUNKED\r\n\r\n"
      + "2;x=y\r\ntw\r\n1\r\no\r\n0\r\nTrailer: x\r\n\r\n"
      + "GET /3 HTTP/1.0\r\n\r\nGET /4 HTTP/1.0\r\n\r\n"
    let whole = try await RawClient.exchange(text, port: server.port)
    #expect(server.requests.map(\.target) == ["/1", "/2", "/3"])
    #expect(server.requests.map(\.body) == [Array("one".utf8), Array("two".utf8), []])
    #expect(whole.components(separatedBy: "HTTP/1.1 200 OK\r\n").count == 4)

    server.clearLog()
    let client = try RawClient(port: server.port)
    for byte in text.utf8.prefix(text.utf8.count / 2) {
      try client.send(String(UnicodeScalar(byte)))
    }
    client.close()
    #expect(await server.waitUntilIdle())
    #expect(server.requests.allSatisfy { $0.target == "/1" })
  }

  @Test("stopping ends idle connections, half requests, half handshakes and slow answers at once")
  func stopping() async throws {
    let site = try TestSite { _ in HTTPResponse(body: [1], delayMilliseconds: 600_000) }
    let clear = try LocalHTTPServer { _ in
      HTTPResponse(body: [1, 2], delivery: .drip(pieceBytes: 1, pauseMilliseconds: 600_000))
    }
    let silent = try RawClient(port: site.server.port)
    let waiting = try await RawClient.connect(to: site)
    try waiting.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    let half = try RawClient(port: clear.port)
    try half.send("GET / HT")
    let dripping = try RawClient(port: clear.port)
    try dripping.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    while site.server.requests.isEmpty || clear.requests.isEmpty { await Task.yield() }
    let listening = try #require(try listener(on: clear.port))
    try await offTheCooperativePool {
      site.server.stop()
      clear.stop()
      clear.stop()
    }
    #expect(try listener(on: clear.port) != listening)
    withExtendedLifetime((silent, waiting, half, dripping)) {}
  }

  @Test("clients that leave at any point do not stop the server")
  func leaving() async throws {
    let site = try TestSite { _ in
      HTTPResponse(body: [UInt8](repeating: 7, count: 4 << 20), delivery: .chunked(pieceBytes: 999))
    }
    for bytes in [0, 1, 100] {
      let client = try RawClient(port: site.server.port)
      try client.send(String(repeating: "\u{16}", count: bytes))
      client.close()
    }
    for _ in 0..<3 {
      let client = try await RawClient.connect(to: site)
      try client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
      client.close()
    }
    #expect(try await site.curl("/").stdout.utf8.count == 4 << 20)
    #expect(await site.server.waitUntilIdle())
  }

  @Test("more connections than allowed are turned away, and room comes back")
  func bounded() async throws {
    let server = try LocalHTTPServer(connectionLimit: 2) { _ in .text("served") }
    let first = try RawClient(port: server.port)
    let second = try RawClient(port: server.port)
    while server.counts.connections < 2 { await Task.yield() }
    let url = "http://127.0.0.1:\(server.port)/"
    #expect(try await ChildProcess.run("curl", ["-sS", url]).exitCode != 0)
    #expect(server.counts.connectionsTurnedAway == 1)
    first.close()
    second.close()
    var served = false
    for _ in 0..<100 where !served {
      served = try await ChildProcess.run("curl", ["-sS", url]).stdout == "served"
    }
    #expect(served)
  }
}
