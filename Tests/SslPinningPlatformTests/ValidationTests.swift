import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@Suite("Chains under each trust mode")
struct ValidationTests {
  let root: CertificateAuthority
  let intermediate: CertificateAuthority
  let server: ServerIdentity
  let otherRoot: CertificateAuthority
  let host = HostName.example

  init() throws {
    root = try .makeRoot(name: "Root")
    intermediate = try root.issueIntermediate(name: "Intermediate")
    server = try intermediate.issue(names: ["www.example.com", "*.wild.example.com", "10.1.2.3"])
    otherRoot = try .makeRoot(name: "Root")
  }

  private var sent: [[UInt8]] { ([server.leaf] + server.intermediates).map(\.der) }

  private func pins(_ certificates: [Certificate]) throws -> [SPKIPin] {
    try certificates.map { try SPKIPin(certificateDER: $0.der) }
  }

  private func evidence(
    anchors: [Certificate], presented: [[UInt8]]? = nil, host: HostName? = nil, at: Int64? = nil
  ) throws -> ChainEvidence {
    try ChainValidator(trust: .anchors(anchors.map(\.der)))
      .evidence(presented: presented ?? sent, host: host ?? self.host, at: at)
  }

  @Test("takes pins over the whole validated path, the anchor that was not sent included")
  func wholePath() throws {
    let evidence = try evidence(anchors: [root.certificate])
    #expect(evidence.presented == (try pins([server.leaf, intermediate.certificate])))
    let chain = try evidence.validation.get()
    #expect(chain.host == host)
    #expect(
      chain.path == (try pins([server.leaf, intermediate.certificate, root.certificate])))
  }

  @Test("leaves what was merely sent out of the path, wherever it stands")
  func sentBesideThePath() throws {
    let stranger = otherRoot.certificate
    for presented in [
      [server.leaf, stranger, intermediate.certificate],
      [server.leaf, intermediate.certificate, stranger],
      [server.leaf, intermediate.certificate, intermediate.certificate, stranger, stranger],
    ] {
      let evidence = try evidence(anchors: [root.certificate], presented: presented.map(\.der))
      #expect(evidence.presented == (try pins(presented)))
      let path = try evidence.validation.get().path
      #expect(path == (try pins([server.leaf, intermediate.certificate, root.certificate])))
    }
  }

  @Test("ends a path at an own anchor that is an intermediate, or the server's certificate")
  func anchorsThatAreNoRoots() throws {
    let atIntermediate = try evidence(anchors: [intermediate.certificate])
    #expect(
      try atIntermediate.validation.get().path
        == (try pins([server.leaf, intermediate.certificate])))
    let atLeaf = try evidence(anchors: [server.leaf], presented: [server.leaf.der])
    #expect(try atLeaf.validation.get().path == pins([server.leaf]))
    let selfSigned = try ServerIdentity.selfSigned(names: ["www.example.com"])
    let own = try evidence(anchors: [selfSigned.leaf], presented: [selfSigned.leaf.der])
    #expect(try own.validation.get().path == pins([selfSigned.leaf]))
    // Another certificate of the same anchor's key is not that anchor.
    let renewed = try intermediate.issue(names: ["www.example.com"], key: server.key)
    let other = try evidence(anchors: [server.leaf], presented: [renewed.leaf.der])
    #expect(other.isUntrusted)
  }

  @Test("refuses a chain that leads to no anchor")
  func noAnchor() throws {
    #expect(try evidence(anchors: [otherRoot.certificate]).isUntrusted)
    #expect(try evidence(anchors: []).isUntrusted)
    #expect(try evidence(anchors: [root.certificate], presented: [server.leaf.der]).isUntrusted)
    #expect(
      try evidence(
        anchors: [], presented: sent + [root.certificate.der]
      ).isUntrusted)
    let selfSigned = try ServerIdentity.selfSigned(names: ["www.example.com"])
    #expect(
      try evidence(anchors: [root.certificate], presented: [selfSigned.leaf.der]).isUntrusted)
    // The server's certificate is no authority, anchor or not.
    let below = try CertificateAuthority(
      chain: [server.leaf, intermediate.certificate, root.certificate], key: server.key
    ).issue(names: ["www.example.com"])
    for anchors in [[root.certificate], [server.leaf], [server.leaf, root.certificate]] {
      #expect(
        try evidence(
          anchors: anchors,
          presented: [below.leaf, server.leaf, intermediate.certificate].map(\.der)
        ).isUntrusted)
    }
  }

  @Test("tells the code and the reason of a refused path, and still what was presented")
  func reason() throws {
    let evidence = try evidence(anchors: [otherRoot.certificate])
    #expect(evidence.presented == (try pins([server.leaf, intermediate.certificate])))
    guard case .failure(.untrusted(let code, let reason)) = evidence.validation else {
      Issue.record("\(evidence.validation)")
      return
    }
    #expect(code != 0)
    #expect(!reason.isEmpty)
  }

  @Test(
    "accepts the host names and addresses of the certificate and no others",
    arguments: [
      ("www.example.com", true), ("WWW.Example.COM.", true), ("example.com", false),
      ("ww.example.com", false), ("a.www.example.com", false), ("a.wild.example.com", true),
      ("wild.example.com", false), ("a.b.wild.example.com", false), ("10.1.2.3", true),
      ("10.1.2.4", false), ("::ffff:10.1.2.3", false), ("[::1]", false),
    ])
  func names(text: String, matches: Bool) throws {
    let host = try HostName(text)
    let evidence = try evidence(anchors: [root.certificate], host: host)
    if matches {
      #expect(try evidence.validation.get().host == host)
    } else {
      #expect(evidence.validation == .failure(.wrongHost))
      #expect(!evidence.presented.isEmpty)
    }
  }

  @Test("checks IPv6 addresses by all their bytes")
  func addresses() throws {
    let identity = try intermediate.issue(names: ["2001:db8::1"])
    let presented = ([identity.leaf] + identity.intermediates).map(\.der)
    for (text, matches) in [
      ("2001:db8:0:0::1", true), ("2001:db8::2", false), ("32.1.13.184", false),
    ] {
      let evidence = try evidence(
        anchors: [root.certificate], presented: presented, host: try HostName(text))
      #expect(evidence.isValidated == matches, "\(text)")
    }
  }

  @Test("holds the path to the time it is asked about")
  func time() throws {
    let now = Int64(Date().timeIntervalSince1970)
    let day: Int64 = 86400
    for (time, valid) in [
      (nil, true), (now, true), (now + 89 * day, true), (now + 91 * day, false),
      (now - 2 * day, false), (0, false), (.max, false), (.min, false),
    ] as [(Int64?, Bool)] {
      let evidence = try evidence(anchors: [root.certificate], at: time)
      #expect(evidence.isValidated == valid, "\(String(describing: time))")
      if !valid { #expect(evidence.isUntrusted) }
    }
    let old = try CertificateAuthority.makeRoot(
      name: "Old", validity: Validity(notBefore: now - 9 * day, notAfter: now + day))
    let expired = try old.issue(
      names: ["www.example.com"], validity: Validity(notBefore: now - 9 * day, notAfter: now - day))
    for (time, valid) in [(nil, false), (now - 2 * day, true)] as [(Int64?, Bool)] {
      let evidence = try evidence(
        anchors: [old.certificate], presented: [expired.leaf.der], at: time)
      #expect(evidence.isValidated == valid)
    }
  }

  @Test("refuses RSA keys below 2048 bits on the path, the leaf's and an authority's")
  func weakKeys() throws {
    for bits in [1024, 2048] {
      let leaf = try root.issue(names: ["www.example.com"], algorithm: .rsa(bits: bits))
      let evidence1 = try evidence(anchors: [root.certificate], presented: [leaf.leaf.der])
      #expect(evidence1.isUntrusted == (bits < 2048))
      let authority = try CertificateAuthority.makeRoot(name: "R", algorithm: .rsa(bits: bits))
      let below = try authority.issue(names: ["www.example.com"])
      let evidence2 = try evidence(
        anchors: [authority.certificate], presented: [below.leaf.der])
      #expect(evidence2.isUntrusted == (bits < 2048))
    }
  }

  @Test("refuses a path with more certificates between leaf and anchor than it is told")
  func length() throws {
    let validator = try ChainValidator(
      trust: .anchors([root.certificate.der]), system: SystemAnchors(environment: [:]),
      mostIntermediates: 3)
    var authority = root
    for index in 0...5 {
      let leaf = try authority.issue(names: ["www.example.com"])
      let evidence = validator.evidence(
        presented: ([leaf.leaf] + leaf.intermediates).map(\.der), host: host)
      #expect(evidence.isValidated == (index <= 3), "\(index)")
      authority = try authority.issueIntermediate(name: "Authority \(index)")
    }
  }

  @Test("never lets another certificate take the place of a leaf that cannot be read")
  func unreadable() throws {
    let leaf = server.leaf.der
    let next = intermediate.certificate.der
    for (presented, readable) in [
      ([], 0), ([[]], 0), ([[], next], 0), ([Array(leaf.dropLast()), next], 0),
      ([leaf + [0], next], 0), ([leaf, [1, 2, 3]], 1), ([leaf, next + [0]], 1),
      ([leaf, next, [0x30, 0x80]], 2), ([[UInt8](server.leaf.pem.utf8), next], 0),
    ] as [([[UInt8]], Int)] {
      let anchored = try evidence(anchors: [root.certificate], presented: presented)
      #expect(anchored.presented.count == readable)
      guard case .failure(.unreadable) = anchored.validation else {
        Issue.record("\(anchored.validation)")
        continue
      }
      let keysOnly = try ChainValidator(trust: .pinnedKeysOnly)
        .evidence(presented: presented, host: host)
      #expect(keysOnly.presented.count == readable)
      #expect(!keysOnly.isValidated)
    }
  }

  @Test("validates nothing under pinned keys only, and tells what was presented")
  func pinnedKeysOnly() throws {
    let validator = try ChainValidator(trust: .pinnedKeysOnly)
    let evidence = validator.evidence(presented: sent, host: host)
    #expect(evidence.presented == (try pins([server.leaf, intermediate.certificate])))
    #expect(evidence.isUntrusted)
  }

  @Test("names the anchor that is no certificate")
  func malformedAnchors() throws {
    let good = root.certificate.der
    for bad in [[], [0x30], Array(good.dropLast()), good + [0], [UInt8](root.certificate.pem.utf8)]
    {
      for andSystem in [false, true] {
        #expect(throws: TrustError.malformedAnchor(index: 1)) {
          try ChainValidator(trust: .anchors([good, bad, good], andSystem: andSystem))
        }
      }
    }
    #expect(try evidence(anchors: [root.certificate, root.certificate]).isUntrusted == false)
  }

  @Test("no certificate with one byte changed is accepted, and none crashes")
  func changedBytes() throws {
    let validator = try ChainValidator(trust: .anchors([root.certificate.der]))
    let leaf = server.leaf.der
    for index in leaf.indices {
      for change in [UInt8(1), 0x80] {
        var changed = leaf
        changed[index] ^= change
        let evidence = validator.evidence(
          presented: [changed, intermediate.certificate.der], host: host)
        #expect(!evidence.isValidated, "byte \(index)")
      }
    }
  }

  @Test("judges on many threads at a time")
  func threads() async throws {
    let validator = try ChainValidator(trust: .anchors([root.certificate.der]))
    let (presented, other) = (sent, try HostName("example.org"))
    let agreed = await withTaskGroup(of: Bool.self) { group in
      for index in 0..<200 {
        group.addTask {
          let right = index % 2 == 0
          let evidence = validator.evidence(presented: presented, host: right ? .example : other)
          return (evidence.isValidated) == right
        }
      }
      return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
    }
    #expect(agreed == 200)
  }
}

extension HostName {
  /// `www.example.com`.
  static let example: HostName = {
    do { return try HostName("www.example.com") } catch { fatalError("\(error)") }
  }()
}

extension ChainEvidence {
  /// Whether a path was found that is valid for the host.
  var isValidated: Bool { (try? validation.get()) != nil }

  /// Whether the chain was read and found to lead to no anchor, or to none by its dates.
  var isUntrusted: Bool {
    switch validation {
    case .failure(.untrusted), .failure(.outOfDate): true
    default: false
    }
  }
}
