import FaultLab
import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

/// OpenSSL takes one issuer of each name and does not come back. A change of roots must not depend on which.
@Suite("Chains of which OpenSSL takes a path that leads nowhere")
struct ValidationDeadEndTests {
  private static let day: Int64 = 86_400
  private let now = Int64(Date().timeIntervalSince1970)

  /// One issuer under two roots; the certificates of the first or its root are past, or not there.
  private func site(
    rootValidity: Validity = .daysFromNow(3650), issuerValidity: Validity = .daysFromNow(1000)
  ) throws -> (roots: [Certificate], issuers: [Certificate], leaf: ServerIdentity) {
    let key = try PrivateKey.generate(.p256)
    let roots = [
      try CertificateAuthority.makeRoot(name: "Old", validity: rootValidity),
      try CertificateAuthority.makeRoot(name: "New"),
    ]
    let issuers = try zip(roots, [issuerValidity, .daysFromNow(1000)]).map { root, validity in
      try root.issueIntermediate(name: "Issuer", key: key, validity: validity)
    }
    let leaf = try issuers[1].issue(names: CrossSigned.names)
    return (roots.map(\.certificate), issuers.map(\.certificate), leaf)
  }

  /// Where the path of a chain ends, by a client and by a probe.
  private func end(
    of presented: [Certificate], anchors: [Certificate], at time: Int64? = nil
  ) throws -> Certificate? {
    let validator = try ChainValidator(trust: .anchors(anchors.map(\.der)))
    let presented = presented.map(\.der)
    let evidence = validator.evidence(presented: presented, host: .example, at: time)
    let examined = validator.examine(presented, at: time)
    guard case .success(let chain) = evidence.validation else {
      #expect(examined.path == nil)
      return nil
    }
    #expect(try examined.path?.map { try SPKIPin(certificateDER: $0) } == chain.path)
    return try anchors.first { try SPKIPin(certificateDER: $0.der) == chain.path.last }
  }

  @Test("are valid under the root that is known, or still runs, whichever was sent first")
  func otherRoot() throws {
    let past = Validity(notBefore: now - 900 * Self.day, notAfter: now - Self.day)
    for (site, anchors) in [(try site(), [1]), (try site(rootValidity: past), [0, 1])] {
      for order in [[0, 1], [1, 0]] {
        let sent = [site.leaf.leaf] + order.map { site.issuers[$0] }
        #expect(try end(of: sent, anchors: anchors.map { site.roots[$0] }) == site.roots[1])
      }
      // Nothing that was merely sent is trusted.
      let sent = [site.leaf.leaf, site.issuers[0], site.roots[0]]
      #expect(try end(of: sent, anchors: [site.roots[1]]) == nil)
    }
  }

  @Test("are valid under either of two own roots of one name, where nothing else names the key")
  func oneName() async throws {
    let tool = try OpenSSLCommand()
    var roots: [Certificate] = []
    var leaves: [Certificate] = []
    try tool.write(
      Array("subjectAltName=DNS:www.example.com\nauthorityKeyIdentifier=none".utf8), to: "x")
    for name in ["old", "new"] {
      let root = try await tool.make(
        "\(name).pem",
        [
          "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "9", "-subj",
          "/CN=Company Root",
          "-keyout", "\(name).key",
        ])
      _ = try await tool.make(
        "csr", ["req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=s", "-keyout", "leaf.key"])
      let leaf = try await tool.make(
        "leaf.pem",
        [
          "x509", "-req", "-in", "csr", "-CA", "\(name).pem", "-CAkey", "\(name).key", "-days", "9",
          "-CAcreateserial", "-extfile", "x",
        ])
      roots += try Certificate.certificates(inPEM: String(decoding: root, as: UTF8.self))
      leaves += try Certificate.certificates(inPEM: String(decoding: leaf, as: UTF8.self))
    }
    for anchors in [roots, roots.reversed()] {
      for (leaf, root) in zip(leaves, roots) {
        #expect(try end(of: [leaf], anchors: anchors) == root)
      }
    }
    #expect(try end(of: [leaves[1]], anchors: [roots[0]]) == nil)
  }

  @Test("hold at the floor, though a clock that is behind leads to an issuer of the past")
  func clockBehind() throws {
    // By the device's clock the old issuer still runs, and the new one and the leaf have yet to begin.
    let past = Validity(notBefore: now - 900 * Self.day, notAfter: now - Self.day)
    let site = try site(issuerValidity: past)
    let trust = TrustMode.anchors([site.roots[1].der])
    let judge = try ScriptedJudge(["www.example.com": site.leaf], trust: trust)
    let sent = [site.leaf.leaf, site.issuers[0], site.issuers[1]].map(\.der)
    for (clock, floor, isValid) in [
      (-400, 0, true), (0, -400, true), (0, 0, true), (-400, -390, false),
    ] as [(Int64, Int64, Bool)] {
      judge.setTime(
        TrustTime(clock: now + clock * Self.day, floor: now + floor * Self.day))
      let verdict = try ChainValidator(trust: trust)
        .chainVerdict(presented: sent, host: .example, judge: judge)
      #expect((verdict.evaluation.decision == .accept) == isValid, "\(clock) \(floor)")
    }
  }

  @Test("are valid in a handshake, and where a registry is fetched")
  func sockets() async throws {
    let past = Validity(notBefore: now - 900 * Self.day, notAfter: now - Self.day)
    let site = try site(rootValidity: past)
    let server = try LocalTLSServer(
      identity: try ServerIdentity(
        certificates: [site.leaf.leaf] + site.issuers, key: site.leaf.key)
    ) { _ in .text("hello") }
    let trust = TrustMode.anchors(site.roots.map(\.der))
    let transport = try PinnedTransport(
      trust: trust, judge: try ScriptedJudge(["localhost": site.leaf], trust: trust))
    let url = "https://localhost:\(server.port)/"
    let session = transport.makeSession(configuration: .ephemeral)
    let (data, _) = try await session.data(from: try #require(URL(string: url)))
    #expect(data == Data("hello".utf8))
    let fetched = try await DocumentFetcher(trust: trust).fetch(
      DocumentRequest(url: try RegistryURL(url), maximumBytes: 100, timeout: 60))
    #expect(fetched == .fresh(Array("hello".utf8), etag: nil))
  }
}
