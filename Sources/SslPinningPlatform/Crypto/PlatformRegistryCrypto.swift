import SslPinningRules

/// The platform's own library behind the trust rules of registries.
public struct PlatformRegistryCrypto: RegistryCrypto {
  /// There is nothing to set.
  public init() {}

  public func sha256(_ bytes: [UInt8]) -> [UInt8] { Digest.sha256(bytes) }

  public func verifier(
    _ algorithm: SignatureAlgorithm, spki: [UInt8]
  ) -> (any SignatureVerifier)? {
    TrustKey(algorithm, spkiDER: spki)
  }
}
