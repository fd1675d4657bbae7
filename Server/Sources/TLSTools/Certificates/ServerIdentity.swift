import CSslPinningOpenSSL
import Foundation

/// What a TLS server needs to prove who it is: its certificate, the intermediates and the private key.
public struct ServerIdentity: Sendable {
  public let leaf: Certificate
  /// The leaf's issuer first, without the root: a client has the root or does not trust it.
  public let intermediates: [Certificate]
  public let key: PrivateKey

  init(leaf: Certificate, intermediates: [Certificate], key: PrivateKey) {
    self.leaf = leaf
    self.intermediates = intermediates
    self.key = key
  }

  /// An identity read back from its files.
  ///
  /// - Parameter certificates: the leaf first, as a server sends them.
  /// - Throws: `malformed` if the key does not match the leaf.
  public init(certificates: [Certificate], key: PrivateKey) throws(CertificateError) {
    guard let leaf = certificates.first else { throw .noPEM(of: "CERTIFICATE") }
    try key.requireMatch(leaf)
    self.init(leaf: leaf, intermediates: Array(certificates.dropFirst()), key: key)
  }

  /// A self-signed certificate.
  public static func selfSigned(
    names: [String], key: PrivateKey, validity: Validity = .daysFromNow(90)
  ) throws(CertificateError) -> ServerIdentity {
    let leaf = try template(names: names, validity: validity)
      .sign(subject: key, issuer: nil, by: key)
    return ServerIdentity(leaf: leaf, intermediates: [], key: key)
  }

  /// A self-signed certificate with a new key.
  public static func selfSigned(
    names: [String], algorithm: PrivateKey.Algorithm = .p256,
    validity: Validity = .daysFromNow(90)
  ) throws(CertificateError) -> ServerIdentity {
    try selfSigned(names: names, key: .generate(algorithm), validity: validity)
  }

  /// Leaf and intermediates, in the order that server configurations expect.
  public var certificateChainPEM: String {
    ([leaf] + intermediates).map(\.pem).joined()
  }

  /// The key as PKCS#8 PEM. This is the secret itself.
  public var keyPEM: String {
    get throws(CertificateError) { try key.pem }
  }

  /// The leaf's SubjectPublicKeyInfo in DER: SHA-256 of it is the leaf's pin.
  public var leafSPKI: [UInt8] {
    get throws(CertificateError) { try key.publicKeyDER }
  }

  /// Where `write(to:name:)` put the two files.
  public struct Files: Sendable, Hashable {
    /// Leaf and intermediates in PEM, mode 0644.
    public let certificates: URL
    /// The key in PEM, mode 0600.
    public let key: URL
  }

  /// Writes `<name>.pem` and `<name>.key` into an existing directory.
  ///
  /// - Parameter replacing: replace existing files, which are an error otherwise. The key is replaced
  ///   first: a server that reloads between the two steps fails to load and keeps its old identity.
  public func write(
    to directory: URL, name: String, replacing: Bool = false
  ) throws(CertificateError) -> Files {
    let files = Files(
      certificates: directory.appending(path: "\(name).pem"),
      key: directory.appending(path: "\(name).key"))
    try key.write(to: files.key, replacing: replacing)
    try PEMFile.write(
      certificateChainPEM, to: files.certificates, mode: 0o644, replacing: replacing)
    return files
  }

  static func template(
    names: [String], validity: Validity
  ) throws(CertificateError) -> CertificateTemplate {
    var subjects: [SubjectName] = []
    for name in names { subjects.append(try SubjectName(name)) }
    guard let first = subjects.first else { throw .noNames }
    // A common name holds 64 characters at most (RFC 5280 appendix A, ub-common-name).
    let commonName = first.text.utf8.count <= 64 ? first.text : nil
    return CertificateTemplate(
      commonName: commonName, role: .server(names: subjects), validity: validity)
  }
}

extension PrivateKey {
  func requireMatch(_ certificate: Certificate) throws(CertificateError) {
    let x509 = try certificate.parsed()
    guard X509_check_private_key(x509.pointer, handle.pointer) == 1 else {
      OpenSSLErrors.clear()
      throw .malformed(what: "identity", reason: "the key is not the certificate's")
    }
  }
}

/// An identity parsed for OpenSSL once, because parsing takes longer than signing a handshake.
package final class LoadedIdentity: @unchecked Sendable {
  package let certificates: [Certificate]
  private let key: PrivateKey
  private let leaf: OpenSSLObject
  private let intermediates: [OpenSSLObject]

  package init(_ identity: ServerIdentity) throws(CertificateError) {
    certificates = [identity.leaf] + identity.intermediates
    key = identity.key
    leaf = try identity.leaf.parsed()
    var parsed: [OpenSSLObject] = []
    for certificate in identity.intermediates { parsed.append(try certificate.parsed()) }
    intermediates = parsed
  }

  package func use(on session: OpaquePointer) -> Bool {
    guard let stack = OPENSSL_sk_new_null() else { return false }
    defer { OPENSSL_sk_free(stack) }
    for certificate in intermediates {
      OPENSSL_sk_push(stack, UnsafeRawPointer(certificate.pointer))
    }
    return SSL_use_cert_and_key(session, leaf.pointer, key.handle.pointer, stack, 1) == 1
  }
}
