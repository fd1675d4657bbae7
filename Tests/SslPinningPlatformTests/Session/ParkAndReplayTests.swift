import FaultLab
import Foundation
import FoundationNetworking
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@Suite("A mismatch that a refresh can turn")
struct ParkAndReplayTests {
  /// A site whose server has rotated; a refresh brings the new pins.
  private func rotatedSite(
    handler: @escaping LocalHTTPServer.Handler = { .text("\($0.method) \($0.body.count)") },
    pausing milliseconds: UInt64 = 100
  ) throws -> PinnedSite {
    let site = try PinnedSite(handler: handler)
    let next = try site.rogueIdentity()
    try site.server.replaceIdentity(next)
    site.judge.onRefresh { judge in
      // why: a registry takes its time; the request is parked meanwhile.
      try? await Task.sleep(nanoseconds: milliseconds * 1_000_000)
      try? judge.pin(["**.localhost": next])
    }
    return site
  }

  @Test("is parked, refreshed and replayed: the app sees one answer")
  func data() async throws {
    let site = try rotatedSite()
    let (body, _) = try await site.session().data(from: site.url())
    #expect(String(decoding: body, as: UTF8.self) == "GET 0")
    #expect(site.judge.refreshes.map(\.rule) == ["leaf-pin"])
    #expect(site.server.requests.count == 1)
  }

  @Test("replays a body, an upload, a stream and a download from their beginning")
  func bodies() async throws {
    let payload = Data(repeating: 65, count: 300_000)
    for kind in ["body", "upload", "stream", "download"] {
      let site = try rotatedSite()
      let session = site.session()
      var request = URLRequest(url: try site.url())
      request.httpMethod = "POST"
      let answer: Data
      switch kind {
      case "body":
        request.httpBody = payload
        answer = try await session.data(for: request).0
      case "upload": answer = try await session.upload(for: request, from: payload).0
      case "stream":
        request.httpBodyStream = InputStream(data: payload)
        answer = try await session.data(for: request).0
      default:
        request.httpBody = payload
        let file = try await session.download(for: request).0
        answer = try Data(contentsOf: file)
        try FileManager.default.removeItem(at: file)
      }
      #expect(String(decoding: answer, as: UTF8.self) == "POST 300000", "\(kind)")
      #expect(site.server.requests.count == 1, "\(kind)")
    }
  }

  @Test("serves sixty-four parked requests, and other hosts meanwhile")
  func many() async throws {
    let site = try rotatedSite(pausing: 300)
    let other = try PinnedSite()
    let otherSession = other.session()
    let session = site.session()
    let url = try site.url()
    let otherURL = try other.url()
    let served = try await withThrowingTaskGroup(of: Int.self) { group in
      for _ in 0..<64 { group.addTask { try await session.data(from: url).0.count } }
      for _ in 0..<20 { _ = try await otherSession.data(from: otherURL) }
      return try await group.reduce(0) { $0 + ($1 > 0 ? 1 : 0) }
    }
    #expect(served == 64)
    #expect(other.server.requests.count == 20)
  }

  @Test("is refused for good where the refresh brings nothing: the second verdict is final")
  func final() async throws {
    let site = try PinnedSite()
    try site.server.replaceIdentity(site.rogueIdentity())
    site.judge.onRefresh { _ in }
    let refusal = await site.refusal(of: try site.url(), over: site.session())
    #expect(refusal?.rule == "leaf-pin")
    #expect(site.judge.refreshes.count == 1)
    #expect(await site.server.waitUntilIdle())
    #expect(site.server.counts.connections == 2)
    #expect(site.server.counts.applicationBytesReceived == 0)
  }

  @Test("goes on without a refresh that never ends")
  func endless() async throws {
    let isOver = Locked(false)
    defer { isOver.withLock { $0 = true } }
    let site = try PinnedSite(longestRefresh: 1)
    try site.server.replaceIdentity(site.rogueIdentity())
    // Outlives the transport's patience, and not the test: what waits on is a leak.
    site.judge.onRefresh { _ in _ = await eventually { isOver.withLock { $0 } } }
    #expect(await site.refusal(of: try site.url(), over: site.session())?.rule == "leaf-pin")
  }

