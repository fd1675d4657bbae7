/// Checks signatures under one public key. The platform implements it; the trust rules only ask.
public protocol SignatureVerifier: Sendable {
  /// Whether `signature` was made over `message` with this key. Any failure is `false`.
  func isValid(signature: [UInt8], over message: [UInt8]) -> Bool
}
