import FaultLab
import Foundation
import FoundationNetworking
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@Suite("A hostile network around a pinned URLSession")
struct HostileNetworkTests {
  @Test(
    "gains nothing by breaking a good connection: the one that replaces it is judged anew",
    arguments: ["GET", "POST"])
  func swappedUnderneath(method: String) async throws {
    let site = try PinnedSite()
    let attacker = try LocalTLSServer(identity: site.rogueIdentity()) { _ in .text("gotcha") }
    let relay = try SwitchableRelay(to: .loopback(site.server.port))
    let session = site.session()
    let url = try site.url(port: relay.port)
    _ = try await session.data(from: url)
    relay.redirect(to: .loopback(attacker.port))
    var request = URLRequest(url: url)
    request.httpMethod = method
    if method == "POST" { request.httpBody = Data(repeating: 67, count: 100_000) }
    do {
      _ = try await session.data(for: request)
      Issue.record("served")
    } catch { #expect(site.transport.refusal(for: error)?.rule == "leaf-pin") }
    #expect(await attacker.waitUntilIdle())
    #expect(attacker.counts.connections > 0)
    #expect(attacker.counts.applicationBytesReceived == 0)
    relay.redirect(to: .loopback(site.server.port))
    _ = try await session.data(for: request)
  }

  @Test("gains nothing by resuming, under another key, a session that the pinned key began")
  func stolenTickets() async throws {
    let site = try PinnedSite { _ in HTTPResponse(body: [1], closesConnection: true) }
    let session = site.session()
    for _ in 0..<2 { _ = try await session.data(from: site.url()) }
    try site.server.replaceIdentity(
      site.rogueIdentity(), closingConnections: true, keepingSessions: true)
    let seen = site.server.counts.applicationBytesReceived
    #expect(await site.refusal(of: try site.url(), over: session)?.rule == "leaf-pin")
    #expect(await site.server.waitUntilIdle())
    #expect(site.server.counts.handshakesResumed == 0)
    #expect(site.server.counts.applicationBytesReceived == seen)
  }

  @Test("is given no password when the key changes between the challenge and the answer")
  func passwordAfterSwap() async throws {
    let site = try PinnedSite { _ in
      HTTPResponse(
        status: 401, headers: [HTTPField("WWW-Authenticate", "Basic realm=\"r\"")],
        closesConnection: true)
    }
    let attacker = try LocalTLSServer(identity: site.rogueIdentity()) { _ in .text("gotcha") }
    let relay = try SwitchableRelay(to: .loopback(site.server.port))
    let delegate = SwappingDelegate { relay.redirect(to: .loopback(attacker.port)) }
    let session = site.session(delegate: delegate)
    session.dataTask(with: try site.url(port: relay.port)).resume()
    #expect(await eventually { delegate.error != nil })
    #expect(delegate.error.flatMap { site.transport.refusal(for: $0) }?.rule == "leaf-pin")
    #expect(await attacker.waitUntilIdle())
    #expect(attacker.counts.connections > 0)
    #expect(attacker.counts.applicationBytesReceived == 0)
  }

  /// BAD is the attacker's port, GOOD the pinned server's, PLAIN a clear-text server's.
  private static let twistedTargets = [
    "https://localhost:GOOD@127.0.0.1:BAD/", "https://localhost:GOOD\\@127.0.0.1:BAD/",
    "https://127.0.0.1:BAD\\@localhost:GOOD/", "https://%31%32%37.0.0.1:BAD/",
    "https://127.1:BAD/", "https://2130706433:BAD/", "https://0x7f.1:BAD/",
    "https://LOCALHOST:BAD/", "https://localhost.:BAD/", "https://localhost%2e:BAD/",
    "https://a%2elocalhost:BAD/", "https://ⓛocalhost:BAD/", "https://[::ffff:127.0.0.1]:BAD/",
    "//127.0.0.1:BAD/", "\\\\127.0.0.1:BAD/", "https:/\\127.0.0.1:BAD/", "HTTPS://localhost:BAD/",
    "HTTP://127.0.0.1:PLAIN/", "hTTp:\\\\127.0.0.1:PLAIN/", "//user:pass@localhost:BAD/",
    "https://localhost%00.evil:BAD/", "https://localhost:BAD?@x", "https://localhost..:BAD/",
    "wss://localhost:BAD/", "ws://localhost:PLAIN/",
  ]

  @Test("leads no request astray by a twisted redirect", arguments: twistedTargets)
  func twistedRedirect(target: String) async throws {
    let site = try PinnedSite()
    let plain = try LocalHTTPServer { _ in .text("clear") }
    let attacker = try LocalTLSServer(identity: site.rogueIdentity()) { _ in .text("gotcha") }
    let location = target.replacingOccurrences(of: "BAD", with: "\(attacker.port)")
      .replacingOccurrences(of: "PLAIN", with: "\(plain.port)")
      .replacingOccurrences(of: "GOOD", with: "\(site.server.port)")
    let first = try LocalTLSServer(identity: site.identity) { _ in
      .redirect(to: location, status: 307)
    }
    var request = URLRequest(url: try site.url(port: first.port))
    request.setValue("Bearer secret", forHTTPHeaderField: "Authorization")
    let body = try? await site.session().data(for: request).0
    #expect(body.map { String(decoding: $0, as: UTF8.self) } != "gotcha")
    #expect(!first.requests.isEmpty)
    #expect(await attacker.waitUntilIdle())
    #expect(attacker.counts.applicationBytesReceived == 0)
    #expect(plain.counts.connections == 0)
  }

  @Test("does not stall other sessions with handshakes that never end")
  func stalledHandshakes() async throws {
    let site = try PinnedSite()
    let silent = try LocalRawServer(.silent)
    let stuck = site.session()
    let url = try site.url(port: silent.port)
    let tasks = (0..<32).map { _ in stuck.dataTask(with: url) }
    for task in tasks { task.resume() }
    #expect(await eventually { silent.connections > 0 })
    let session = site.session()
    for _ in 0..<5 { _ = try await session.data(from: site.url()) }
    #expect(tasks.allSatisfy { $0.state == .running })
    stuck.invalidateAndCancel()
  }

  @Test("keeps no thread by asking for handshakes without end")
  func helloRequests() async throws {
    let site = try PinnedSite()
    let server = try LocalRawServer(.sends([0x16, 3, 3, 0, 4, 0, 0, 0, 0]))
    var request = URLRequest(url: try site.url(port: server.port))
    request.timeoutInterval = 10
    let error = await #expect(throws: URLError.self) {
      try await site.session().data(for: request)
    }
    #expect(error?.code != .timedOut)
  }

