import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@Suite("Chains with more than one path")
struct ValidationPathSearchTests {
  private static let day: Int64 = 86_400
  private let now = Int64(Date().timeIntervalSince1970)

  /// The verdict, and every path that was held against the policy.
  private func judge(
    _ policy: PinningPolicy, presented: [[UInt8]], system: SystemAnchors? = nil,
    host: HostName = .example, at time: Int64? = nil
  ) throws -> (PinEvaluation, asked: [ChainEvidence]) {
    let validator =
      if let system {
        try ChainValidator(trust: policy.trust, system: system)
      } else {
        try ChainValidator(trust: policy.trust)
      }
    var asked: [ChainEvidence] = []
    let evaluation = validator.evaluate(presented: presented, host: host, at: time) {
      asked.append($0)
      return policy.evaluate($0, host: host, at: time ?? now)
    }
    return (evaluation, asked)
  }

  @Test("are accepted by the pin of any valid path, whichever OpenSSL finds first")
  func bothDirections() throws {
    let site = try CrossSigned()
    var alone = 0
    for order in [[0, 1], [1, 0]] {
      for anchors in [[0, 1], [1, 0]] {
        for pinned in [0, 1] {
          let policy = try site.policy(ca: [site.roots[pinned]], trust: site.anchors(anchors))
          let (verdict, asked) = try judge(policy, presented: site.sent(under: order))
          #expect(verdict.outcome == .matched)
          let end = try #require(asked.last).validation.get().path.last
          #expect(end == (try SPKIPin(certificateDER: site.roots[pinned].certificate.der)))
          if asked.count == 1 { alone += 1 }
        }
      }
    }
    // One path alone serves one of the two pins.
    #expect(alone == 4)
  }

  @Test("are accepted by a whole certificate that stands on another path, and under match: any")
  func otherLists() throws {
    let site = try CrossSigned()
    let stranger = try CertificateAuthority.makeRoot(name: "Stranger")
    let trust = site.anchors()
    for root in site.roots {
      let whole = try site.policy(whole: [root.certificate], trust: trust)
      #expect(try judge(whole, presented: site.sent()).0.outcome == .matched)
      let any = try site.policy(
        ca: [root], leaf: [stranger.certificate], match: .any, trust: trust)
      #expect(try judge(any, presented: site.sent()).0.outcome == .matched)
      let all = try site.policy(ca: [root], leaf: [stranger.certificate], trust: trust)
      let (verdict, asked) = try judge(all, presented: site.sent())
      #expect(verdict.outcome == .mismatch(.leaf))
      #expect(asked.count == 1)
    }
  }

  @Test("are looked for under report-only as well: nobody is told of a pin that is there")
  func reportOnly() throws {
    let site = try CrossSigned()
    func policy(_ ca: [CertificateAuthority], denied: [Certificate] = []) throws -> PinningPolicy {
      let enforced = try site.policy(ca: ca, trust: site.anchors())
      var entry = try #require(enforced.entry(for: .example))
      entry.enforcement = .reportOnly
      let pins = try denied.map { try SPKIPin(certificateDER: $0.der) }
      return try PinningPolicy(entries: [entry], denied: Set(pins), trust: site.anchors())
    }
    for root in site.roots {
      #expect(try judge(policy([root]), presented: site.sent()).0.outcome == .matched)
      // Past the denied root the other path is forgiven its missing pin.
      let past = try judge(
        policy([root], denied: [root.certificate]), presented: site.sent()
      ).0
      #expect(past.decision == .accept)
      #expect(past.outcome == .mismatch(.ca))
    }
    let stranger = try CertificateAuthority.makeRoot(name: "Stranger")
    let missing = try judge(policy([stranger]), presented: site.sent()).0
    #expect(missing.decision == .accept)
    #expect(missing.outcome == .mismatch(.ca))
  }

