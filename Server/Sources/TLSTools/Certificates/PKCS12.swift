import CSslPinningOpenSSL

/// A PKCS #12 file (RFC 7292, `.p12`, `.pfx`): certificates, and mostly the private key of the first one, under a
/// password.
///
/// Hazard: the password is all that protects the key. A file for old systems (``Protection/old``) resists guessing
/// for a short while only.
public struct PKCS12: Sendable {
  /// How a file is encrypted.
  public enum Protection: Sendable, Hashable {
    /// AES-256 under PBKDF2, with a MAC of SHA-256.
    case current
    /// Triple DES, with a MAC of SHA-1: what Keychain and Windows read before they learnt the other.
    case old
  }

  /// The key's certificate first, if there is a key.
  public let certificates: [Certificate]
  /// The private key, if the file has one.
  public let key: PrivateKey?

  /// - Parameter certificates: the key's own first.
  /// - Throws: `malformed` if the key does not match the first certificate.
  public init(certificates: [Certificate], key: PrivateKey?) throws(CertificateError) {
    guard let first = certificates.first else { throw .noPEM(of: "CERTIFICATE") }
    try key?.requireMatch(first)
    (self.certificates, self.key) = (certificates, key)
  }

  /// Reads a file.
  ///
  /// - Throws: `malformed`, also for a wrong password; `noPEM` for a file without a certificate.
  public init(der: [UInt8], password: String) throws(CertificateError) {
    OpenSSLErrors.clear()
    defer { OpenSSLErrors.clear() }
    let file = der.withUnsafeBufferPointer { buffer in
      var cursor = buffer.baseAddress
      return d2i_PKCS12(nil, &cursor, buffer.count)
    }
    guard let file else { throw Self.malformed("not in the form of PKCS #12") }
    defer { PKCS12_free(file) }
    guard PKCS12_verify_mac(file, password, -1) == 1 else {
      throw Self.malformed("the password is wrong, or the file was changed")
    }
    var (pointer, first): (OpaquePointer?, OpaquePointer?)
    var others: OpaquePointer?
    var isRead = PKCS12_parse(file, password, &pointer, &first, &others) == 1
    if !isRead {
      // What Keychain writes needs RC2, which OpenSSL 3 keeps in a module of its own.
      _ = OSSL_PROVIDER_load(nil, "default")
      _ = OSSL_PROVIDER_load(nil, "legacy")
      isRead = PKCS12_parse(file, password, &pointer, &first, &others) == 1
    }
    defer {
      X509_free(first)
      while let other = OPENSSL_sk_pop(others) { X509_free(OpaquePointer(other)) }
      OPENSSL_sk_free(others)
    }
    let key = pointer.map { PrivateKey(owning: $0) }
    guard isRead else { throw Self.malformed(OpenSSLErrors.drain()) }
    var found: [Certificate] = []
    if let first { found.append(try Certificate(copying: first)) }
    for index in 0..<max(OPENSSL_sk_num(others), 0) {
      guard let other = OPENSSL_sk_value(others, index) else { continue }
      found.append(try Certificate(copying: OpaquePointer(other)))
    }
    try self.init(certificates: found, key: key)
  }

  /// The file's bytes.
  ///
  /// - Parameter name: what key chains show.
  public func der(
    password: String, name: String, protection: Protection = .current
  ) throws(CertificateError) -> [UInt8] {
    OpenSSLErrors.clear()
    guard let stack = OPENSSL_sk_new_null() else { throw Self.failure() }
    defer { OPENSSL_sk_free(stack) }
    var parsed: [OpenSSLObject] = []
    for certificate in certificates { parsed.append(try certificate.parsed()) }
    for other in parsed.dropFirst() {
      OPENSSL_sk_push(stack, UnsafeRawPointer(other.pointer))
    }
    let cipher =
      switch protection {
      case .current: NID_aes_256_cbc
      case .old: NID_pbe_WithSHA1And3_Key_TripleDES_CBC
      }
    // −1: the MAC follows, with the digest that goes with the cipher.
    let file = PKCS12_create(
      password, name, key?.handle.pointer, parsed.first?.pointer, stack, cipher, cipher,
      Self.iterations, -1, 0)
    guard let file else { throw Self.failure() }
    defer { PKCS12_free(file) }
    let digest = protection == .old ? EVP_sha1() : EVP_sha256()
    var bytes: UnsafeMutablePointer<UInt8>?
    guard PKCS12_set_mac(file, password, -1, nil, 0, Self.iterations, digest) == 1 else {
      throw Self.failure()
    }
    let count = i2d_PKCS12(file, &bytes)
    guard count > 0, let bytes else { throw Self.failure() }
    defer { CRYPTO_free(bytes, #file, #line) }
    return Array(UnsafeBufferPointer(start: bytes, count: Int(count)))
  }

  /// Guesses of the password cost this many rounds each. More would keep a telephone busy for seconds.
  private static let iterations: Int32 = 100_000

  private static func malformed(_ reason: String) -> CertificateError {
    .malformed(what: "PKCS #12 file", reason: reason)
  }

  private static func failure() -> CertificateError {
    .openSSL(operation: "writing a PKCS #12 file", reason: OpenSSLErrors.drain())
  }
}