  @Test(
    "ends as a refusal before its request's own time-out, on a redirect's next hop as well",
    arguments: [false, true])
  func shortTime(isRedirected: Bool) async throws {
    let isOver = Locked(false)
    defer { isOver.withLock { $0 = true } }
    let target = try PinnedSite()
    let location = "https://b.localhost:\(target.server.port)/"
    let site = try PinnedSite { _ in isRedirected ? .redirect(to: location) : .text("hello") }
    try (isRedirected ? target : site).server.replaceIdentity(site.rogueIdentity())
    site.judge.onRefresh { _ in _ = await eventually { isOver.withLock { $0 } } }
    // Set as a property: of an initializer's time-out Foundation takes no notice.
    var request = URLRequest(url: try site.url())
    request.timeoutInterval = 10
    #expect(await site.refusal(of: request, over: site.session())?.rule == "leaf-pin")
    #expect(site.judge.recorded.last?.rule == "leaf-pin")
  }

  @Test("waits as long as its own time lets it, beside one of its URL and session with less")
  func longTime() async throws {
    let site = try PinnedSite()
    let next = try site.rogueIdentity()
    try site.server.replaceIdentity(next)
    let isRefused = Locked(false)
    site.judge.onRefresh { judge in
      _ = await eventually { isRefused.withLock { $0 } }
      try? judge.pin(["localhost": next])
    }
    let configuration = URLSessionConfiguration.ephemeral
    configuration.timeoutIntervalForRequest = 4
    let session = site.session(configuration)
    var request = URLRequest(url: try site.url())
    request.timeoutInterval = 60
    async let served = session.data(for: request)
    let refusal = await site.refusal(of: URLRequest(url: try site.url()), over: session)
    #expect(refusal?.rule == "leaf-pin")
    isRefused.withLock { $0 = true }
    #expect(try await served.0.isEmpty == false)
  }

  @Test(
    "ends as a refusal if the other connection hangs, whether the registry does",
    arguments: [(true, true), (true, false), (false, true), (false, false)])
  func hangs(isOwnTime: Bool, hasNoAnswer: Bool) async throws {
    let isOver = Locked(false)
    defer { isOver.withLock { $0 = true } }
    let site = try PinnedSite(longestRefresh: hasNoAnswer ? 1 : 60)
    let silent = try LocalRawServer(.silent)
    let relay = try SwitchableRelay(to: .loopback(site.server.port))
    try site.server.replaceIdentity(site.rogueIdentity())
    site.judge.onRefresh { _ in
      relay.redirect(to: .loopback(silent.port))
      if hasNoAnswer { _ = await eventually { isOver.withLock { $0 } } }
    }
    var request = URLRequest(url: try site.url(port: relay.port))
    let configuration = URLSessionConfiguration.ephemeral
    if isOwnTime {
      request.timeoutInterval = 15
    } else {
      configuration.timeoutIntervalForRequest = 15
    }
    let refusal = await site.refusal(of: request, over: site.session(configuration))
    #expect(refusal?.rule == "leaf-pin")
    #expect(silent.connections > 0)
  }

  @Test(
    "ends with the first verdict if the other connection fails, unless newer pins have the key",
    arguments: [false, true])
  func hungUp(isPinned: Bool) async throws {
    let site = try PinnedSite()
    let next = try site.rogueIdentity()
    try site.server.replaceIdentity(next)
    site.judge.onRefresh { [server = site.server] judge in
      if isPinned { try? judge.pin(["localhost": next]) }
      server.stop()
    }
    let refusal = await site.refusal(of: try site.url(), over: site.session())
    #expect(refusal?.rule == (isPinned ? nil : "leaf-pin"))
    #expect(site.judge.recorded.map(\.rule) == (isPinned ? [] : ["leaf-pin"]))
  }

  @Test(
    "ends with the first verdict if the other connection shows the pinned certificate without its key",
    arguments: [false, true])
  func borrowed(isSession: Bool) async throws {
    let site = try PinnedSite()
    let borrower = try LocalRawServer(.sends(Self.flight(showing: site.identity)))
    let relay = try SwitchableRelay(to: .loopback(site.server.port))
    try site.server.replaceIdentity(site.rogueIdentity())
    site.judge.onRefresh { _ in relay.redirect(to: .loopback(borrower.port)) }
    let url = try site.url(port: relay.port)
    if isSession {
      #expect(await site.refusal(of: url, over: site.session())?.rule == "leaf-pin")
    } else {
      #expect(await site.transport.end(of: url) == .refused("leaf-pin"))
    }
    #expect(borrower.connections > 0)
    #expect(site.judge.recorded.map(\.rule) == ["leaf-pin"])
  }

