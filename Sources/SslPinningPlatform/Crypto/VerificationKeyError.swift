import SslPinningRules

/// Why a text or bytes are not a key that registries can be verified with.
public enum VerificationKeyError: Error, Equatable, Sendable {
  /// Nothing but white space.
  case empty
  /// Neither PEM nor base64 nor DER.
  case unknownEncoding
  /// PEM that cannot be read.
  case pem(PEMError)
  /// PEM with a block of this label.
  case unexpectedBlock(label: String)
  /// PEM with so many blocks where one belongs.
  case severalBlocks(Int)
  /// A private key. It was not used, and nothing of it is kept.
  case privateKey
  /// A certificate.
  case certificate
  /// A public key of this type.
  case notRSA(String)
  /// A public key of this type, which is none that key sets know, or in a spelling they do not.
  case unsupportedType(String)
  /// RSA with a modulus of so many bits, below `VerificationKey.minimumBits`.
  case tooSmall(bits: Int)
  /// RSA with a modulus of so many bits, above `VerificationKey.maximumBits`.
  case tooLarge(bits: Int)
  /// RSA with numbers under which a signature proves nothing or nothing can be verified.
  case unusableNumbers(String)
  /// Not the DER of a public key.
  case malformed(String)
  /// Bytes behind the key.
  case trailingData
}

extension VerificationKeyError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .empty: "the signing key is empty"
    case .unknownEncoding:
      "the signing key is neither PEM nor base64 nor DER; hint: pass pub.pem or its base64"
    case .pem(let error): "the signing key is not readable PEM: \(error)"
    case .unexpectedBlock(let label):
      "the PEM holds a block \"\(label)\"; hint: a public key is PUBLIC KEY or RSA PUBLIC KEY"
    case .severalBlocks(let count): "the PEM holds \(count) blocks; hint: pass exactly one key"
    case .privateKey:
      "this is a private key; hint: pass pub.pem, and never ship the private key in an app"
    case .certificate:
      "this is a certificate, not a key; hint: openssl x509 -in … -noout -pubkey"
    case .notRSA(let type): "the signing key is \(type), and this format is signed with RSA"
    case .unsupportedType(let type):
      "the key is \(type); hint: key sets take RSA, EC on P-256 (uncompressed) and Ed25519"
    case .tooSmall(let bits):
      "an RSA key of \(bits) bits; at least \(VerificationKey.minimumBits) are required"
    case .tooLarge(let bits):
      "an RSA key of \(bits) bits; at most \(VerificationKey.maximumBits) are supported, because Apple's "
        + "systems take no longer ones"
    case .unusableNumbers(let reason): "the RSA key is not usable: \(reason)"
    case .malformed(let reason): "the signing key is damaged: \(reason)"
    case .trailingData: "data behind the signing key"
    }
  }
}
