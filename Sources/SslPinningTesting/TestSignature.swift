import SslPinningPlatform
import SslPinningRules

/// Signatures that anybody can make: SHA-256 over the key's name and the message.
///
/// A scripted registry never leaves the process, so nothing has to be kept from anybody; what is
/// tested with it is what a client does with good and bad signatures, which need only differ.
struct TestSignature: RegistryCrypto, SignatureVerifier {
  /// What stands in for the key.
  let key: [UInt8]

  func sign(_ message: [UInt8]) -> [UInt8] { Digest.sha256(key + message) }

  func isValid(signature: [UInt8], over message: [UInt8]) -> Bool { signature == sign(message) }

  func sha256(_ bytes: [UInt8]) -> [UInt8] { Digest.sha256(bytes) }

  func verifier(_ algorithm: SignatureAlgorithm, spki: [UInt8]) -> (any SignatureVerifier)? {
    TestSignature(key: spki)
  }
}
