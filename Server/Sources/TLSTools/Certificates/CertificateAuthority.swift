/// A small private certificate authority: a key, its certificate and the way up to its root.
///
/// Made for tests, the demo and servers of one's own. It keeps no database and revokes nothing.
/// Hazard: whoever holds the key can be any server to every client that trusts `root`.
public struct CertificateAuthority: Sendable {
  /// The certificate that goes with `key`.
  public let certificate: Certificate
  /// This authority's certificate first, its root last.
  public let chain: [Certificate]
  /// The signing key.
  public let key: PrivateKey

  /// The certificate a client has to trust.
  public var root: Certificate { chain.last ?? certificate }

  /// A new root with a self-signed certificate.
  public static func makeRoot(
    name: String, key: PrivateKey, validity: Validity = .daysFromNow(3650)
  ) throws(CertificateError) -> CertificateAuthority {
    let template = CertificateTemplate(
      commonName: name, role: .authority(pathLength: nil), validity: validity)
    let certificate = try template.sign(subject: key, issuer: nil, by: key)
    return CertificateAuthority(certificate: certificate, chain: [certificate], key: key)
  }

  /// A new root with a new key.
  public static func makeRoot(
    name: String, algorithm: PrivateKey.Algorithm = .p256, validity: Validity = .daysFromNow(3650)
  ) throws(CertificateError) -> CertificateAuthority {
    try makeRoot(name: name, key: .generate(algorithm), validity: validity)
  }

  /// An authority read back from its files.
  ///
  /// - Parameter chain: its own certificate first, its root last.
  /// - Throws: `malformed` when the key is not the first certificate's.
  public init(chain: [Certificate], key: PrivateKey) throws(CertificateError) {
    guard let first = chain.first else { throw .noPEM(of: "CERTIFICATE") }
    try key.requireMatch(first)
    self.init(certificate: first, chain: chain, key: key)
  }

  private init(certificate: Certificate, chain: [Certificate], key: PrivateKey) {
    self.certificate = certificate
    self.chain = chain
    self.key = key
  }

  /// An authority below this one.
  ///
  /// The same `key` under two authorities is a cross-signed intermediate.
  /// - Parameter pathLength: how many more authorities may stand below it; nil sets no limit.
  public func issueIntermediate(
    name: String, key: PrivateKey, validity: Validity = .daysFromNow(1825), pathLength: Int? = nil
  ) throws(CertificateError) -> CertificateAuthority {
    let template = CertificateTemplate(
      commonName: name, role: .authority(pathLength: pathLength), validity: validity)
    let made = try template.sign(subject: key, issuer: certificate, by: self.key)
    return CertificateAuthority(certificate: made, chain: [made] + chain, key: key)
  }

  /// An authority below this one, with a new key.
  public func issueIntermediate(
    name: String, algorithm: PrivateKey.Algorithm = .p256,
    validity: Validity = .daysFromNow(1825), pathLength: Int? = nil
  ) throws(CertificateError) -> CertificateAuthority {
    try issueIntermediate(
      name: name, key: .generate(algorithm), validity: validity, pathLength: pathLength)
  }

  /// A server certificate for `key`. Issuing again with the key of an identity renews it: other
  /// certificate, same pin.
  ///
  /// - Parameter names: DNS names and IP addresses, see `SubjectName`.
  /// - Throws: `noNames`, `invalidName`, `validity`.
  public func issue(
    names: [String], key: PrivateKey, validity: Validity = .daysFromNow(90)
  ) throws(CertificateError) -> ServerIdentity {
    let template = try ServerIdentity.template(names: names, validity: validity)
    let leaf = try template.sign(subject: key, issuer: certificate, by: self.key)
    return ServerIdentity(leaf: leaf, intermediates: Array(chain.dropLast()), key: key)
  }

  /// A server certificate with a new key.
  public func issue(
    names: [String], algorithm: PrivateKey.Algorithm = .p256,
    validity: Validity = .daysFromNow(90)
  ) throws(CertificateError) -> ServerIdentity {
    try issue(names: names, key: .generate(algorithm), validity: validity)
  }
}
