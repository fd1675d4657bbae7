#if os(Linux)
  import CSslPinningOpenSSL
  import SslPinningRules

  /// A P-256 or Ed25519 public key inside OpenSSL.
  final class PlatformCurveKey: Sendable {
    private let algorithm: SignatureAlgorithm
    // Only read after init, which OpenSSL allows from several threads at a time.
    nonisolated(unsafe) private let key: OpaquePointer

    /// - Returns: `nil` where OpenSSL does not take the key: the point is not on the curve.
    init?(_ der: CurveKeyDER) {
      ERR_set_mark()
      defer { ERR_pop_to_mark() }
      let key = der.spki.withUnsafeBufferPointer { bytes in
        var cursor = bytes.baseAddress
        return d2i_PUBKEY(nil, &cursor, bytes.count)
      }
      guard let key else { return nil }
      (self.key, algorithm) = (key, der.algorithm)
    }

    deinit { EVP_PKEY_free(key) }

    /// ECDSA with SHA-256 over a DER signature, or Ed25519.
    func isValid(signature: [UInt8], over message: [UInt8]) -> Bool {
      // What goes wrong here must not surface as the error of the TLS connection that runs on this
      // thread.
      ERR_set_mark()
      defer { ERR_pop_to_mark() }
      guard let context = EVP_MD_CTX_new() else { return false }
      defer { EVP_MD_CTX_free(context) }
      // Ed25519 hashes the message itself.
      let digest = algorithm == .es256 ? PlatformDigest.sha256.algorithm : nil
      guard EVP_DigestVerifyInit(context, nil, digest, nil, key) == 1 else { return false }
      return EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
    }
  }
#endif
