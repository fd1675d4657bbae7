import CSslPinningOpenSSL
import Foundation

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

  /// The key as unencrypted PKCS#8 (RFC 5958) in PEM. This is the secret itself.
  public var pem: String {
    get throws(CertificateError) {
      let bio = try MemoryBIO()
      guard PEM_write_bio_PKCS8PrivateKey(bio.pointer, handle.pointer, nil, nil, 0, nil, nil) == 1
      else { throw .openSSL(operation: "writing a private key", reason: OpenSSLErrors.drain()) }
      return bio.text
    }
  }

  /// The public half as SubjectPublicKeyInfo in DER (RFC 5280 section 4.1.2.7), as it will stand
  /// in every certificate issued for this key.
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
  /// An existing file is never overwritten, unless `replacing`: then readers see the old file or
  /// the new one, nothing in between.
  public func write(to file: URL, replacing: Bool = false) throws(CertificateError) {
    try PEMFile.write(try pem, to: file, mode: 0o600, replacing: replacing)
  }
}

/// Answers OpenSSL's question for a pass phrase with none; its default would ask at the terminal.
private func refusePassphrase(
  _: UnsafeMutablePointer<CChar>?, _: Int32, _: Int32, _: UnsafeMutableRawPointer?
) -> Int32 { -1 }
