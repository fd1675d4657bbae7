#if os(Linux)
  import CSslPinningOpenSSL

  /// An RSA public key inside OpenSSL.
  final class PlatformRSAKey: Sendable {
    // Only read after init, which OpenSSL allows from several threads at a time.
    nonisolated(unsafe) private let key: OpaquePointer

    /// - Returns: `nil` where OpenSSL does not take the key.
    init?(pkcs1: [UInt8]) {
      ERR_set_mark()
      defer { ERR_pop_to_mark() }
      let key = pkcs1.withUnsafeBufferPointer { bytes in
        var cursor = bytes.baseAddress
        return d2i_PublicKey(EVP_PKEY_RSA, nil, &cursor, bytes.count)
      }
      guard let key else { return nil }
      self.key = key
    }

    deinit { EVP_PKEY_free(key) }

    /// RSASSA-PKCS1-v1_5 with SHA-512.
    func isValid(signature: [UInt8], over message: [UInt8]) -> Bool {
      // What goes wrong here must not surface as the error of the TLS connection that runs on this
      // thread.
      ERR_set_mark()
      defer { ERR_pop_to_mark() }
      guard let context = EVP_MD_CTX_new() else { return false }
      defer { EVP_MD_CTX_free(context) }
      var parameters: OpaquePointer?
      guard
        EVP_DigestVerifyInit(context, &parameters, PlatformDigest.sha512.algorithm, nil, key) == 1,
        EVP_PKEY_CTX_set_rsa_padding(parameters, RSA_PKCS1_PADDING) == 1
      else { return false }
      return EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
    }
  }
#endif
