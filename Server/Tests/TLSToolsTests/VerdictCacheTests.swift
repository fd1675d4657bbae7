import FaultLab
import Foundation
import SslPinningPlatform
import SslPinningRules
import Testing

@testable import TLSTools

/// A kept verdict must never speak for anything but what was judged.
@Suite("Kept verdicts on chains")
struct VerdictCacheTests {
  private let authority: CertificateAuthority
  private let anchors: ChainValidator
  private let identity: ServerIdentity
  private let cache = VerdictCache()
  private static let now = Int64(Date().timeIntervalSince1970)

  init() throws {
    authority = try .makeRoot(name: "Kept Root")
    anchors = try ChainValidator(anchors: [authority.root])
    identity = try authority.issueIntermediate(name: "Kept Issuer")
      .issue(
        names: ["site.test"], validity: Validity(notBefore: Self.now - 60, notAfter: Self.now + 300)
      )
  }

  private var chain: [Certificate] { [identity.leaf] + identity.intermediates }

  private var path: [PathCertificate] {
    get throws { try #require(cache.described(chain + [authority.root])) }
  }

  private func keep() throws {
    try cache.keep(path, for: VerdictCache.Key(chain, validator: anchors), at: Self.now)
  }

  private func kept(
    _ certificates: [Certificate]? = nil, _ anchors: ChainValidator? = nil, at seconds: Int64 = 0
  ) -> [PathCertificate]? {
    cache.path(
      for: VerdictCache.Key(certificates ?? chain, validator: anchors ?? self.anchors),
      at: Self.now + seconds)
  }

  @Test("a verdict is found again for the same bytes and the same anchors")
  func same() throws {
    #expect(kept() == nil)
    try keep()
    #expect(kept() == (try path))
    #expect(kept(try chain.map { try Certificate(der: $0.der) }) == (try path))
  }

  @Test("and for no other bytes, order or number of certificates")
  func otherBytes() throws {
    try keep()
    let renewed = try authority.issue(names: ["site.test"], key: identity.key).leaf
    #expect(kept([renewed] + identity.intermediates) == nil)
    #expect(kept([identity.leaf]) == nil)
    #expect(kept(identity.intermediates + [identity.leaf]) == nil)
    #expect(kept(chain + identity.intermediates) == nil)
    #expect(kept([]) == nil)
  }

  @Test("nor under other anchors, even of the same certificates")
  func otherAnchors() throws {
    try keep()
    #expect(kept(chain, try ChainValidator(anchors: [authority.root])) == nil)
    #expect(kept(chain, try ChainValidator(anchors: [])) == nil)
  }

  @Test("it ends with the first certificate of its path, to the second")
  func expiry() throws {
    try keep()
    #expect(kept(at: 300) != nil)
    #expect(kept(at: 301) == nil)
    #expect(kept(at: 300) == nil)
  }

  @Test("it lasts ten minutes at most, and not at a time before it was made")
  func lifetime() throws {
    let longer = try authority.issue(names: ["site.test"])
    let key = VerdictCache.Key([longer.leaf], validator: anchors)
    let path = try #require(cache.described([longer.leaf, authority.root]))
    cache.keep(path, for: key, at: Self.now)
    #expect(cache.path(for: key, at: Self.now + VerdictCache.lifetime) == path)
    #expect(cache.path(for: key, at: Self.now + VerdictCache.lifetime + 1) == nil)
    cache.keep(path, for: key, at: Self.now)
    #expect(cache.path(for: key, at: Self.now - 1) == nil)
  }

  @Test("a full cache lets those go that were not asked for, and keeps the others")
  func bounded() throws {
    let cache = VerdictCache(limit: 10)
    let path = try path
    func key(_ number: UInt8) throws -> VerdictCache.Key {
      // Any bytes will do for a key.
      VerdictCache.Key(
        try [authority.issue(names: ["h\(number).test"]).leaf], validator: anchors)
    }
    let asked = try key(0)
    cache.keep(path, for: asked, at: Self.now)
    var others: [VerdictCache.Key] = []
    for number in 1...30 {
      others.append(try key(UInt8(number)))
      cache.keep(path, for: others[number - 1], at: Self.now)
      #expect(cache.path(for: asked, at: Self.now) == path)
    }
    let left = others.filter { cache.path(for: $0, at: Self.now) != nil }
    #expect(left.count <= 20)
    #expect(left.last == others.last)
  }

  @Test("a server behind a kept chain is judged by its own name, and its own anchors")
  func names() async throws {
    let server = try LocalTLSServer(identity: identity) { _ in .text("never asked") }
    let probe = try TLSProbe(anchors: anchors)
    func look(_ host: String, _ anchors: ChainValidator) async throws -> ProbeVerdict? {
      let findings = try await probe.survey(
        HostName(host), port: server.port, addresses: [.loopback(server.port)], from: [.direct],
        limits: ProbeLimits(total: 60_000), trusting: anchors, cache: cache)
      return try findings.first?.outcome.get()
    }
    let path = try path
    let pin = path.first?.pin
    #expect(try await look("site.test", anchors) == .trusted(path))
    // The look was made by the machine's clock, after the one of these tests was read.
    let elapsed = Int64(Date().timeIntervalSince1970) - Self.now
    #expect(kept(at: elapsed) == path)
    #expect(
      try await look("other.test", anchors)
        == .untrusted(reason: "the certificate is not for other.test", leaf: pin, isChainGood: true)
    )
    let others = try ChainValidator(anchors: [CertificateAuthority.makeRoot(name: "Other").root])
    #expect(
      try await look("site.test", others)
        == .untrusted(reason: "unable to get local issuer certificate", leaf: pin))
    #expect(try await look("site.test", anchors) == .trusted(path))
    // A refusal is not kept: the anchors that make it good count at once.
    #expect(kept(chain, others, at: elapsed) == nil)
  }
}
