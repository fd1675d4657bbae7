import FaultLab
import Foundation
import FoundationNetworking
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@Suite("A pinned URLSession")
struct PinnedSessionTests {
  @Test("is served by the pinned server, by name, by subdomain and by address")
  func served() async throws {
    let site = try PinnedSite()
    let session = site.session()
    for host in ["localhost", "LOCALHOST", "a.localhost", "127.0.0.1"] {
      let (body, response) = try await session.data(from: site.url(host: host))
      #expect(String(decoding: body, as: UTF8.self) == "hello")
      #expect((response as? HTTPURLResponse)?.statusCode == 200)
    }
    #expect(site.judge.recorded.allSatisfy { $0.outcome == .matched })
  }

  @Test("refuses a key that is not pinned before a byte of the request leaves, and says why")
  func mismatch() async throws {
    let site = try PinnedSite()
    let rogue = try site.rogueIdentity()
    let attacker = try LocalTLSServer(identity: rogue) { _ in .text("gotcha") }
    let refusal = try #require(
      await site.refusal(of: site.url(port: attacker.port), over: site.session()))
    #expect(refusal.outcome == .mismatch(.leaf))
    #expect(refusal.decision == .refuse)
    #expect(refusal.host == "localhost")
    #expect(refusal.presented.first == (try SPKIPin(certificateDER: rogue.leaf.der)))
    #expect(
      refusal.expectedLeaf.map(\.spki) == [try SPKIPin(certificateDER: site.identity.leaf.der)])
    #expect(await attacker.waitUntilIdle())
    #expect(attacker.counts.applicationBytesReceived == 0)
    #expect(attacker.counts.connections > 0)
  }

  enum BadChain: CaseIterable, Sendable {
    case otherCA, expired, notYetValid, wrongName, selfSigned
  }

  @Test(
    "judges the chain first: a pinned key under a bad chain is refused",
    arguments: BadChain.allCases)
  func chain(_ bad: BadChain) async throws {
    let site = try PinnedSite()
    let now = Int64(Date().timeIntervalSince1970)
    let key = site.identity.key
    let identity: ServerIdentity =
      switch bad {
      case .otherCA:
        try CertificateAuthority.makeRoot(name: "Other").issue(names: PinnedSite.names, key: key)
      case .expired:
        try site.authority.issue(
          names: PinnedSite.names, key: key,
          validity: Validity(notBefore: now - 9_000, notAfter: now - 100))
      case .notYetValid:
        try site.authority.issue(
          names: PinnedSite.names, key: key,
          validity: Validity(notBefore: now + 90_000, notAfter: now + 900_000))
      case .wrongName: try site.authority.issue(names: ["other.example"], key: key)
      case .selfSigned: try ServerIdentity.selfSigned(names: PinnedSite.names, key: key)
      }
    let server = try LocalTLSServer(identity: identity) { _ in .text("bad") }
    let refusal = try #require(
      await site.refusal(of: site.url(port: server.port), over: site.session()))
    guard case .chainRejected(let fault) = refusal.outcome else {
      Issue.record("\(refusal)")
      return
    }
    #expect((fault == .wrongHost) == (bad == .wrongName))
    #expect(await server.waitUntilIdle())
    #expect(server.counts.applicationBytesReceived == 0)
  }

  @Test("with pinned keys only takes the pinned key whatever the certificate says, and no other")
  func pinnedKeysOnly() async throws {
    let site = try PinnedSite(trust: .pinnedKeysOnly)
    let session = site.session()
    let own = try ServerIdentity.selfSigned(names: ["other.example"], key: site.identity.key)
    let device = try LocalTLSServer(identity: own) { _ in .text("device") }
    let (body, _) = try await session.data(from: site.url(port: device.port))
    #expect(String(decoding: body, as: UTF8.self) == "device")
    let stranger = try LocalTLSServer(identity: site.rogueIdentity()) { _ in .text("stranger") }
    let refusal = await site.refusal(of: try site.url(port: stranger.port), over: session)
    #expect(refusal?.outcome == .mismatch(.leaf))
    #expect(await stranger.waitUntilIdle())
    #expect(stranger.counts.applicationBytesReceived == 0)
  }

  @Test("trusts no CA where the anchors are an empty list")
  func noAnchors() async throws {
    let site = try PinnedSite(trust: .anchors([]))
    let refusal = await site.refusal(of: try site.url(), over: site.session())
    guard case .chainRejected(.untrusted) = refusal?.outcome else {
      Issue.record("\(String(describing: refusal))")
      return
    }
  }

  @Test("does not take the test CA for one of the system's")
  func systemTrust() async throws {
    let site = try PinnedSite(trust: .system)
    let refusal = await site.refusal(of: try site.url(), over: site.session())
    #expect(refusal?.rule == "chain")
    #expect(refusal?.hint?.contains(".anchors") == true)
  }

  @Test(
    "refuses a host that is on no list, and takes it under the chain alone where the app says so")
  func unlisted() async throws {
    let site = try PinnedSite()
    try site.judge.pin(["other.localhost": site.identity])
    #expect(
      await site.refusal(of: try site.url(), over: site.session())?.outcome == .unlisted)
    #expect(site.server.counts.applicationBytesReceived == 0)
    try site.judge.pin(["other.localhost": site.identity], unlisted: .systemTrust)
    _ = try await site.session().data(from: site.url())
  }

  @Test("refuses a denied key although it is pinned")
  func denied() async throws {
    let site = try PinnedSite()
    try site.judge.pin(["localhost": site.identity], denied: [site.identity])
    let refusal = await site.refusal(of: try site.url(), over: site.session())
    #expect(refusal?.rule == "denied-key")
  }

  @Test("refuses clear text before anything is dialled", arguments: ["http", "ws", "ftp"])
  func clearText(scheme: String) async throws {
    let site = try PinnedSite()
    let plain = try LocalHTTPServer { _ in .text("clear") }
    let url = try #require(URL(string: "\(scheme)://localhost:\(plain.port)/"))
    let refusal = await site.refusal(of: url, over: site.session())
    #expect(refusal?.outcome == .clearText(scheme: scheme))
    #expect(plain.counts.connections == 0)
  }

  @Test("never resumes a TLS session, which would skip the verdict")
  func resumption() async throws {
    let site = try PinnedSite { _ in
      HTTPResponse(body: [1], closesConnection: true)
    }
    let session = site.session()
    for _ in 0..<3 { _ = try await session.data(from: site.url()) }
    #expect(site.server.counts.handshakesCompleted == 3)
    #expect(site.server.counts.handshakesResumed == 0)
  }

  @Test("gives forty concurrent refusals forty verdicts of their own")
  func manyRefusals() async throws {
    let site = try PinnedSite()
    let attacker = try LocalTLSServer(identity: site.rogueIdentity()) { _ in .text("gotcha") }
    let session = site.session()
    let hosts = (0..<40).map { "h\($0).localhost" }
    let found = try await withThrowingTaskGroup(of: (String, String?).self) { group in
      for host in hosts {
        let url = try site.url(host: host, port: attacker.port)
        group.addTask { (host, await site.refusal(of: url, over: session)?.host) }
      }
      return try await group.reduce(into: [(String, String?)]()) { $0.append($1) }
    }
    #expect(found.count == 40)
    #expect(found.allSatisfy { $0.0 == $0.1 })
  }

  @Test("tells refusals from being offline, from a time-out and from a cancel")
  func otherFailures() async throws {
    let site = try PinnedSite { _ in HTTPResponse(body: [1], delayMilliseconds: 30_000) }
    let session = site.session()
    let closed = try ClosedPort()
    await #expect(throws: URLError.self) {
      try await session.data(from: site.url(port: closed.port))
    }
    #expect(await site.refusal(of: try site.url(port: closed.port), over: session) == nil)
    var slow = URLRequest(url: try site.url())
    slow.timeoutInterval = 1
    do {
      _ = try await session.data(for: slow)
      Issue.record("served")
    } catch {
      #expect((error as? URLError)?.code == .timedOut)
      #expect(site.transport.refusal(for: error) == nil)
    }
    let url = try site.url()
    let task = Task { try await session.data(from: url) }
    #expect(await eventually { site.server.requests.count == 2 })
    task.cancel()
    do {
      _ = try await task.value
      Issue.record("served")
    } catch {
      #expect((error as? URLError)?.code == .cancelled || error is CancellationError)
      #expect(site.transport.refusal(for: error) == nil)
    }
  }

  @Test("lets go of everything once it is invalidated")
  func lifetime() async throws {
    weak var weakJudge: ScriptedJudge?
    do {
      let site = try PinnedSite()
      weakJudge = site.judge
      let session = site.session()
      _ = try await session.data(from: site.url())
      session.finishTasksAndInvalidate()
    }
    let released = Weak(weakJudge)
    #expect(await eventually { released.isGone })
  }
}

/// A reference that does not keep its object.
private final class Weak: @unchecked Sendable {
  private weak var object: AnyObject?

  init(_ object: AnyObject?) { self.object = object }

  var isGone: Bool { object == nil }
}
