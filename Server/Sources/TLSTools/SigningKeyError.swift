import SslPinningPlatform

/// Why there is no signing key.
public enum SigningKeyError: Error, Equatable, Sendable {
  /// No PEM block of a key in the text.
  case noKey
  /// The key is under a pass phrase.
  case encrypted
  /// A public key where the private one is needed.
  case publicKey
  /// A certificate where the private key is needed.
  case certificate
  /// A key of another kind, such as `EC`.
  case notRSA(algorithm: String)
  /// A key of a kind that key sets do not know, such as `EC on secp384r1`.
  case unsupportedAlgorithm(String)
  /// An RSA key with fewer bits than clients accept.
  case tooSmall(bits: Int)
  /// An RSA key with more bits than clients accept.
  case tooLarge(bits: Int)
  /// A key block that cannot be read or used; the reason is OpenSSL's.
  case malformed(String)
  /// Clients would not read the public half: a compressed point, for example.
  case unreadableByClients
  /// The file could not be read; the reason is the system's.
  case unreadable(path: String, reason: String)
  /// The file could not be written; the reason is the system's.
  case cannotWrite(path: String, reason: String)
}

extension SigningKeyError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .noKey:
      "no private key in the text; hint: it begins with -----BEGIN PRIVATE KEY-----"
    case .encrypted:
      "the private key is encrypted; hint: openssl pkey -in prv.pem -out plain.pem removes that"
    case .publicKey: "a public key, and the private one is needed; hint: prv.pem, not pub.pem"
    case .certificate: "a certificate, and a private key is needed"
    case .notRSA(let algorithm):
      "the key is \(algorithm), and registries are signed with RSA; hint: ssl-pinning keys generate"
    case .unsupportedAlgorithm(let name):
      "the key is \(name); hint: key sets take RSA, EC on P-256 and Ed25519"
    case .tooSmall(let bits):
      "the key has \(bits) bits, and clients refuse less than \(SigningKey.minimumBits)"
    case .tooLarge(let bits):
      "the key has \(bits) bits, and clients refuse more than \(SigningKey.maximumBits), because Apple's "
        + "systems take no longer ones; hint: ssl-pinning keys generate"
    case .malformed(let reason): "the private key cannot be used: \(reason); hint: is it cut off?"
    case .unreadableByClients:
      "clients would not read the key's public half; hint: ssl-pinning keys generate"
    case .unreadable(let path, let reason): "cannot read \(path): \(reason)"
    case .cannotWrite(let path, let reason): "cannot write \(path): \(reason)"
    }
  }
}

extension SigningKeyError: ExplainedError {}
