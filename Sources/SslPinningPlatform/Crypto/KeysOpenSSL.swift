#if os(Linux)
  import CSslPinningOpenSSL
  import SslPinningRules

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

  /// One hash function of OpenSSL. Fetched once: a look-up on every call takes twice as long as
  /// hashing a key.
  struct PlatformDigest: Sendable {
    static let sha256 = PlatformDigest(name: "SHA256", size: 32)
    static let sha512 = PlatformDigest(name: "SHA512", size: 64)

    // An EVP_MD is immutable and is never freed here: it lives as long as the process.
    nonisolated(unsafe) let algorithm: OpaquePointer?
    let size: Int

    private init(name: String, size: Int) {
      algorithm = EVP_MD_fetch(nil, name, nil)
      self.size = size
    }

    var isAvailable: Bool { algorithm != nil }

    func hash(_ bytes: some Collection<UInt8>) -> [UInt8] {
      bytes.withContiguousStorageIfAvailable(hash) ?? Array(bytes).withUnsafeBufferPointer(hash)
    }

    private func hash(_ bytes: UnsafeBufferPointer<UInt8>) -> [UInt8] {
      [UInt8](unsafeUninitializedCapacity: size) { out, count in
        var written: UInt32 = 0
        let done = EVP_Digest(
          bytes.baseAddress, bytes.count, out.baseAddress, &written, algorithm, nil)
        // No input leads here; a process whose crypto library cannot hash must not go on guessing.
        precondition(done == 1 && written == size, "OpenSSL cannot compute a SHA-2 digest")
        count = size
      }
    }
  }
#endif
