#if canImport(Security)
  import CryptoKit
  import Foundation
  import Security
  import SslPinningRules

  /// A P-256 or Ed25519 public key inside CryptoKit.
  ///
  /// Its DER was read by ``CurveKeyDER``: what is refused there never comes here.
  enum PlatformCurveKey: Sendable {
    case p256(P256.Signing.PublicKey)
    case ed25519(Curve25519.Signing.PublicKey)

    /// - Returns: `nil` where CryptoKit does not take the key: the point is not on the curve. For Ed25519 no document
    ///   says that it looks; a key that is none would be taken then, and verify nothing.
    init?(_ der: CurveKeyDER) {
      switch der.algorithm {
      case .es256:
        guard let key = try? P256.Signing.PublicKey(x963Representation: der.key) else {
          return nil
        }
        self = .p256(key)
      case .edDSA:
        guard let key = try? Curve25519.Signing.PublicKey(rawRepresentation: der.key) else {
          return nil
        }
        self = .ed25519(key)
      default: return nil
      }
    }

    /// ECDSA with SHA-256 over a DER signature, or Ed25519.
    func isValid(signature: [UInt8], over message: [UInt8]) -> Bool {
      switch self {
      case .p256(let key):
        guard let parsed = try? P256.Signing.ECDSASignature(derRepresentation: signature) else {
          return false
        }
        return key.isValidSignature(parsed, for: message)
      case .ed25519(let key): return key.isValidSignature(signature, for: message)
      }
    }
  }

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

  /// An RSA public key inside Security.
  ///
  /// Its DER was read by ``RSAKeyDER``: what is refused there never comes here. Security takes no modulus beyond
  /// 8192 bits, which is why ``VerificationKey/maximumBits`` says so for all platforms.
  final class PlatformRSAKey: @unchecked Sendable {
    // Immutable once made; Security allows its use from several threads at a time.
    private let key: SecKey

    /// - Returns: `nil` where Security does not take the key.
    init?(pkcs1: [UInt8]) {
      let attributes: [CFString: Any] = [
        kSecAttrKeyType: kSecAttrKeyTypeRSA, kSecAttrKeyClass: kSecAttrKeyClassPublic,
      ]
      guard
        let key = SecKeyCreateWithData(Data(pkcs1) as CFData, attributes as CFDictionary, nil)
      else { return nil }
      self.key = key
    }

    /// RSASSA-PKCS1-v1_5 with SHA-512.
    func isValid(signature: [UInt8], over message: [UInt8]) -> Bool {
      SecKeyVerifySignature(
        key, .rsaSignatureMessagePKCS1v15SHA512, Data(message) as CFData, Data(signature) as CFData,
        nil)
    }
  }
#endif
