import FaultLab
import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@Suite("A proxy that is asked over TLS proves itself before it is asked")
struct SecuredTunnelTests {
  private let authority: CertificateAuthority
  private let anchors: ChainValidator
  private let proxyIdentity: ServerIdentity
  private let server: LocalTLSServer
  private let leaf: SPKIPin

  init() throws {
    authority = try .makeRoot(name: "Tunnel Root")
    anchors = try ChainValidator(anchors: [authority.root])
    proxyIdentity = try authority.issue(names: ["localhost"])
    let identity = try authority.issue(names: ["site.test"])
    leaf = try SPKIPin(certificateDER: identity.leaf.der)
    server = try LocalTLSServer(identity: identity) { _ in .text("never asked") }
  }

  private func proxy(
    showing identity: ServerIdentity, admitting clients: ChainValidator? = nil
  ) throws -> InterceptingProxy {
    let port = server.port
    return try InterceptingProxy.tunnelling(showing: identity, admitting: clients) { _, _ in
      .loopback(port)
    }
  }

  private func look(
    _ proxy: InterceptingProxy, _ trust: ProxyTrust?
  ) async throws -> ProbeFinding { try await look(port: proxy.port, trust) }

  private func look(
    port: UInt16, _ trust: ProxyTrust?, total: Int64 = 20_000
  ) async throws -> ProbeFinding {
    let probe = try TLSProbe(
      anchors: anchors,
      resolver: NameResolver { _, port in .success([.loopback(port)]) })
    let findings = try await probe.survey(
      HostName("site.test"), port: 443,
      from: [.tunnel(host: "localhost", port: port, trust: trust)],
      limits: ProbeLimits(total: total), trusting: anchors, cache: VerdictCache())
    return try #require(findings.first)
  }

  private func pin(_ identity: ServerIdentity) throws -> SPKIPin {
    try SPKIPin(certificateDER: identity.leaf.der)
  }

  private func sees(_ finding: ProbeFinding) -> Bool {
    if case .success(.trusted(let path)) = finding.outcome {
      path.first?.pin == leaf
    } else {
      false
    }
  }

  private func isUntrusted(_ finding: ProbeFinding) -> Bool {
    if case .failure(.proxy(.untrusted)) = finding.outcome {
      finding.blame == .proxy
    } else {
      false
    }
  }

  @Test("its pin is right: the endpoint is seen through TLS inside of TLS")
  func rightPin() async throws {
    let proxy = try proxy(showing: proxyIdentity)
    let trust = try ProxyTrust(pins: [pin(proxyIdentity)], anchors: nil, identity: nil)
    for _ in 0..<5 { #expect(try await sees(look(proxy, trust))) }
    #expect(proxy.tunnels.map(\.host) == Array(repeating: "site.test", count: 5))
  }

  @Test("another key is nobody who is asked for anything, however valid its certificate")
  func wrongPin() async throws {
    let other = try proxy(showing: authority.issue(names: ["localhost"]))
    let trust = try ProxyTrust(
      pins: [pin(proxyIdentity)], anchors: { [anchors] in anchors }, identity: nil)
    #expect(try await isUntrusted(look(other, trust)))
    #expect(other.tunnels.isEmpty)
  }

  @Test("by its chain: of the anchors and for its name, or nothing is asked of it")
  func chains() async throws {
    let trust = try ProxyTrust(pins: [], anchors: { [anchors] in anchors }, identity: nil)
    #expect(try await sees(look(proxy(showing: proxyIdentity), trust)))
    let strange = try CertificateAuthority.makeRoot(name: "Strange").issue(names: ["localhost"])
    for identity in [strange, try authority.issue(names: ["proxy.test"])] {
      let other = try proxy(showing: identity)
      #expect(try await isUntrusted(look(other, trust)))
      #expect(other.tunnels.isEmpty)
    }
  }

  @Test("a proxy that admits by certificate is shown it; without one nothing is seen")
  func clientCertificate() async throws {
    let clients = try CertificateAuthority.makeRoot(name: "Clients")
    let proxy = try proxy(
      showing: proxyIdentity, admitting: ChainValidator(anchors: [clients.root]))
    let pins: Set<SPKIPin> = [try pin(proxyIdentity)]
    let shown = try ProxyTrust(
      pins: pins, anchors: nil, identity: clients.issue(names: ["server.test"]))
    #expect(try await sees(look(proxy, shown)))
    let silent = try ProxyTrust(pins: pins, anchors: nil, identity: nil)
    let finding = try await look(proxy, silent)
    #expect(!sees(finding))
    #expect(finding.blame == .proxy)
  }

  @Test("clear text where TLS should be, and TLS where clear text should be, are the proxy's fault")
  func mixedUp() async throws {
    let clear = try InterceptingProxy.tunnelling()
    let trust = try ProxyTrust(pins: [pin(proxyIdentity)], anchors: nil, identity: nil)
    #expect(try await look(clear, trust).blame == .proxy)
    #expect(try await look(proxy(showing: proxyIdentity), nil).blame == .proxy)
  }

  @Test("a proxy that asks for handshakes without end is not listened to")
  func helloRequests() async throws {
    let endless = try LocalRawServer(.sends([0x16, 3, 3, 0, 4, 0, 0, 0, 0]))
    let trust = try ProxyTrust(pins: [pin(proxyIdentity)], anchors: nil, identity: nil)
    #expect(try await isUntrusted(look(port: endless.port, trust)))
  }

  @Test("a proxy that changes its key without end is not listened to")
  func keyUpdates() async throws {
    let endless = try LocalTLSServer(identity: proxyIdentity) { _ in
      HTTPResponse(delivery: .keyUpdates(.max))
    }
    let trust = try ProxyTrust(pins: [pin(proxyIdentity)], anchors: nil, identity: nil)
    let finding = try await look(port: endless.port, trust, total: 2000)
    guard case .failure = finding.outcome else {
      Issue.record("\(finding.outcome)")
      return
    }
  }

  @Test("a proxy that cannot reach the server is well; one that answers nothing may wait for it")
  func blame() async throws {
    let nowhere = try InterceptingProxy.tunnelling(showing: proxyIdentity) { _, _ in nil }
    let trust = try ProxyTrust(pins: [pin(proxyIdentity)], anchors: nil, identity: nil)
    let finding = try await look(nowhere, trust)
    #expect(finding.outcome == .failure(.proxy(.refused(status: 502))))
    #expect(finding.blame == .server)
    // Many say that a tunnel is there before it is.
    let hole = try LocalRawServer(.silent)
    let empty = try InterceptingProxy.tunnelling(showing: proxyIdentity) { _, _ in
      .loopback(hole.port)
    }
    let unanswered = try await look(port: empty.port, trust, total: 700)
    #expect(unanswered.outcome == .failure(.timeout(.handshake)))
    #expect(unanswered.blame == .proxyOrServer)
  }
}
