import CSslPinningOpenSSL
import CSslPinningShims
import SslPinningRules

/// A small private certificate authority: a key, its certificate and the chain up to its root.
///
/// For tests, the demo and private servers. It keeps no database and revokes nothing.
/// Hazard: whoever holds the key can impersonate any server to every client that trusts `root`.
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
  /// - Throws: `malformed` if the key does not match the first certificate.
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
  /// - Parameter pathLength: how many more authorities may follow below it; nil sets no limit.
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

  /// A server certificate for `key`. Issuing again for the same key is a renewal: a new certificate
  /// with the same pin.
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

/// A certificate request (PKCS #10, RFC 2986) with a valid signature of its own, which proves that
/// its maker has the private key.
///
///     CertificationRequest ::= SEQUENCE { certificationRequestInfo, signatureAlgorithm, signature }
///     CertificationRequestInfo ::= SEQUENCE { version INTEGER, subject Name,
///       subjectPKInfo SEQUENCE   <- sliced, header included
///       … }                                                                   (RFC 2986 §4)
public struct CertificateRequest: Sendable, Hashable {
  /// The SubjectPublicKeyInfo, byte for byte; the certificate will carry the same bytes.
  public let publicKeyDER: [UInt8]

  /// Reads a request; bytes after its end are refused.
  ///
  /// - Throws: ``CertificateError/malformed(what:reason:)``, also for a bad signature.
  public init(der: [UInt8]) throws(CertificateError) {
    guard !pp_brings_own_curve(der, der.count) else {
      throw Self.malformed("its key is on no curve that has a name")
    }
    OpenSSLErrors.clear()
    let (request, rest) = der.withUnsafeBufferPointer { buffer in
      var cursor = buffer.baseAddress
      let request = d2i_X509_REQ(nil, &cursor, buffer.count)
      return (request, (buffer.baseAddress.map { $0 + buffer.count } ?? cursor) != cursor)
    }
    guard let request else {
      throw Self.malformed("not in the form of PKCS #10 (\(OpenSSLErrors.drain()))")
    }
    defer { X509_REQ_free(request) }
    guard !rest else { throw Self.malformed("bytes after its end") }
    guard let key = X509_REQ_get0_pubkey(request) else {
      throw Self.malformed("its key is of no known kind")
    }
    guard X509_REQ_verify(request, key) == 1 else {
      OpenSSLErrors.clear()
      throw Self.malformed("its signature is not by its own key")
    }
    do throws(CertificateSyntaxError) { publicKeyDER = try Self.publicKey(in: der) } catch {
      throw Self.malformed("\(error)")
    }
  }

  /// A request with an empty subject, which proves that its maker has the key and asks for nothing.
  public static func pem(signedBy key: PrivateKey) throws(CertificateError) -> String {
    OpenSSLErrors.clear()
    guard let request = X509_REQ_new() else {
      throw .openSSL(operation: "a request", reason: OpenSSLErrors.drain())
    }
    defer { X509_REQ_free(request) }
    let bio = try MemoryBIO()
    // Ed25519 has a digest of its own.
    let digest = key.typeName == "ED25519" ? nil : EVP_sha256()
    guard X509_REQ_set_pubkey(request, key.handle.pointer) == 1,
      X509_REQ_sign(request, key.handle.pointer, digest) > 0,
      PEM_write_bio_X509_REQ(bio.pointer, request) == 1
    else { throw .openSSL(operation: "signing a request", reason: OpenSSLErrors.drain()) }
    return bio.text
  }

  /// Whether bytes have the fields of a request, whatever its signature, so that errors can speak of a
  /// request. A certificate does not pass: it has a SEQUENCE in place of the attributes, `[0]`.
  public static func hasForm(of der: [UInt8]) -> Bool {
    (try? fields(of: der).next) == .explicit0
  }

  private static func publicKey(in der: [UInt8]) throws(CertificateSyntaxError) -> [UInt8] {
    [UInt8](try fields(of: der).key.whole)
  }

  /// The key, and what follows it.
  private static func fields(
    of der: [UInt8]
  ) throws(CertificateSyntaxError) -> (key: DERReader.Element, next: DERReader.Tag?) {
    var outer = DERReader(der[...])
    var fields = DERReader(try outer.element(tag: .sequence, what: "request").contents)
    let info = try fields.element(tag: .sequence, what: "certificationRequestInfo")
    var body = DERReader(info.contents)
    _ = try body.element(tag: .integer, what: "version")
    _ = try body.element(tag: .sequence, what: "subject")
    let key = try body.element(tag: .sequence, what: "subjectPKInfo")
    return (key, body.nextTag)
  }

  private static func malformed(_ reason: String) -> CertificateError {
    .malformed(what: "certificate request", reason: reason)
  }
}
