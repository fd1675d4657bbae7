import FaultLab
import Foundation
import FoundationNetworking
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@Suite("Requests without a session, on a network in trouble")
struct FastTroubleTests {
  @Test("are not late while their body goes up, from memory too")
  func slowUpload() async throws {
    let site = try PinnedSite(handler: echo)
    let relay = try SwitchableRelay(to: .loopback(site.server.port))
    let url = try site.url(port: relay.port)
    #expect(await site.transport.end(of: url) == .served(200, "GET 0"))
    relay.slow(milliseconds: 10)
    let body = Data(repeating: 1, count: 20_000_000)
    let post = URLRequest(url, method: "POST", body: body, timeout: 3)
    #expect(await site.transport.end(of: post) == .served(200, "POST 20000000"))
    // Nothing moves: that is late.
    relay.suspend(true)
    let late = URLRequest(url, method: "POST", body: body, timeout: 0.5)
    #expect(await site.transport.end(of: late) == .failed(.timedOut))
  }

  private func nginx(
    _ site: PinnedSite, http2: Bool = true, more: String = ""
  ) async throws -> Nginx {
    try await Nginx.start(
      Nginx.Site(
        site.identity, name: "localhost", http2: http2,
        directives: "location / { return 200 \"nginx\"; } \(more)"))
  }

