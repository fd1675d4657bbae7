import FaultLab
import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools
import Testing

/// The same as sessions do (``OtherPathTests``, ``JudgedTimeTests``), by code of their own.
@Suite("Requests without a session: which path, and at which time")
struct FastPathTests {
  private static let day: Int64 = 86_400

  @Test("are served under the pin of any valid path, and under no other CA's")
  func pinned() async throws {
    let site = try CrossSigned()
    let server = try LocalTLSServer(identity: site.identity()) { _ in .text("hello") }
    let url = try #require(URL(string: "https://localhost:\(server.port)/"))
    func end(under policy: PinningPolicy) async throws -> End {
      let judge = try ScriptedJudge([:], trust: site.anchors())
      judge.apply(policy)
      return await (try PinnedTransport(trust: site.anchors(), judge: judge, longestRefresh: 60))
        .end(of: url)
    }
    for root in site.roots {
      let policy = try site.policy(ca: [root], trust: site.anchors())
      #expect(try await end(under: policy) == .served(200, "hello"))
    }
    for denied in site.roots.map(\.certificate) {
      let policy = try site.policy(denied: [denied], trust: site.anchors())
      #expect(try await end(under: policy) == .served(200, "hello"))
    }
    let stranger = try CertificateAuthority.makeRoot(name: "Stranger")
    let strange = try site.policy(ca: [stranger], trust: site.anchors())
    #expect(try await end(under: strange) == .refused("ca-pin"))
    let none = try site.policy(denied: site.roots.map(\.certificate), trust: site.anchors())
    #expect(try await end(under: none) == .refused("denied-key"))
    #expect(server.requests.count == 4)
  }

  @Test("keep an open connection when the pins change to the other path, and not to none")
  func openConnection() async throws {
    let site = try CrossSigned()
    let server = try LocalTLSServer(identity: site.identity()) { _ in .text("hello") }
    let url = try #require(URL(string: "https://localhost:\(server.port)/"))
    let judge = try ScriptedJudge([:], trust: site.anchors())
    let transport = try PinnedTransport(trust: site.anchors(), judge: judge, longestRefresh: 60)
    for index in [0, 1, 0] {
      judge.apply(try site.policy(ca: [site.roots[index]], trust: site.anchors()))
      #expect(await transport.end(of: url) == .served(200, "hello"))
    }
    #expect(server.counts.connections == 1)
    judge.apply(try site.policy(denied: site.roots.map(\.certificate), trust: site.anchors()))
    #expect(await transport.end(of: url) == .refused("denied-key"))
    #expect(server.requests.count == 3)
  }

  @Test(
    "hold chains to the judge's time, whatever the machine's clock says",
    arguments: [
      ("400 days back", -400, false), ("today", 0, true), ("the last day", 89, true),
      ("91 days on", 91, false),
    ])
  func time(name: String, days: Int64, isServed: Bool) async throws {
    let site = try PinnedSite()
    site.judge.setTime(TrustTime(clock: Int64(Date().timeIntervalSince1970) + days * Self.day))
    let end = await site.transport.end(of: try site.url())
    #expect(end == (isServed ? .served(200, "hello") : .refused("chain")), "\(name)")
    #expect(await site.server.waitUntilIdle())
    #expect(site.server.requests.count == (isServed ? 1 : 0))
  }

  @Test("judge an open connection's chain again at the time of a change")
  func expired() async throws {
    let site = try PinnedSite()
    let url = try site.url()
    #expect(await site.transport.end(of: url) == .served(200, "hello"))
    site.judge.setTime(TrustTime(clock: Int64(Date().timeIntervalSince1970) + 91 * Self.day))
    try site.judge.pin(["localhost": site.identity])
    #expect(await site.transport.end(of: url) == .refused("chain"))
    #expect(site.server.requests.count == 1)
  }
}
