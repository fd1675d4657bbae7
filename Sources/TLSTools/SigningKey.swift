import COpenSSL
import Foundation

/// The private key that registries are signed with: RSA, PKCS#1 v1.5, SHA-512 (RFC 8017 §8.2.1).
///
/// - Reads PKCS#8 and PKCS#1 in PEM, unencrypted: a server has nobody to ask for a pass phrase.
/// - Whatever else a file with a key in it may be is told apart, because the wrong one of two files
///   is the usual mistake.
/// - The secret leaves only through ``write(to:)``; no message contains any of it.
public struct SigningKey: Sendable {
  /// The shortest modulus that signs, in bits: clients refuse shorter ones.
  public static let minimumBits = 1024
  /// The longest modulus that signs, in bits.
  public static let maximumBits = 16384

  /// Bits of the modulus.
  public let bits: Int
  /// The public half as SubjectPublicKeyInfo in DER.
  public let publicKeyDER: [UInt8]
  /// The public half in PEM, `pub.pem`.
  public let publicKeyPEM: String

  private let key: PrivateKey

  /// Reads a private key.
  ///
  /// - Throws: ``SigningKeyError``.
  public init(pem: String) throws(SigningKeyError) {
    try Self.refuseOtherKinds(pem)
    let key: PrivateKey
    do throws(CertificateError) { key = try PrivateKey(pem: pem) } catch {
      throw .malformed(Self.reason(error))
    }
    try self.init(key: key)
  }

  /// Reads a private key from a file.
  ///
  /// - Throws: ``SigningKeyError``.
  public init(file: URL) throws(SigningKeyError) {
    try self.init(pem: try Self.text(of: file))
  }

  /// Makes a new key; 4096 bits take around a second.
  ///
  /// - Throws: ``SigningKeyError/tooSmall(bits:)`` and ``SigningKeyError/malformed(_:)``.
  public static func generate(bits: Int) throws(SigningKeyError) -> SigningKey {
    guard bits >= minimumBits else { throw .tooSmall(bits: bits) }
    let key: PrivateKey
    do throws(CertificateError) { key = try .generate(.rsa(bits: bits)) } catch {
      throw .malformed(reason(error))
    }
    return try SigningKey(key: key)
  }

  private init(key: PrivateKey) throws(SigningKeyError) {
    guard EVP_PKEY_is_a(key.handle.pointer, "RSA") == 1 else {
      let name = EVP_PKEY_get0_type_name(key.handle.pointer).map { String(cString: $0) }
      throw .notRSA(algorithm: name ?? "unknown")
    }
    guard key.bits >= Self.minimumBits else { throw .tooSmall(bits: key.bits) }
    guard key.bits <= Self.maximumBits else { throw .malformed("a modulus of \(key.bits) bits") }
    do throws(CertificateError) {
      publicKeyDER = try key.publicKeyDER
      publicKeyPEM = try key.publicKeyPEM
    } catch { throw .malformed(Self.reason(error)) }
    bits = key.bits
    self.key = key
  }

  /// The signature over `message`: as many bytes as the modulus has.
  ///
  /// - Throws: ``SigningKeyError/malformed(_:)`` where the key does not add up.
  public func sign(_ message: [UInt8]) throws(SigningKeyError) -> [UInt8] {
    OpenSSLErrors.clear()
    guard let context = EVP_MD_CTX_new() else { throw .malformed("out of memory") }
    defer { EVP_MD_CTX_free(context) }
    var parameters: OpaquePointer?
    guard EVP_DigestSignInit(context, &parameters, EVP_sha512(), nil, key.handle.pointer) == 1,
      EVP_PKEY_CTX_set_rsa_padding(parameters, RSA_PKCS1_PADDING) == 1
    else { throw .malformed(OpenSSLErrors.drain()) }
    var signature = [UInt8](repeating: 0, count: (bits + 7) / 8)
    var length = signature.count
    guard EVP_DigestSign(context, &signature, &length, message, message.count) == 1 else {
      throw .malformed(OpenSSLErrors.drain())
    }
    return Array(signature.prefix(length))
  }

  /// Writes the key as PKCS#8 in PEM, readable by its owner alone. An existing file is kept.
  ///
  /// - Throws: ``SigningKeyError/cannotWrite(path:reason:)``.
  public func write(to file: URL) throws(SigningKeyError) {
    do throws(CertificateError) { try key.write(to: file) } catch { throw Self.cannotWrite(error) }
  }

  /// Writes the public half in PEM, readable by everybody. An existing file is kept.
  ///
  /// - Throws: ``SigningKeyError/cannotWrite(path:reason:)``.
  public func writePublicKey(to file: URL) throws(SigningKeyError) {
    do throws(CertificateError) {
      try PEMFile.write(publicKeyPEM, to: file, mode: 0o644, replacing: false)
    } catch { throw Self.cannotWrite(error) }
  }

  static func text(of file: URL) throws(SigningKeyError) -> String {
    let path = file.path(percentEncoded: false)
    let bytes: [UInt8]
    do throws(SmallFile.Failure) { bytes = try SmallFile.read(path, limit: 1 << 20) } catch {
      throw .unreadable(path: path, reason: "\(error)")
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Tells what stands in the file from its PEM labels, before OpenSSL says only "no start line".
  static func refuseOtherKinds(_ pem: String) throws(SigningKeyError) {
    if pem.contains("-----BEGIN ENCRYPTED PRIVATE KEY-----")
      || pem.contains("Proc-Type: 4,ENCRYPTED")
    {
      throw .encrypted
    }
    guard !pem.contains("PRIVATE KEY-----") else { return }
    if pem.contains("PUBLIC KEY-----") { throw .publicKey }
    if pem.contains("-----BEGIN CERTIFICATE-----") { throw .certificate }
    throw .noKey
  }

  static func reason(_ error: CertificateError) -> String {
    switch error {
    case .malformed(_, let reason), .openSSL(_, let reason): reason
    default: error.description
    }
  }

  static func cannotWrite(_ error: CertificateError) -> SigningKeyError {
    if case .file(let path, let reason) = error { return .cannotWrite(path: path, reason: reason) }
    return .cannotWrite(path: "the key", reason: error.description)
  }
}
