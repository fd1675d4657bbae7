/// How a key of a key set signs. The key's own entry fixes it, never the signature: a signature
/// that could name its algorithm could choose the weakest.
public enum SignatureAlgorithm: String, Sendable, CaseIterable {
  /// RSASSA-PKCS1-v1_5 with SHA-512 (RFC 8017 §8.2), moduli of 1024 to 8192 bits.
  case rs512 = "RS512"
  /// ECDSA on P-256 with SHA-256 (FIPS 186-5 §6); the signature is the DER of `SEQUENCE { r, s }`
  /// (RFC 3279 §2.2.3), not the two numbers side by side as in RFC 7518.
  case es256 = "ES256"
  /// Ed25519 (RFC 8032 §5.1): 64 bytes.
  case edDSA = "EdDSA"
}
