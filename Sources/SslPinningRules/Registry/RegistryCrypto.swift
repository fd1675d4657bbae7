/// The cryptography that the trust rules ask for. The platform implements it.
public protocol RegistryCrypto: Sendable {
  /// SHA-256 (FIPS 180-4): 32 bytes.
  func sha256(_ bytes: [UInt8]) -> [UInt8]

  /// The key to check signatures with; `nil` where `spki` is not the one DER spelling of a
  /// SubjectPublicKeyInfo of this algorithm.
  func verifier(_ algorithm: SignatureAlgorithm, spki: [UInt8]) -> (any SignatureVerifier)?
}