  /// Two relays, so that connections that are open can be lost, and new ones are not.
  @Test("leave an HTTP/2 connection that carries nothing any more")
  func lostLast() async throws {
    let site = try PinnedSite()
    let nginx = try await nginx(site)
    let lost = try SwitchableRelay(to: .loopback(nginx.port))
    let relay = try SwitchableRelay(to: .loopback(lost.port))
    let url = try site.url(port: relay.port)
    #expect(await site.transport.end(of: url) == .served(200, "nginx"))
    lost.suspend(true)
    relay.redirect(to: .loopback(nginx.port), closingConnections: false)
    #expect(
      await site.transport.end(of: URLRequest(url, timeout: 0.5)) == .failed(.timedOut))
    for _ in 0..<3 {
      #expect(await site.transport.end(of: URLRequest(url, timeout: 30)) == .served(200, "nginx"))
    }
    #expect(relay.connections == 2)
    try await nginx.stop()
  }

  @Test("keep off a lost HTTP/2 connection that others wait on, all of them on one other")
  func lostBesideOthers() async throws {
    let site = try PinnedSite()
    let nginx = try await nginx(site)
    let lost = try SwitchableRelay(to: .loopback(nginx.port))
    let relay = try SwitchableRelay(to: .loopback(lost.port))
    let url = try site.url(port: relay.port)
    #expect(await site.transport.end(of: url) == .served(200, "nginx"))
    lost.suspend(true)
    relay.redirect(to: .loopback(nginx.port), closingConnections: false)
    let patient = Task { await site.transport.end(of: URLRequest(url, timeout: 60)) }
    #expect(
      await site.transport.end(of: URLRequest(url, timeout: 0.5)) == .failed(.timedOut))
    // At once, and one after the other.
    for count in [20, 1, 1] {
      #expect(
        await burst(count, site, url) == Array(repeating: .served(200, "nginx"), count: count))
    }
    #expect(relay.connections == 2)
    lost.suspend(false)
    #expect(await patient.value == .served(200, "nginx"))
    try await nginx.stop()
  }

  /// So many at once, so that as many HTTP/1.1 connections are kept afterwards.
  private func burst(_ count: Int, _ site: PinnedSite, _ url: URL) async -> [End] {
    await withTaskGroup(of: End.self) { group in
      for _ in 0..<count {
        group.addTask { await site.transport.end(of: URLRequest(url, timeout: 30)) }
      }
      return await group.reduce(into: []) { $0.append($1) }
    }
  }

  @Test("leave all kept HTTP/1.1 connections after one was silent, on every loop")
  func lostKept() async throws {
    let site = try PinnedSite { _ in
      HTTPResponse(body: Array("hello".utf8), delayMilliseconds: 150)
    }
    let lost = try SwitchableRelay(to: .loopback(site.server.port))
    let relay = try SwitchableRelay(to: .loopback(lost.port))
    let url = try site.url(port: relay.port)
    let served = Array(repeating: End.served(200, "hello"), count: 12)
    // The second burst is spread over the loops.
    for _ in 0..<2 { #expect(await burst(12, site, url) == served) }
    lost.suspend(true)
    relay.redirect(to: .loopback(site.server.port), closingConnections: false)
    #expect(await site.transport.end(of: URLRequest(url, timeout: 0.5)) == .failed(.timedOut))
    let kept = relay.connections
    for _ in 0..<3 {
      #expect(await site.transport.end(of: URLRequest(url, timeout: 5)) == .served(200, "hello"))
    }
    #expect(relay.connections == kept + 1)
    #expect(await burst(12, site, url) == served)
  }

  @Test("keep HTTP/1.1 connections of a server that is slow")
  func slowServer() async throws {
    let site = try PinnedSite { request in
      HTTPResponse(
        body: Array("hello".utf8), delayMilliseconds: request.target == "/slow" ? 1500 : 100)
    }
    let relay = try SwitchableRelay(to: .loopback(site.server.port))
    let url = try site.url(port: relay.port)
    let slow = try site.url("/slow", port: relay.port)
    #expect(await burst(3, site, url).count == 3)
    #expect(relay.connections == 3)
    #expect(await site.transport.end(of: URLRequest(slow, timeout: 30)) == .served(200, "hello"))
    // Others are answered meanwhile: one is late, and no other connection is left.
    async let late = site.transport.end(of: URLRequest(slow, timeout: 0.8))
    for _ in 0..<12 { #expect(await site.transport.end(of: url) == .served(200, "hello")) }
    #expect(await late == .failed(.timedOut))
    #expect(await burst(2, site, url).count == 2)
    #expect(relay.connections == 3)
    // Nobody is: one more dial.
    #expect(await site.transport.end(of: URLRequest(slow, timeout: 0.5)) == .failed(.timedOut))
    for _ in 0..<3 { #expect(await site.transport.end(of: url) == .served(200, "hello")) }
    #expect(relay.connections == 4)
  }

  /// In a process of its own: libcurl 7.83 to 8.2 would end it.
  @Test("outlive heads whose first field begins with a blank")
  func blankBeforeFirstField() async {
    await #expect(processExitsWith: .exitCode(7)) {
      let site = try PinnedSite { request in
        guard request.target != "/" else { return .text("hello") }
        let field = " X: \(String(repeating: "y", count: 3000))\r\n"
        return HTTPResponse(
          body: Array("HTTP/1.1 200 OK\r\n\(field)Content-Length: 2\r\n\r\nok".utf8),
          delivery: .verbatim)
      }
      let (good, bad) = (try site.url(), try site.url("/bad"))
      for _ in 0..<20 {
        guard await site.transport.end(of: good) == .served(200, "hello") else { exit(1) }
        _ = await site.transport.end(of: bad)
      }
      exit(7)
    }
  }

  @Test(
    "do not wait behind a connection that hangs while somebody else's request opens it",
    arguments: [(http2: true, connections: 2...2), (http2: false, connections: 2...6)])
  func hangingDial(http2: Bool, connections: ClosedRange<Int>) async throws {
    let site = try PinnedSite()
    let nginx = try await nginx(site, http2: http2)
    let lost = try SwitchableRelay(to: .loopback(nginx.port))
    let relay = try SwitchableRelay(to: .loopback(lost.port))
    let url = try site.url(port: relay.port)
    lost.suspend(true)
    let patient = Task { await site.transport.end(of: URLRequest(url, timeout: 600)) }
    #expect(await eventually { relay.connections == 1 })
    relay.redirect(to: .loopback(nginx.port), closingConnections: false)
    #expect(await burst(5, site, url) == Array(repeating: .served(200, "nginx"), count: 5))
    #expect(connections.contains(relay.connections))
    lost.suspend(false)
    #expect(await patient.value == .served(200, "nginx"))
    try await nginx.stop()
  }

  @Test("use the connection that stands first, also if it was given up for another that hangs")
  func firstToStand() async throws {
    let site = try PinnedSite()
    let nginx = try await nginx(site)
    let late = try SwitchableRelay(to: .loopback(nginx.port))
    let lost = try SwitchableRelay(to: .loopback(nginx.port))
    let relay = try SwitchableRelay(to: .loopback(late.port))
    let url = try site.url(port: relay.port)
    for relay in [late, lost] { relay.suspend(true) }
    let first = Task { await site.transport.end(of: URLRequest(url, timeout: 30)) }
    #expect(await eventually { relay.connections == 1 })
    relay.redirect(to: .loopback(lost.port), closingConnections: false)
    let others = Task { await burst(5, site, url) }
    #expect(await eventually { relay.connections == 2 })
    late.suspend(false)
    #expect(await first.value == .served(200, "nginx"))
    let served = Array(repeating: End.served(200, "nginx"), count: 5)
    #expect(await burst(5, site, url) == served)
    // The one that went ahead waits for its own.
    lost.suspend(false)
    #expect(await others.value == served)
    try await nginx.stop()
  }

  @Test("open few connections over a line on which each of them takes seconds")
  func slowLine() async throws {
    let site = try PinnedSite()
    let nginx = try await nginx(site)
    let relay = try SwitchableRelay(to: .loopback(nginx.port))
    relay.slow(milliseconds: 900)
    let url = try site.url(port: relay.port)
    let served = Array(repeating: End.served(200, "nginx"), count: 30)
    for _ in 0..<2 { #expect(await burst(30, site, url) == served) }
    // A dial that takes more than two seconds is helped by one other.
    #expect(relay.connections <= 3)
    try await nginx.stop()
  }

  @Test(
    "take no answer whose head is cut for a whole one",
    arguments: [
      ("HEAD", "200 OK", ""), ("GET", "204 No Content", ""), ("GET", "304 Not Modified", ""),
      ("GET", "200 OK", "Content-Length: 0\r\n"), ("GET", "200 OK", ""),
      ("GET", "302 Found", "Location: /other\r\n"),
    ])
  func cutHead(method: String, status: String, field: String) async throws {
    let text = "HTTP/1.1 \(status)\r\n\(field)X-A: b\r\n"
    for delivery in [HTTPResponse.Delivery.torn, .verbatim] {
      let site = try PinnedSite { _ in HTTPResponse(body: Array(text.utf8), delivery: delivery) }
      let request = URLRequest(try site.url(), method: method)
      #expect(await site.transport.end(of: request) == .failed(.networkConnectionLost))
      #expect(site.server.requests.count == 1)
    }
  }

  @Test("take no answer that is cut for a whole one because its location is empty")
  func cutNowhere() async throws {
    let text = "HTTP/1.1 302 Found\r\nLocation: \r\n\r\nabc"
    let site = try PinnedSite { _ in HTTPResponse(body: Array(text.utf8), delivery: .torn) }
    #expect(
      await site.transport.end(of: URLRequest(try site.url())) == .failed(.networkConnectionLost))
  }

  @Test("keep an HTTP/2 connection on which one answer is late and others come")
  func lateBesideOthers() async throws {
    let site = try PinnedSite()
    let never = try LocalHTTPServer { _ in HTTPResponse(delayMilliseconds: 60_000) }
    let nginx = try await nginx(
      site, more: "location /late { proxy_pass http://127.0.0.1:\(never.port); }")
    let relay = try SwitchableRelay(to: .loopback(nginx.port))
    let url = try site.url(port: relay.port)
    let late = URLRequest(try site.url("/late", port: relay.port), timeout: 1)
    async let end = site.transport.end(of: late)
    while await site.transport.end(of: url) == .served(200, "nginx") {
      if never.requests.count == 1 { break }
    }
    #expect(await site.transport.end(of: url) == .served(200, "nginx"))
    #expect(await end == .failed(.timedOut))
    #expect(await site.transport.end(of: url) == .served(200, "nginx"))
    #expect(relay.connections == 1)
    try await nginx.stop()
  }

  @Test(
    "take an answer without a length for whole only where the server said that it ended",
    arguments: [
      ("\r\nwhole", HTTPResponse.Delivery.verbatim, true), ("\r\nwhole", .torn, false),
      ("Content-Length: 5\r\n\r\nwhole", .torn, true),
      ("Transfer-Encoding: chunked\r\n\r\n5\r\nwhole\r\n0\r\n\r\n", .torn, true),
    ])
  func withoutLength(rest: String, delivery: HTTPResponse.Delivery, isWhole: Bool) async throws {
    let text = "HTTP/1.1 200 OK\r\n\(rest)"
    let site = try PinnedSite { _ in HTTPResponse(body: Array(text.utf8), delivery: delivery) }
    let url = try site.url()
    #expect(
      await site.transport.end(of: url)
        == (isWhole ? .served(200, "whole") : .failed(.networkConnectionLost)))
    let (bytes, _) = try await site.transport.bytes(for: URLRequest(url: url))
    var body: [UInt8] = []
    var code: URLError.Code?
    do { for try await chunk in bytes { body += chunk } } catch {
      code = (error as? URLError)?.code
    }
    #expect(body == Array("whole".utf8))
    #expect(code == (isWhole ? nil : .networkConnectionLost))
  }

  @Test(
    "fail if the trailers of an answer have no end: libcurl keeps them all",
    arguments: [(200, true), (300, false)])
  func endlessTrailers(count: Int, isWhole: Bool) async throws {
    let trailer = "A: " + String(repeating: "b", count: 1000) + "\r\n"
    let text =
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nwhole\r\n0\r\n"
      + String(repeating: trailer, count: count) + "\r\n"
    let site = try site(sending: text)
    let url = try site.url()
    #expect(
      await site.transport.end(of: url)
        == (isWhole ? .served(200, "whole") : .failed(.badServerResponse)))
    let (bytes, _) = try await site.transport.bytes(for: URLRequest(url: url))
    var code: URLError.Code?
    do { for try await _ in bytes {} } catch { code = (error as? URLError)?.code }
    #expect(code == (isWhole ? nil : .badServerResponse))
  }

  @Test(
    "have no body that could be cut",
    arguments: [("HEAD", 200), ("GET", 204), ("GET", 304)])
  func withoutBody(method: String, status: Int) async throws {
    let text = "HTTP/1.1 \(status) x\r\n\r\n"
    let site = try PinnedSite { _ in HTTPResponse(body: Array(text.utf8), delivery: .torn) }
    let request = URLRequest(try site.url(), method: method)
    #expect(await site.transport.end(of: request) == .served(status, ""))
  }

  /// A server that answers with these bytes, whatever it is asked.
  private func site(
    sending text: String, filler: Int = 0
  ) throws -> PinnedSite {
    let bytes = Array(text.utf8) + [UInt8](repeating: 0x61, count: filler)
    return try PinnedSite { _ in HTTPResponse(body: bytes, delivery: .verbatim) }
  }

  @Test("take a field for a field, also where it is called like a head's beginning")
  func fieldLikeHead() async throws {
    let site = try site(sending: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nHTTP/x: y\r\n\r\nok")
    #expect(await site.transport.end(of: try site.url()) == .served(200, "ok"))
  }

  @Test("end in time where a body comes and no head that is understood")
  func bodyWithoutHead() async throws {
    let site = try site(
      sending: "HTTP/1.1  200 OK\r\nContent-Length: 3000000\r\n\r\n", filler: 3_000_000)
    let request = URLRequest(try site.url(), timeout: 1)
    let ended = Locked<URLError.Code?>(nil)
    let task = Task {
      do { _ = try await site.transport.bytes(for: request) } catch {
        ended.withLock { $0 = (error as? URLError)?.code }
      }
    }
    #expect(await eventually(within: 30) { ended.withLock { $0 } != nil })
    #expect(ended.withLock { $0 } == .timedOut)
    task.cancel()
  }
}
