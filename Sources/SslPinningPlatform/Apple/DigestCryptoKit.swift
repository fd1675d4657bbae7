#if canImport(Security)
  import CryptoKit
  import Foundation

  /// One hash function of CryptoKit.
  enum PlatformDigest: Sendable {
    case sha256
    case sha512

    /// CryptoKit is part of the system.
    var isAvailable: Bool { true }

    func hash(_ bytes: some Collection<UInt8>) -> [UInt8] {
      bytes.withContiguousStorageIfAvailable(hash) ?? Array(bytes).withUnsafeBufferPointer(hash)
    }

    private func hash(_ bytes: UnsafeBufferPointer<UInt8>) -> [UInt8] {
      switch self {
      case .sha256: [UInt8](SHA256.hash(data: UnsafeRawBufferPointer(bytes)))
      case .sha512: [UInt8](SHA512.hash(data: UnsafeRawBufferPointer(bytes)))
      }
    }
  }
#endif