  /// What anybody can send who saw a server's certificate: ServerHello, Certificate and ServerHelloDone of TLS 1.2 (RFC 5246
  /// section 7.4), for ECDHE with an ECDSA certificate, without the signed key exchange between them.
  private static func flight(showing identity: ServerIdentity) -> [UInt8] {
    func counted(_ bytes: [UInt8]) -> [UInt8] {
      [UInt8(bytes.count >> 16), UInt8(bytes.count >> 8 & 255), UInt8(bytes.count & 255)] + bytes
    }
    func record(_ type: UInt8, _ body: [UInt8]) -> [UInt8] {
      let message = [type] + counted(body)
      return [22, 3, 3, UInt8(message.count >> 8), UInt8(message.count & 255)] + message
    }
    let chain = ([identity.leaf] + identity.intermediates).flatMap { counted($0.der) }
    let random = [UInt8](repeating: 7, count: 32)
    let hello = [3, 3] + random + [0, 0xc0, 0x2b, 0, 0, 5, 0xff, 1, 0, 1, 0]
    return record(2, hello) + record(11, counted(chain)) + record(14, [])
  }

  @Test(
    "tells the first verdict also if the other connection passes, unless newer pins have the key",
    arguments: [false, true])
  func letThrough(isPinned: Bool) async throws {
    let site = try PinnedSite()
    let other = try site.rogueIdentity()
    try site.server.replaceIdentity(other)
    site.judge.onRefresh { [server = site.server, own = site.identity] judge in
      if isPinned { try? judge.pin(["localhost": own, "**.localhost": other]) }
      try? server.replaceIdentity(own)
    }
    _ = try await site.session().data(from: site.url())
    #expect(site.judge.recorded.map(\.rule) == (isPinned ? [] : ["leaf-pin"]) + ["matched"])
    #expect(site.server.requests.count == 1)
  }

  @Test(
    "tells the first verdict also if the other connection is refused for something else",
    arguments: ["chain", "leaf-pin", nil])
  func refusedForAnother(fault: String?) async throws {
    let site = try PinnedSite()
    let first = try site.rogueIdentity()
    try site.server.replaceIdentity(first)
    // Of no authority; of the same one; the same key again.
    let second =
      switch fault {
      case "chain":
        try CertificateAuthority.makeRoot(name: "Other root").issue(names: PinnedSite.names)
      case nil: first
      default: try site.rogueIdentity()
      }
    site.judge.onRefresh { [server = site.server] _ in try? server.replaceIdentity(second) }
    let (later, isToldOnce) = (fault ?? "leaf-pin", fault == nil)
    let refusal = await site.refusal(of: try site.url(), over: site.session())
    #expect(refusal?.rule == later)
    #expect(site.judge.recorded.map(\.rule) == ["leaf-pin"] + (isToldOnce ? [] : [later]))
  }

  @Test("can be cancelled while parked, is told all the same, and leaves the session usable")
  func cancelled() async throws {
    let site = try PinnedSite()
    let next = try site.rogueIdentity()
    try site.server.replaceIdentity(next)
    site.judge.onRefresh { _ in
      // why: keeps the request parked until it is cancelled.
      try? await Task.sleep(nanoseconds: 1_000_000_000)
    }
    let session = site.session()
    let url = try site.url()
    let task = Task { try await session.data(from: url) }
    #expect(await eventually { !site.judge.refreshes.isEmpty })
    task.cancel()
    await #expect(throws: (any Error).self) { try await task.value }
    #expect(await eventually { site.judge.recorded.map(\.rule) == ["leaf-pin"] })
    try site.judge.pin(["localhost": next])
    _ = try await session.data(from: url)
  }

  @Test("survives a session that is invalidated while requests are parked")
  func invalidated() async throws {
    let site = try PinnedSite()
    try site.server.replaceIdentity(site.rogueIdentity())
    site.judge.onRefresh { _ in
      // why: the resume comes after the session is gone.
      try? await Task.sleep(nanoseconds: 300_000_000)
    }
    let session = site.session()
    let url = try site.url()
    let task = Task { try await session.data(from: url) }
    #expect(await eventually { !site.judge.refreshes.isEmpty })
    session.invalidateAndCancel()
    await #expect(throws: (any Error).self) { try await task.value }
    // why: lets the late resume run into the vanished session.
    try await Task.sleep(nanoseconds: 500_000_000)
    let other = try PinnedSite()
    _ = try await other.session().data(from: other.url())
  }
}
