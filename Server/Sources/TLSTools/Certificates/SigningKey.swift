import CSslPinningOpenSSL
import Foundation

/// The private key that signs registries of format 1: RSA, PKCS#1 v1.5, SHA-512 (RFC 8017 §8.2.1).
/// Key sets call that RS512, so the same key can also sign statements: ``trustKey``.
///
/// Reads the formats that ``TrustSigningKey`` reads, and refuses any key but RSA.
public struct SigningKey: Sendable {
  /// The shortest modulus, in bits, that clients accept.
  public static let minimumBits = PrivateKey.signingBits.lowerBound
  /// The longest modulus, in bits, that clients accept.
  public static let maximumBits = PrivateKey.signingBits.upperBound

  /// The same key for statements and key sets.
  public let trustKey: TrustSigningKey

  /// Bits of the modulus.
  public var bits: Int { trustKey.bits }
  /// The public half as SubjectPublicKeyInfo in DER.
  public var publicKeyDER: [UInt8] { trustKey.publicKeyDER }
  /// Whether a command signs: that takes a while, and may fail.
  package var isHeldByCommand: Bool { trustKey.isHeldByCommand }
  /// The public half in PEM, `pub.pem`.
  public var publicKeyPEM: String { trustKey.publicKeyPEM }

  /// Reads a private key.
  ///
  /// - Throws: ``SigningKeyError``.
  public init(pem: String) throws(SigningKeyError) {
    try self.init { () throws(SigningKeyError) in try TrustSigningKey(pem: pem) }
  }

  /// Reads a private key from a file.
  ///
  /// - Throws: ``SigningKeyError``.
  public init(file: URL) throws(SigningKeyError) {
    try self.init { () throws(SigningKeyError) in try TrustSigningKey(file: file) }
  }

  /// Reads a private key, or the command that signs with one, of a file that somebody named.
  ///
  /// - Throws: ``SigningKeyError``.
  package init(text: String, named path: String) throws(SigningKeyError) {
    try self.init { () throws(SigningKeyError) in try TrustSigningKey(text: text, named: path) }
  }

  /// Makes a new key; 4096 bits take around a second.
  ///
  /// - Throws: ``SigningKeyError/tooSmall(bits:)`` and ``SigningKeyError/malformed(_:)``.
  public static func generate(bits: Int) throws(SigningKeyError) -> SigningKey {
    try SigningKey(try .generate(.rsa(bits: bits)))
  }

  /// Uses a key that was already read.
  ///
  /// - Throws: ``SigningKeyError/notRSA(algorithm:)``.
  public init(_ key: TrustSigningKey) throws(SigningKeyError) {
    guard key.algorithm == .rs512 else { throw .notRSA(algorithm: key.typeName) }
    trustKey = key
  }

  private init(
    reading read: () throws(SigningKeyError) -> TrustSigningKey
  ) throws(SigningKeyError) {
    let key: TrustSigningKey
    do throws(SigningKeyError) { key = try read() } catch {
      guard case .unsupportedAlgorithm(let name) = error else { throw error }
      throw .notRSA(algorithm: name)
    }
    try self.init(key)
  }

  /// The signature over `message`: as many bytes as the modulus has.
  ///
  /// - Throws: ``SigningKeyError/malformed(_:)`` if the key is inconsistent.
  public func sign(_ message: [UInt8]) throws(SigningKeyError) -> [UInt8] {
    try trustKey.sign(message)
  }

  /// Writes the key as PKCS#8 in PEM, readable by its owner alone. An existing file is kept.
  ///
  /// - Throws: ``SigningKeyError/cannotWrite(path:reason:)``.
  public func write(to file: URL) throws(SigningKeyError) { try trustKey.write(to: file) }

  /// Writes the public half in PEM, readable by everybody. An existing file is kept.
  ///
  /// - Throws: ``SigningKeyError/cannotWrite(path:reason:)``.
  public func writePublicKey(to file: URL) throws(SigningKeyError) {
    try trustKey.writePublicKey(to: file)
  }
}

/// HMAC with SHA-256 (RFC 2104, FIPS 198-1): a valid tag proves that its maker had the key.
public enum MessageAuthentication {
  /// How many bytes a tag has.
  public static let tagBytes = 32

  /// The tag of a message.
  ///
  /// - Throws: ``CertificateError/openSSL(operation:reason:)``, never for good input.
  public static func tag(
    over message: [UInt8], key: [UInt8]
  ) throws(CertificateError) -> [UInt8] {
    OpenSSLErrors.clear()
    var tag = [UInt8](repeating: 0, count: tagBytes)
    var length = 0
    guard
      EVP_Q_mac(
        nil, "HMAC", nil, "SHA256", nil, key, key.count, message, message.count, &tag, tag.count,
        &length) != nil, length == tagBytes
    else { throw .openSSL(operation: "HMAC", reason: OpenSSLErrors.drain()) }
    return tag
  }

  /// Whether a tag belongs to the message. Compares in constant time, so that nobody can guess the right
  /// tag byte by byte; only its length shows.
  ///
  /// - Throws: ``CertificateError/openSSL(operation:reason:)``.
  public static func isTag(
    _ tag: [UInt8], over message: [UInt8], key: [UInt8]
  ) throws(CertificateError) -> Bool {
    let right = try self.tag(over: message, key: key)
    return tag.count == right.count && CRYPTO_memcmp(tag, right, right.count) == 0
  }
}
