import CSslPinningOpenSSL
import Foundation
import SslPinningPlatform
import SslPinningRules

/// A private key of a server or a certificate authority, kept inside OpenSSL.
///
/// Copies share the one key. Hazard: `pem` and `write(to:)` hand out the secret; nothing else here
/// prints it, and no message or `description` contains any of it.
public struct PrivateKey: Sendable {
  /// What to generate.
  public enum Algorithm: Sendable, Hashable {
    /// ECDSA on NIST P-256, named curve.
    case p256
    /// Ed25519 (RFC 8032).
    case ed25519
    /// RSA with the public exponent 65537; 1024…8192 bits.
    case rsa(bits: Int)
  }

  let handle: OpenSSLObject

  init(owning pointer: OpaquePointer) {
    handle = OpenSSLObject(pointer) { EVP_PKEY_free($0) }
  }

  /// Makes a new key from the system's random source. RSA with 4096 bits takes around a second.
  public static func generate(_ algorithm: Algorithm) throws(CertificateError) -> PrivateKey {
    OpenSSLErrors.clear()
    let name: String
    switch algorithm {
    case .p256: name = "EC"
    case .ed25519: name = "ED25519"
    case .rsa(let bits):
      guard (1024...8192).contains(bits) else { throw .keySize(bits) }
      name = "RSA"
    }
    guard let context = EVP_PKEY_CTX_new_from_name(nil, name, nil) else {
      throw .openSSL(operation: "key generation", reason: OpenSSLErrors.drain())
    }
    defer { EVP_PKEY_CTX_free(context) }
    var made: OpaquePointer?
    guard EVP_PKEY_keygen_init(context) == 1, configure(context, for: algorithm),
      EVP_PKEY_generate(context, &made) == 1, let made
    else {
      throw .openSSL(operation: "key generation", reason: OpenSSLErrors.drain())
    }
    return PrivateKey(owning: made)
  }

  private static func configure(_ context: OpaquePointer, for algorithm: Algorithm) -> Bool {
    switch algorithm {
    case .p256: EVP_PKEY_CTX_set_group_name(context, "P-256") == 1
    case .ed25519: true
    case .rsa(let bits): EVP_PKEY_CTX_set_rsa_keygen_bits(context, Int32(bits)) == 1
    }
  }

  /// Reads the first private key of a PEM text: PKCS#8, PKCS#1 or SEC 1, never an encrypted one
  /// (a server has nobody to ask for the pass phrase).
  public init(pem: String) throws(CertificateError) {
    OpenSSLErrors.clear()
    guard pem.contains("PRIVATE KEY-----") else { throw .noPEM(of: "PRIVATE KEY") }
    let bio = try MemoryBIO(Array(pem.utf8))
    guard let key = PEM_read_bio_PrivateKey(bio.pointer, nil, refusePassphrase, nil) else {
      throw .malformed(what: "private key", reason: OpenSSLErrors.drain())
    }
    self.init(owning: key)
  }

  /// Whether bytes have the form of a private key in DER.
  ///
  ///     SEQUENCE { version INTEGER   -- 0 or 1
  ///       … }                                                    PKCS#1, PKCS#8, SEC 1
  ///     SEQUENCE { encryptionAlgorithm SEQUENCE, OCTET STRING }  encrypted PKCS#8 (RFC 5958 section 3)
  public static func hasForm(of der: [UInt8]) -> Bool {
    var outer = DERReader(der[...])
    guard let key = try? outer.element(tag: .sequence, what: "key") else { return false }
    var fields = DERReader(key.contents)
    if let version = try? fields.element(tag: .integer, what: "version") {
      return version.contents == [0] || version.contents == [1]
    }
    return (try? fields.element(tag: .sequence, what: "encryptionAlgorithm")) != nil
      && fields.nextTag == .octetString
  }

  /// The key as unencrypted PKCS#8 (RFC 5958) in PEM. This is the secret itself.
  public var pem: String {
    get throws(CertificateError) {
      let bio = try MemoryBIO()
      guard PEM_write_bio_PKCS8PrivateKey(bio.pointer, handle.pointer, nil, nil, 0, nil, nil) == 1
      else { throw .openSSL(operation: "writing a private key", reason: OpenSSLErrors.drain()) }
      return bio.text
    }
  }