  @Test("is left when its time is over, however often it changes its key")
  func keyUpdates() async throws {
    let site = try PinnedSite { _ in HTTPResponse(delivery: .keyUpdates(.max)) }
    var request = URLRequest(url: try site.url())
    request.timeoutInterval = 2
    let error = await #expect(throws: URLError.self) {
      try await site.session().data(for: request)
    }
    #expect(error?.code == .timedOut)
  }

  @Test("sends no byte to whoever answers with something else than a handshake")
  func garbage() async throws {
    let site = try PinnedSite()
    for bytes in [
      Array("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\ngotcha".utf8), [0x15, 3, 3, 0, 2, 2, 40],
      [0x16, 3, 3, 0x40, 0], [UInt8](repeating: 0xff, count: 70_000),
    ] {
      let server = try LocalRawServer(.sends(bytes))
      var request = URLRequest(url: try site.url(port: server.port))
      request.timeoutInterval = 1
      await #expect(throws: (any Error).self) {
        try await site.session().data(for: request)
      }
    }
  }

  @Test("is judged by the leaf's key at the end of eighty intermediates, too")
  func longChain() async throws {
    let site = try PinnedSite()
    var authority = site.authority
    for number in 0..<80 { authority = try authority.issueIntermediate(name: "CA \(number)") }
    let identity = try authority.issue(names: PinnedSite.names)
    let server = try LocalTLSServer(identity: identity) { _ in .text("far") }
    let session = site.session()
    let url = try site.url(port: server.port)
    #expect(await site.refusal(of: url, over: session)?.rule == "leaf-pin")
    #expect(await server.waitUntilIdle())
    #expect(server.counts.applicationBytesReceived == 0)
    try site.judge.pin(["localhost": identity])
    _ = try await session.data(from: url)
  }
}

/// Answers a challenge, and has the network change just before.
private final class SwappingDelegate: NSObject, URLSessionDataDelegate {
  private let swap: @Sendable () -> Void
  private let ended = Locked<(any Error)?>(nil)

  init(swap: @escaping @Sendable () -> Void) { self.swap = swap }

  var error: (any Error)? { ended.withLock { $0 } }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
    completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
  ) {
    swap()
    completionHandler(
      .useCredential, URLCredential(user: "user", password: "pass", persistence: .none))
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
  ) {
    ended.withLock { $0 = error }
  }
}