  @Test("are refused by the pin of a CA that was merely sent")
  func merelySent() throws {
    let site = try CrossSigned(roots: 3)
    let trust = site.anchors([0, 1])
    let (pinned, top) = (site.roots[2], site.roots[2].certificate.der)
    let impostor = try CertificateAuthority.makeRoot(name: "Root 0")
    let forged = try impostor.issueIntermediate(name: "Issuer", key: site.issuers[0].key)
    for (presented, ca) in [
      (site.sent() + [top], pinned), (site.sent(under: [0]) + [top], pinned),
      (site.sent() + [forged.certificate.der, impostor.certificate.der], impostor),
      (site.sent(under: [0]) + [forged.certificate.der], impostor),
    ] {
      let policy = try site.policy(ca: [ca], trust: trust)
      let (verdict, asked) = try judge(policy, presented: presented)
      #expect(verdict.outcome == .mismatch(.ca))
      #expect(verdict.decision == .refuse)
      let key = try SPKIPin(certificateDER: ca.certificate.der)
      for evidence in asked { #expect(try !evidence.validation.get().path.contains(key)) }
    }
    // Where what was sent leads OpenSSL to no anchor, another path does, and is the only one that counts.
    let reachable = try site.policy(ca: [site.roots[0]], trust: trust)
    let (reached, asked) = try judge(reachable, presented: site.sent(under: [2, 0]) + [top])
    #expect(reached.outcome == .matched)
    #expect(asked.count == 1)
    let sentAlone = try site.policy(ca: [pinned], trust: trust)
    let (refused, _) = try judge(sentAlone, presented: site.sent(under: [2, 0]) + [top])
    #expect(refused.outcome == .mismatch(.ca))
    // The same CA is one that counts once the client trusts it.
    let policy = try site.policy(ca: [pinned], trust: site.anchors())
    #expect(try judge(policy, presented: site.sent()).0.outcome == .matched)
  }

  @Test("are accepted past a denied root, and refused where every path has a denied key")
  func denied() throws {
    let site = try CrossSigned()
    let certificates = site.roots.map(\.certificate)
    for (denied, accepted) in [
      ([certificates[0]], true), ([certificates[1]], true), (certificates, false),
      ([site.issuers[0].certificate], false),
    ] {
      let policy = try site.policy(denied: denied, trust: site.anchors())
      let (verdict, _) = try judge(policy, presented: site.sent())
      #expect((verdict.outcome == .matched) == accepted)
      if !accepted { #expect(verdict.rule == "denied-key") }
      // Around the denied root, and to a pinned one: one path must satisfy both.
      for (index, root) in site.roots.enumerated() {
        let both = try site.policy(ca: [root], denied: denied, trust: site.anchors())
        let (verdict, _) = try judge(both, presented: site.sent())
        #expect(
          (verdict.decision == .accept) == (accepted && !denied.contains(certificates[index])))
      }
    }
    let leaf = try site.policy(denied: [site.leaf.leaf], trust: site.anchors())
    let (verdict, asked) = try judge(leaf, presented: site.sent())
    #expect(verdict.outcome == .denied(try SPKIPin(certificateDER: site.leaf.leaf.der)))
    #expect(asked.count == 1)
  }

  @Test("are judged on eight more paths at most, in one order")
  func bounded() throws {
    let site = try CrossSigned(roots: 14)
    let stranger = try CertificateAuthority.makeRoot(name: "Stranger")
    var order: [[ChainEvidence]] = []
    for anchors in [Array(0..<14), Array((0..<14).reversed())] {
      let policy = try site.policy(ca: [stranger], trust: site.anchors(anchors))
      let (verdict, asked) = try judge(policy, presented: site.sent())
      #expect(verdict.outcome == .mismatch(.ca))
      #expect(asked.count == 9)
      #expect(Set(asked).count == 9)
      order.append(asked)
    }
    #expect(order.first == order.last)
  }

  /// Each signature on them may be made to take long, and libcurl's whole loop waits for the verdict.
  @Test("are not all judged if they are long: their certificates are bounded together")
  func long() throws {
    let site = try CrossSigned()
    let root = try CertificateAuthority.makeRoot(name: "Root")
    let key = try PrivateKey.generate(.p256)
    let tops = try (0..<9).map { _ in try root.issueIntermediate(name: "Top", key: key) }
    for (length, judged) in [(2, 9), (20, 3), (50, 1)] {
      var stem = [try #require(tops.first)]
      for index in 1..<length {
        stem.append(try #require(stem.last).issueIntermediate(name: "Stem \(index)"))
      }
      let leaf = try #require(stem.last).issue(names: CrossSigned.names).leaf
      let sent = [leaf] + stem.dropFirst().reversed().map(\.certificate) + tops.map(\.certificate)
      let stranger = try CertificateAuthority.makeRoot(name: "Stranger")
      let policy = try site.policy(ca: [stranger], trust: .anchors([root.certificate.der]))
      let (verdict, asked) = try judge(policy, presented: sent.map(\.der))
      #expect(verdict.outcome == .mismatch(.ca))
      #expect(asked.count == judged, "\(length)")
    }
  }

  @Test("are given up where the ways through what was sent are beyond counting")
  func maze() throws {
    let top = try CertificateAuthority.makeRoot(name: "Top")
    let keys = try (0..<10).map { _ in try PrivateKey.generate(.p256) }
    let issuers = try keys.map { try top.issueIntermediate(name: "Maze", key: $0) }
    // Every issuer is certified by every other, and one alone by the root.
    var sent = [try #require(issuers.first).certificate]
    for issuer in issuers {
      for key in keys {
        sent.append(try issuer.issueIntermediate(name: "Maze", key: key).certificate)
      }
    }
    let leaf = try #require(issuers.first).issue(names: CrossSigned.names).leaf
    let stranger = try CertificateAuthority.makeRoot(name: "Stranger")
    let site = try CrossSigned()
    let trust = TrustMode.anchors([top.certificate.der])
    let (verdict, asked) = try judge(
      site.policy(ca: [stranger], trust: trust), presented: ([leaf] + sent).map(\.der))
    #expect(verdict.outcome == .mismatch(.ca))
    #expect(asked.count == 1)
    // A second way out, not too deep in it, is found.
    let (found, _) = try judge(
      site.policy(ca: [issuers[5]], trust: trust),
      presented: ([leaf] + sent + [issuers[5].certificate]).map(\.der))
    #expect(found.outcome == .matched)
  }

  @Test("are held to dates, names and strength on every path")
  func asStrict() throws {
    let expired = Validity(notBefore: now - 9 * Self.day, notAfter: now - Self.day)
    let early = Validity(notBefore: now + Self.day, notAfter: now + 9 * Self.day)
    for (validity, then) in [(expired, now - 1800), (early, now + 2 * Self.day)] {
      let site = try CrossSigned(validities: [.daysFromNow(100), validity])
      let policy = try site.policy(ca: [site.roots[1]], trust: site.anchors())
      #expect(try judge(policy, presented: site.sent()).0.outcome == .mismatch(.ca))
      #expect(
        try judge(policy, presented: site.sent(), at: then).0.outcome
          == (validity == early ? .matched : .mismatch(.ca)))
    }
    let weak = try CrossSigned(algorithms: [.p256, .rsa(bits: 1024)])
    let pinned = try weak.policy(ca: [weak.roots[1]], trust: weak.anchors())
    #expect(try judge(pinned, presented: weak.sent()).0.outcome == .mismatch(.ca))
    let site = try CrossSigned()
    for root in site.roots {
      let policy = try PinningPolicy(
        entries: [
          PolicyEntry(
            try HostPattern("**.example.com"),
            ca: PinSet([Pin(try SPKIPin(certificateDER: root.certificate.der))]))
        ], trust: site.anchors())
      let (verdict, asked) = try judge(
        policy, presented: site.sent(), host: try HostName("other.example.com"))
      #expect(verdict.outcome == .chainRejected(.wrongHost))
      #expect(asked.count == 1)
    }
  }

  @Test("are refused by a path whose length an authority forbids")
  func pathLength() throws {
    let roots = try (0..<2).map { try CertificateAuthority.makeRoot(name: "Root \($0)") }
    let keys = try (0..<2).map { _ in try PrivateKey.generate(.p256) }
    let middle = try [nil, 0].enumerated().map { index, length in
      try roots[index].issueIntermediate(name: "Middle", key: keys[0], pathLength: length)
    }
    let issuer = try middle[0].issueIntermediate(name: "Issuer", key: keys[1])
    let leaf = try issuer.issue(names: CrossSigned.names)
    let site = try CrossSigned()
    let trust = TrustMode.anchors(roots.map(\.certificate.der))
    let presented = [leaf.leaf, issuer.certificate] + middle.map(\.certificate)
    for (pinned, accepted) in [(0, true), (1, false)] {
      let policy = try site.policy(ca: [roots[pinned]], trust: trust)
      let (verdict, _) = try judge(policy, presented: presented.map(\.der))
      #expect((verdict.decision == .accept) == accepted)
    }
  }

  @Test("lead past a cross-signed root, to it and to the root above it")
  func crossSignedRoot() throws {
    let (old, new) = (
      try CertificateAuthority.makeRoot(name: "Old"), try CertificateAuthority.makeRoot(name: "New")
    )
    let bridge = try old.issueIntermediate(name: "New", key: new.key)
    let leaf = try new.issueIntermediate(name: "Issuer")
    let identity = try leaf.issue(names: CrossSigned.names)
    let site = try CrossSigned()
    let trust = TrustMode.anchors([old, new].map(\.certificate.der))
    let presented = [identity.leaf, leaf.certificate, bridge.certificate].map(\.der)
    for root in [old, new] {
      let policy = try site.policy(ca: [root], trust: trust)
      #expect(try judge(policy, presented: presented).0.outcome == .matched)
    }
    let denied = try site.policy(
      leaf: [identity.leaf], denied: [old.certificate], trust: trust)
    #expect(try judge(denied, presented: presented).0.outcome == .matched)
    let both = try site.policy(
      leaf: [identity.leaf], denied: [new.certificate], trust: trust)
    #expect(try judge(both, presented: presented).0.rule == "denied-key")
    // Without the bridge there is no way to the old root.
    let policy = try site.policy(ca: [old], trust: trust)
    #expect(try judge(policy, presented: Array(presented.prefix(2))).0.decision == .refuse)
  }

  @Test("lead over no certificate that the system's store rejects, wherever it came from")
  func rejectedBySystem() async throws {
    let (old, new) = (
      try CertificateAuthority.makeRoot(name: "Old"), try CertificateAuthority.makeRoot(name: "New")
    )
    let bridge = try old.issueIntermediate(name: "New", key: new.key)
    let issuer = try new.issueIntermediate(name: "Issuer")
    let leaf = try issuer.issue(names: CrossSigned.names).leaf
    let tool = try OpenSSLCommand()
    try tool.write([UInt8](bridge.certificate.pem.utf8), to: "bridge.pem")
    let rejected = String(
      decoding: try await tool.make(
        "rejected.pem",
        ["x509", "-in", "bridge.pem", "-trustout", "-addreject", "serverAuth"]), as: UTF8.self)
    let folder = try TemporaryDirectory()
    let site = try CrossSigned()
    let presented = [leaf, issuer.certificate, bridge.certificate].map(\.der)
    for (name, extra, accepted) in [("plain", "", true), ("rejected", rejected, false)] {
      let file = try folder.write(
        new.certificate.pem + extra + old.certificate.pem, to: "\(name).pem"
      ).path(percentEncoded: false)
      let system = SystemAnchors(environment: ["SSL_CERT_FILE": file, "SSL_CERT_DIR": "/nowhere"])
      let below = try site.policy(ca: [new], trust: .system)
      #expect(try judge(below, presented: presented, system: system).0.outcome == .matched)
      let above = try site.policy(ca: [old], trust: .system)
      let (verdict, _) = try judge(above, presented: presented, system: system)
      #expect(verdict.outcome == (accepted ? .matched : .mismatch(.ca)), "\(name)")
    }
  }

  @Test("are found among anchors that OpenSSL reads from a directory as it needs them")
  func directory() async throws {
    let site = try CrossSigned()
    let hashed = try TemporaryDirectory()
    for (index, root) in site.roots.enumerated() {
      _ = try hashed.write(root.certificate.pem, to: "root\(index).pem")
    }
    let rehash = try await ChildProcess.run("openssl", ["rehash", hashed.path()])
    try #require(rehash.exitCode == 0)
    let system = SystemAnchors(
      environment: ["SSL_CERT_FILE": "/nowhere", "SSL_CERT_DIR": hashed.path()])
    for root in site.roots {
      let policy = try site.policy(ca: [root], trust: .system)
      #expect(
        try judge(policy, presented: site.sent(), system: system).0.outcome == .matched)
    }
  }

  @Test("go on past an own anchor that is no root, to one above it")
  func anchorsBelowAnchors() throws {
    let root = try CertificateAuthority.makeRoot(name: "Root")
    let issuer = try root.issueIntermediate(name: "Issuer")
    let leaf = try issuer.issue(names: CrossSigned.names).leaf
    let site = try CrossSigned()
    for (anchors, pinned, accepted) in [
      ([issuer.certificate, root.certificate], root, true),
      ([issuer.certificate, root.certificate], issuer, true),
      ([leaf, issuer.certificate, root.certificate], root, true),
      ([issuer.certificate], root, false), ([leaf], root, false),
    ] {
      let policy = try site.policy(ca: [pinned], trust: .anchors(anchors.map(\.der)))
      let (verdict, _) = try judge(policy, presented: [leaf.der])
      #expect((verdict.decision == .accept) == accepted)
    }
  }
}
