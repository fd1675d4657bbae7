import CSslPinningOpenSSL
import SslPinningPlatform
import SslPinningRules

/// Why a PKCS #12 file could not be read.
public enum PKCS12Error: Error, Hashable, Sendable {
  /// The password is not that of the file.
  case wrongPassword
  /// The bytes are no such file; the reason is OpenSSL's.
  case malformed(reason: String)
  /// It could be read, and has no certificate.
  case noCertificate
}

extension PKCS12Error: ExplainedError {
  public var description: String {
    switch self {
    case .wrongPassword: "the password is not that of the file"
    case .malformed(let reason): "not readable as PKCS #12: \(reason)"
    case .noCertificate: "no certificate in this PKCS #12 file"
    }
  }
}

/// A PKCS #12 file (RFC 7292; `.p12`, `.pfx`), as Keychain, Windows and `openssl pkcs12` write it: certificates, and
/// mostly the private key of the first one, under a password.
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
  /// The private key, if the file has one with a certificate.
  public let key: PrivateKey?

  /// - Parameter certificates: the key's own first.
  /// - Throws: `malformed` if the key does not match the first certificate.
  public init(certificates: [Certificate], key: PrivateKey?) throws(CertificateError) {
    guard let first = certificates.first else { throw .noPEM(of: "CERTIFICATE") }
    try key?.requireMatch(first)
    (self.certificates, self.key) = (certificates, key)
  }
}

/// Reading.
extension PKCS12 {
  /// Whether bytes begin as such a file does: a sequence whose first member is the number 3. Keychain writes
  /// the sequence without its length, which DER forbids.
  public static func hasForm(of bytes: [UInt8]) -> Bool {
    guard bytes.first == 0x30, let length = bytes.dropFirst().first else { return false }
    let more = length > 0x80 ? Int(length & 0x7F) : 0
    return bytes.dropFirst(2 + more).starts(with: [0x02, 0x01, 0x03])
  }

  /// Reads a file.
  ///
  /// - Old files are under RC2 and 3DES. OpenSSL keeps those in a provider that the process does not load, so the file
  ///   is read in a library context of its own.
  /// - A file without a MAC is refused, as by OpenSSL 3.0: nothing would tell a wrong password from a broken file.
  /// - Hazard: the file says how often its password is hashed, and may say two thousand million times.
  public init(_ bytes: [UInt8], password: String) throws(PKCS12Error) {
    OpenSSLErrors.clear()
    defer { OpenSSLErrors.clear() }
    guard let library = OSSL_LIB_CTX_new() else {
      throw .malformed(reason: OpenSSLErrors.drain())
    }
    defer { OSSL_LIB_CTX_free(library) }
    // Where the second is not installed, files of today can be read all the same.
    let providers = ["default", "legacy"].map { (name: String) in OSSL_PROVIDER_load(library, name)
    }
    // The context does not do it: what the second one has for itself would be left behind.
    defer { for case let loaded? in providers.reversed() { OSSL_PROVIDER_unload(loaded) } }
    guard providers[0] != nil else { throw .malformed(reason: OpenSSLErrors.drain()) }
    (certificates, key) = try Self.contents(of: bytes, password, in: library)
    guard !certificates.isEmpty else { throw .noCertificate }
  }

  /// - Returns: nothing that lives in the context.
  private static func contents(
    of bytes: [UInt8], _ password: String, in library: OpaquePointer
  ) throws(PKCS12Error) -> ([Certificate], PrivateKey?) {
    var file = PKCS12_init_ex(NID_pkcs7_data, library, nil)
    defer { PKCS12_free(file) }
    OpenSSLErrors.clear()
    let isRead = bytes.withUnsafeBufferPointer { buffer in
      var cursor = buffer.baseAddress
      return d2i_PKCS12(&file, &cursor, buffer.count) != nil
    }
    guard isRead, let file else { throw .malformed(reason: OpenSSLErrors.drain()) }
    var (secret, own, others): (OpaquePointer?, OpaquePointer?, OpaquePointer?)
    let isOpen = PKCS12_parse(file, password, &secret, &own, &others) == 1
    let borrowed = secret.map { PrivateKey(owning: $0) }
    defer {
      X509_free(own)
      while let one = OPENSSL_sk_pop(others) { X509_free(OpaquePointer(one)) }
      OPENSSL_sk_free(others)
    }
    guard isOpen else {
      let isPassword = ERR_GET_REASON(ERR_peek_last_error()) == PKCS12_R_MAC_VERIFY_FAILURE
      throw isPassword ? .wrongPassword : .malformed(reason: OpenSSLErrors.drain())
    }
    var found: [Certificate] = []
    do throws(CertificateError) {
      if let own { found.append(try Certificate(copying: own)) }
      for index in 0..<max(0, OPENSSL_sk_num(others)) {
        guard let one = OPENSSL_sk_value(others, index) else { continue }
        found.append(try Certificate(copying: OpaquePointer(one)))
      }
      guard own != nil, let borrowed else { return (found, nil) }
      return (found, try PrivateKey(pem: borrowed.pem))
    } catch { throw .malformed(reason: "\(error)") }
  }
}

/// Writing.
extension PKCS12 {
  /// Guesses of the password cost this many rounds each. More would keep a telephone busy for seconds.
  private static let iterations: Int32 = 100_000

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

  private static func failure() -> CertificateError {
    .openSSL(operation: "writing a PKCS #12 file", reason: OpenSSLErrors.drain())
  }
}
