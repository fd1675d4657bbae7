#if canImport(Security)
  import Foundation
  import Security

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
      let made = SecKeyCreateWithData(Data(pkcs1) as CFData, attributes as CFDictionary, nil)
      guard let made else { return nil }
      key = made
    }

    /// RSASSA-PKCS1-v1_5 with SHA-512.
    func isValid(signature: [UInt8], over message: [UInt8]) -> Bool {
      SecKeyVerifySignature(
        key, .rsaSignatureMessagePKCS1v15SHA512, Data(message) as CFData, Data(signature) as CFData,
        nil)
    }
  }
#endif
