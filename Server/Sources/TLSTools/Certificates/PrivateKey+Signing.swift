import CSslPinningOpenSSL
import SslPinningRules

/// Signing, in the one way that the type of the key fixes (``SignatureAlgorithm``).
extension PrivateKey {
  /// The sizes of RSA keys that clients take, in bits.
  static let signingBits = 1024...8192

  /// What OpenSSL calls the type, such as `EC`.
  var typeName: String {
    EVP_PKEY_get0_type_name(handle.pointer).map { String(cString: $0) } ?? "unknown"
  }

  /// How the key signs.
  ///
  /// - Throws: ``SigningKeyError`` for a key that no client would verify a signature of.
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

  /// The signature over `message`, as ``SignatureAlgorithm`` says that it looks.
  ///
  /// - Throws: ``SigningKeyError``; ``SigningKeyError/malformed(_:)`` where the key does not add up.
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
