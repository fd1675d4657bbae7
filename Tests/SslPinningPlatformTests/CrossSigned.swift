import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools
import Testing

/// One server certificate whose issuer, one key under one name, is certified by several roots: as
/// many valid paths as there are roots that a client trusts.
struct CrossSigned {
  static let names = ["www.example.com", "localhost", "127.0.0.1"]

  let roots: [CertificateAuthority]
  /// The issuer under each root, in the same order.
  let issuers: [CertificateAuthority]
  let leaf: ServerIdentity

  /// - Parameter validity: of the issuer's certificate under each root.
  init(
    roots: Int = 2, algorithms: [PrivateKey.Algorithm] = [], validities: [Validity] = []
  ) throws {
    let key = try PrivateKey.generate(.p256)
    self.roots = try (0..<roots).map { index in
      try CertificateAuthority.makeRoot(
        name: "Root \(index)", algorithm: index < algorithms.count ? algorithms[index] : .p256)
    }
    issuers = try self.roots.enumerated().map { index, root in
      try root.issueIntermediate(
        name: "Issuer", key: key,
        validity: index < validities.count ? validities[index] : .daysFromNow(1000))
    }
    leaf = try #require(issuers.first).issue(names: Self.names)
  }

  /// The leaf and the issuer's certificates under these roots, in DER.
  func sent(under roots: [Int]? = nil) -> [[UInt8]] {
    [leaf.leaf.der] + (roots ?? Array(issuers.indices)).map { issuers[$0].certificate.der }
  }

  func anchors(_ roots: [Int]? = nil) -> TrustMode {
    .anchors((roots ?? Array(self.roots.indices)).map { self.roots[$0].certificate.der })
  }

  /// What a server that knows all its issuer's certificates shows.
  func identity() throws -> ServerIdentity {
    try ServerIdentity(
      certificates: [leaf.leaf] + issuers.map(\.certificate), key: leaf.key)
  }

  func policy(
    ca: [CertificateAuthority] = [], leaf: [Certificate]? = nil, denied: [Certificate] = [],
    whole: [Certificate] = [], match: PolicyEntry.Match = .all, trust: TrustMode
  ) throws -> PinningPolicy {
    let leaf = leaf ?? (ca.isEmpty && whole.isEmpty ? [self.leaf.leaf] : [])
    func pins(_ certificates: [Certificate]) throws -> [SPKIPin] {
      try certificates.map { try SPKIPin(certificateDER: $0.der) }
    }
    let entries = try Self.names.map { name in
      PolicyEntry(
        try HostPattern(name), leaf: PinSet(try pins(leaf).map { Pin($0) }),
        ca: PinSet(try pins(ca.map(\.certificate)).map { Pin($0) }),
        certificates: Set(try whole.map { try CertificateFingerprint(certificateDER: $0.der) }),
        match: match)
    }
    return try PinningPolicy(entries: entries, denied: Set(try pins(denied)), trust: trust)
  }
}