  /// The public half as SubjectPublicKeyInfo in DER (RFC 5280 section 4.1.2.7), as every certificate
  /// for this key carries it.
  public var publicKeyDER: [UInt8] {
    get throws(CertificateError) {
      var bytes: UnsafeMutablePointer<UInt8>?
      let count = i2d_PUBKEY(handle.pointer, &bytes)
      guard count > 0, let bytes else {
        throw .openSSL(operation: "writing a public key", reason: OpenSSLErrors.drain())
      }
      defer { CRYPTO_free(bytes, #file, #line) }
      return Array(UnsafeBufferPointer(start: bytes, count: Int(count)))
    }
  }

  /// The public half in PEM (`PUBLIC KEY`).
  public var publicKeyPEM: String {
    get throws(CertificateError) {
      let bio = try MemoryBIO()
      guard PEM_write_bio_PUBKEY(bio.pointer, handle.pointer) == 1 else {
        throw .openSSL(operation: "writing a public key", reason: OpenSSLErrors.drain())
      }
      return bio.text
    }
  }

  /// The size in bits of the modulus (RSA) or of the curve (P-256: 256).
  public var bits: Int { Int(EVP_PKEY_get_bits(handle.pointer)) }

  /// Writes the PEM to a file that only its owner can read (mode 0600 from the first moment).
  ///
  /// An existing file is never overwritten, unless `replacing`: then it is swapped atomically.
  public func write(to file: URL, replacing: Bool = false) throws(CertificateError) {
    try PEMFile.write(try pem, to: file, mode: 0o600, replacing: replacing)
  }
}

/// Gives OpenSSL no pass phrase; its default would ask at the terminal.
private func refusePassphrase(
  _: UnsafeMutablePointer<CChar>?, _: Int32, _: Int32, _: UnsafeMutableRawPointer?
) -> Int32 { -1 }

/// Signing, with the one algorithm that the type of the key allows (``SignatureAlgorithm``).
extension PrivateKey {
  /// The sizes of RSA keys that clients accept, in bits.
  static let signingBits = 1024...8192

  /// OpenSSL's name of the type, such as `EC`.
  var typeName: String {
    EVP_PKEY_get0_type_name(handle.pointer).map { String(cString: $0) } ?? "unknown"
  }

  /// How the key signs.
  ///
  /// - Throws: ``SigningKeyError`` for a key whose signatures no client would verify.
  var signatureAlgorithm: SignatureAlgorithm {
    get throws(SigningKeyError) {
      let pointer = handle.pointer
      if EVP_PKEY_is_a(pointer, "ED25519") == 1 { return .edDSA }
      if EVP_PKEY_is_a(pointer, "RSA") == 1 {
        guard bits >= Self.signingBits.lowerBound else { throw .tooSmall(bits: bits) }
        guard bits <= Self.signingBits.upperBound else {
          throw .tooLarge(bits: bits)
        }
        return .rs512
      }
      guard EVP_PKEY_is_a(pointer, "EC") == 1 else { throw .unsupportedAlgorithm(typeName) }
      guard let curve = curveName, curve == "prime256v1" else {
        throw .unsupportedAlgorithm("EC on \(curveName ?? "a curve without a name")")
      }
      return .es256
    }
  }

  private var curveName: String? {
    var name = [CChar](repeating: 0, count: 80)
    var length = 0
    guard EVP_PKEY_get_group_name(handle.pointer, &name, name.count, &length) == 1 else {
      return nil
    }
    return String(decoding: name.prefix(length).map(UInt8.init(bitPattern:)), as: UTF8.self)
  }

  /// The signature over `message`, in the form that ``SignatureAlgorithm`` describes.
  ///
  /// - Throws: ``SigningKeyError``; ``SigningKeyError/malformed(_:)`` if the key is inconsistent.
  func sign(_ message: [UInt8]) throws(SigningKeyError) -> [UInt8] {
    let digest =
      switch try signatureAlgorithm {
      case .rs512: EVP_sha512()
      case .es256: EVP_sha256()
      case .edDSA: OpaquePointer?.none  // Ed25519 hashes the message itself.
      }
    OpenSSLErrors.clear()
    guard let context = EVP_MD_CTX_new() else { throw .malformed("out of memory") }
    defer { EVP_MD_CTX_free(context) }
    // PKCS#1 v1.5 is OpenSSL's padding for RSA keys unless told otherwise.
    var length = 0
    guard EVP_DigestSignInit(context, nil, digest, nil, handle.pointer) == 1,
      EVP_DigestSign(context, nil, &length, message, message.count) == 1
    else { throw .malformed(OpenSSLErrors.drain()) }
    var signature = [UInt8](repeating: 0, count: length)
    guard EVP_DigestSign(context, &signature, &length, message, message.count) == 1 else {
      throw .malformed(OpenSSLErrors.drain())
    }
    return Array(signature.prefix(length))
  }
}

/// Files that hold keys and certificates.
///
/// - A file gets its mode when it is created: between `open` and `chmod` another user could read the key.
/// - An existing file is not overwritten unless asked, and then swapped atomically.
package enum PEMFile {
  static func write(
    _ text: String, to file: URL, mode: mode_t, replacing: Bool
  ) throws(CertificateError) {
    let path = file.path(percentEncoded: false)
    guard replacing else { return try create(path, mode: mode, bytes: text.utf8) }
    let staged = path + "." + String(UInt32.random(in: .min ... .max), radix: 16)
    try create(staged, mode: mode, bytes: text.utf8)
    guard rename(staged, path) == 0 else {
      let reason = String(cString: strerror(errno)).lowercased()
      unlink(staged)
      throw .file(path: path, reason: reason)
    }
  }

  /// - Parameters:
  ///   - directory: an open directory, to which a relative path is relative.
  ///   - owner: gets the file before anything is written to it; `nil`: the user of this process.
  package static func create(
    _ path: String, mode: mode_t, bytes: some Sequence<UInt8>, in directory: Int32 = AT_FDCWD,
    for owner: (user: uid_t, group: gid_t)? = nil
  ) throws(CertificateError) {
    let flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW
    let descriptor = openat(directory, path, flags, mode)
    guard descriptor >= 0 else {
      throw .file(path: path, reason: String(cString: strerror(errno)).lowercased())
    }
    defer { close(descriptor) }
    if let owner, fchown(descriptor, owner.user, owner.group) != 0 {
      let reason = String(cString: strerror(errno)).lowercased()
      unlinkat(directory, path, 0)
      throw .file(path: path, reason: reason)
    }
    var rest = Array(bytes)[...]
    while !rest.isEmpty {
      let written = rest.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
      if written < 0, errno == EINTR { continue }
      guard written > 0 else {
        let reason = String(cString: strerror(errno)).lowercased()
        unlinkat(directory, path, 0)
        throw .file(path: path, reason: reason)
      }
      rest = rest.dropFirst(written)
    }
  }
}

/// Why there is no signing key.
public enum SigningKeyError: Error, Equatable, Sendable {
  /// No PEM block of a key in the text.
  case noKey
  /// The key is encrypted with a pass phrase.
  case encrypted
  /// A public key where the private one is needed.
  case publicKey
  /// A certificate where the private key is needed.
  case certificate
  /// A key of another kind, such as `EC`.
  case notRSA(algorithm: String)
  /// A key of a kind that key sets do not know, such as `EC on secp384r1`.
  case unsupportedAlgorithm(String)
  /// An RSA key with fewer bits than clients accept.
  case tooSmall(bits: Int)
  /// An RSA key with more bits than clients accept.
  case tooLarge(bits: Int)
  /// The key block cannot be read or used; the reason is OpenSSL's.
  case malformed(String)
  /// Clients would not read the public half: a compressed point, for example.
  case unreadableByClients
  /// A command holds the key, and did not sign.
  case command(SigningCommandFault)
  /// The file could not be read; the reason is the system's.
  case unreadable(path: String, reason: String)
  /// The file could not be written; the reason is the system's.
  case cannotWrite(path: String, reason: String)
}

extension SigningKeyError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .noKey:
      "no private key in the text; hint: it begins with -----BEGIN PRIVATE KEY-----"
    case .encrypted:
      "the private key is encrypted; hint: openssl pkey -in prv.pem -out plain.pem removes that"
    case .publicKey: "a public key, and the private one is needed; hint: prv.pem, not pub.pem"
    case .certificate: "a certificate, and a private key is needed"
    case .notRSA(let algorithm):
      "the key is \(algorithm), and registries are signed with RSA; hint: ssl-pinning keys generate"
    case .unsupportedAlgorithm(let name):
      "the key is \(name); hint: key sets take RSA, EC on P-256 and Ed25519"
    case .tooSmall(let bits):
      "the key has \(bits) bits, and clients refuse less than \(SigningKey.minimumBits)"
    case .tooLarge(let bits):
      "the key has \(bits) bits, and clients refuse more than \(SigningKey.maximumBits), because Apple's "
        + "systems take no longer ones; hint: ssl-pinning keys generate"
    case .malformed(let reason): "the private key cannot be used: \(reason); hint: is it cut off?"
    case .unreadableByClients:
      "clients would not read the key's public half; hint: ssl-pinning keys generate"
    case .command(let fault): fault.description
    case .unreadable(let path, let reason): "cannot read \(path): \(reason)"
    case .cannotWrite(let path, let reason): "cannot write \(path): \(reason)"
    }
  }
}

extension SigningKeyError: ExplainedError {}
