import COpenSSL
import Foundation
import Pinning

/// A private key that signs key sets and statements: RSA, P-256 or Ed25519. Format-1 payloads are
/// signed by ``SigningKey`` alone.
///
/// - The type of the key fixes the algorithm (``SignatureAlgorithm``).
/// - Reads PKCS#8, PKCS#1 and SEC 1 in PEM, unencrypted.
/// - The secret leaves only through ``write(to:)``; no message contains any of it.
public struct TrustSigningKey: Sendable {
  /// What to generate.
  public enum Kind: Hashable, Sendable {
    /// RSA with a modulus of so many bits; signatures are as long.
    case rsa(bits: Int)
    /// ECDSA on P-256: what hardware keys and key services have.
    case p256
    /// Ed25519: the smallest signatures, the same bytes each time.
    case ed25519
  }

  /// How the key signs.
  public let algorithm: SignatureAlgorithm
  /// The public half as SubjectPublicKeyInfo in DER.
  public let publicKeyDER: [UInt8]
  /// The public half in PEM.
  public let publicKeyPEM: String

  private let key: PrivateKey

  /// Reads a private key.
  ///
  /// - Throws: ``SigningKeyError``.
  public init(pem: String) throws(SigningKeyError) {
    try SigningKey.refuseOtherKinds(pem)
    let key: PrivateKey
    do throws(CertificateError) { key = try PrivateKey(pem: pem) } catch {
      throw .malformed(SigningKey.reason(error))
    }
    try self.init(key: key)
  }

  /// Reads a private key from a file.
  ///
  /// - Throws: ``SigningKeyError``.
  public init(file: URL) throws(SigningKeyError) {
    try self.init(pem: try SigningKey.text(of: file))
  }

  /// Makes a new key from the system's random source.
  ///
  /// - Throws: ``SigningKeyError/tooSmall(bits:)`` and ``SigningKeyError/malformed(_:)``.
  public static func generate(_ kind: Kind) throws(SigningKeyError) -> TrustSigningKey {
    let algorithm: PrivateKey.Algorithm
    switch kind {
    case .rsa(let bits):
      guard bits >= SigningKey.minimumBits else { throw .tooSmall(bits: bits) }
      algorithm = .rsa(bits: bits)
    case .p256: algorithm = .p256
    case .ed25519: algorithm = .ed25519
    }
    let key: PrivateKey
    do throws(CertificateError) { key = try .generate(algorithm) } catch {
      throw .malformed(SigningKey.reason(error))
    }
    return try TrustSigningKey(key: key)
  }

  private init(key: PrivateKey) throws(SigningKeyError) {
    algorithm = try Self.algorithm(of: key)
    do throws(CertificateError) {
      publicKeyDER = try key.publicKeyDER
      publicKeyPEM = try key.publicKeyPEM
    } catch { throw .malformed(SigningKey.reason(error)) }
    self.key = key
  }

  private static func algorithm(of key: PrivateKey) throws(SigningKeyError) -> SignatureAlgorithm {
    let pointer = key.handle.pointer
    if EVP_PKEY_is_a(pointer, "ED25519") == 1 { return .edDSA }
    if EVP_PKEY_is_a(pointer, "RSA") == 1 {
      guard key.bits >= SigningKey.minimumBits else { throw .tooSmall(bits: key.bits) }
      guard key.bits <= SigningKey.maximumBits else { throw .malformed("\(key.bits) bits") }
      return .rs512
    }
    let type = EVP_PKEY_get0_type_name(pointer).map { String(cString: $0) } ?? "unknown"
    guard EVP_PKEY_is_a(pointer, "EC") == 1 else { throw .unsupportedAlgorithm(type) }
    var name = [CChar](repeating: 0, count: 80)
    var length = 0
    let known = EVP_PKEY_get_group_name(pointer, &name, name.count, &length) == 1
    let curve = String(decoding: name.prefix(length).map(UInt8.init(bitPattern:)), as: UTF8.self)
    guard known, curve == "prime256v1" else {
      throw .unsupportedAlgorithm("EC on \(known ? curve : "a curve without a name")")
    }
    return .es256
  }

  /// The signature over `message`, as ``SignatureAlgorithm`` says that it looks.
  ///
  /// - Throws: ``SigningKeyError/malformed(_:)`` where the key does not add up.
  public func sign(_ message: [UInt8]) throws(SigningKeyError) -> [UInt8] {
    OpenSSLErrors.clear()
    guard let context = EVP_MD_CTX_new() else { throw .malformed("out of memory") }
    defer { EVP_MD_CTX_free(context) }
    let digest =
      switch algorithm {
      case .rs512: EVP_sha512()
      case .es256: EVP_sha256()
      case .edDSA: OpaquePointer?.none  // Ed25519 hashes the message itself.
      }
    // PKCS#1 v1.5 is OpenSSL's padding for RSA keys unless told otherwise.
    var length = 0
    guard EVP_DigestSignInit(context, nil, digest, nil, key.handle.pointer) == 1,
      EVP_DigestSign(context, nil, &length, message, message.count) == 1
    else { throw .malformed(OpenSSLErrors.drain()) }
    var signature = [UInt8](repeating: 0, count: length)
    guard EVP_DigestSign(context, &signature, &length, message, message.count) == 1 else {
      throw .malformed(OpenSSLErrors.drain())
    }
    return Array(signature.prefix(length))
  }

  /// Writes the key as PKCS#8 in PEM, readable by its owner alone. An existing file is kept.
  ///
  /// - Throws: ``SigningKeyError/cannotWrite(path:reason:)``.
  public func write(to file: URL) throws(SigningKeyError) {
    do throws(CertificateError) { try key.write(to: file) } catch {
      throw SigningKey.cannotWrite(error)
    }
  }

  /// Writes the public half in PEM, readable by everybody. An existing file is kept.
  ///
  /// - Throws: ``SigningKeyError/cannotWrite(path:reason:)``.
  public func writePublicKey(to file: URL) throws(SigningKeyError) {
    do throws(CertificateError) {
      try PEMFile.write(publicKeyPEM, to: file, mode: 0o644, replacing: false)
    } catch { throw SigningKey.cannotWrite(error) }
  }
}
