import FaultLab
import Foundation
import FoundationNetworking
import SslPinningPlatform
import SslPinningRules
import TLSTools
import Testing

@Suite("Sessions to a server with more than one path")
struct OtherPathTests {
  private let site: CrossSigned
  private let server: LocalTLSServer
  private let judge: ScriptedJudge
  private let transport: PinnedTransport

  init() throws {
    site = try CrossSigned()
    server = try LocalTLSServer(identity: site.identity()) { _ in .text("hello") }
    judge = try ScriptedJudge([:], trust: site.anchors())
    transport = try PinnedTransport(
      trust: site.anchors(), judge: judge, longestRefresh: 60)
  }

  private func refusal(over session: URLSession) async throws -> PinEvaluation? {
    let url = try #require(URL(string: "https://localhost:\(server.port)/"))
    do {
      #expect(try await session.data(from: url).0 == Data("hello".utf8))
      return nil
    } catch {
      let refusal = transport.refusal(for: error)
      #expect(refusal != nil, "\(error)")
      return refusal
    }
  }

  @Test("are served under the pin of either path, and under no other CA's")
  func pinned() async throws {
    for root in site.roots {
      judge.apply(try site.policy(ca: [root], trust: site.anchors()))
      #expect(try await refusal(over: transport.makeSession(configuration: .ephemeral)) == nil)
    }
    #expect(judge.recorded.map(\.outcome) == [.matched, .matched])
    let served = server.requests.count
    let stranger = try CertificateAuthority.makeRoot(name: "Stranger")
    judge.apply(try site.policy(ca: [stranger], trust: site.anchors()))
    let refusal = try await refusal(over: transport.makeSession(configuration: .ephemeral))
    #expect(refusal?.outcome == .mismatch(.ca))
    #expect(await server.waitUntilIdle())
    #expect(server.requests.count == served)
  }

  @Test("are served past either denied root, and not past both")
  func denied() async throws {
    let roots = site.roots.map(\.certificate)
    for (denied, isServed) in [([roots[0]], true), ([roots[1]], true), (roots, false)] {
      judge.apply(try site.policy(denied: denied, trust: site.anchors()))
      let refusal = try await refusal(over: transport.makeSession(configuration: .ephemeral))
      #expect((refusal == nil) == isServed)
      if !isServed { #expect(refusal?.rule == "denied-key") }
    }
  }

  @Test("keep an open connection when the pins change to the other path, and not to none")
  func openConnection() async throws {
    let session = transport.makeSession(configuration: .ephemeral)
    for index in [0, 1, 0] {
      judge.apply(try site.policy(ca: [site.roots[index]], trust: site.anchors()))
      #expect(try await refusal(over: session) == nil)
    }
    for index in [0, 1] {
      judge.apply(
        try site.policy(denied: [site.roots[index].certificate], trust: site.anchors()))
      #expect(try await refusal(over: session) == nil)
    }
    #expect(server.counts.connections == 1)
    #expect(server.requests.count == 5)
    judge.apply(try site.policy(denied: site.roots.map(\.certificate), trust: site.anchors()))
    #expect(try await refusal(over: session)?.rule == "denied-key")
    #expect(server.requests.count == 5)
  }

  @Test("judge an open connection's chain again at the time of the change")
  func expired() async throws {
    let session = transport.makeSession(configuration: .ephemeral)
    judge.apply(try site.policy(trust: site.anchors()))
    #expect(try await refusal(over: session) == nil)
    judge.setTime(TrustTime(clock: Int64(Date().timeIntervalSince1970) + 91 * 86_400))
    judge.apply(try site.policy(trust: site.anchors()))
    #expect(try await refusal(over: session)?.rule == "chain")
    #expect(server.requests.count == 1)
  }
}
