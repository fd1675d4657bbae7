import Foundation
import SslPinning
import SslPinningRules
import SslPinningTesting
import TLSTools
import TestSupport
import Testing

@Suite("Verdicts for other stacks")
struct PresentedChainTests {
  private let site: LiveSite

  init() throws { site = try LiveSite() }

  @Test("hold a presented chain to the same rules, and tell of it")
  func rules() async throws {
    let registry = try site.registry()
    let client = try await site.client(registry)
    let verdicts = VerdictRecorder(client)
    let chain = site.identity.presented
    #expect(client.evaluate(presented: chain, host: "localhost").decision == .accept)
    #expect(client.evaluate(presented: chain, host: "LOCALHOST.").decision == .accept)
    let other = try site.authority.issue(names: ["localhost"])
    let stranger = try CertificateAuthority.makeRoot(name: "Stranger").issue(names: ["localhost"])
    for (presented, host, rule) in [
      (other.presented, "localhost", "leaf-pin"),
      (chain, "a.localhost", "unlisted-host"), (chain, "c.localhost", "host-name"),
      (stranger.presented, "localhost", "chain"), ([], "localhost", "chain"),
      ([Data([1, 2, 3])], "localhost", "chain"), (chain, "not a host", "unreadable-host"),
    ] {
      let verdict = client.evaluate(presented: presented, host: host)
      #expect(verdict.decision == .refuse)
      #expect(verdict.rule == rule)
      #expect(await verdicts.first { $0 == verdict } != nil)
    }
  }

  @Test("a mismatch fetches newer pins for the next handshake")
  func refresh() async throws {
    let registry = try site.registry()
    let client = try await site.client(registry)
    let next = try site.authority.issue(names: ["localhost"])
    let pin = try SPKIPin(certificateDER: next.leaf.der).base64
    try registry.publish(["localhost": [pin]], at: site.clock.now)
    let chain = next.presented
    #expect(client.evaluate(presented: chain, host: "localhost").rule == "leaf-pin")
    #expect(await eventually { client.registryStamp.version?.version == 2 })
    #expect(client.evaluate(presented: chain, host: "localhost").decision == .accept)
    #expect(registry.requests == 2)
  }
}

extension ServerIdentity {
  /// What a server sends.
  fileprivate var presented: [Data] { ([leaf] + intermediates).map { Data($0.der) } }
}
