#if os(Linux)
  import CSslPinningOpenSSL

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
