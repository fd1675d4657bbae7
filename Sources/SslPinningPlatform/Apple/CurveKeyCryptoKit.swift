#if canImport(Security)
  import CryptoKit
  import Foundation
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
#endif
