import SslPinningRules

/// The public key that registries are verified with: RSA, PKCS#1 v1.5, SHA-512 (RFC 8017 §8.2.2).
///
/// - Takes what people have at hand: PEM (SubjectPublicKeyInfo or PKCS#1), base64 of PEM, base64 of
///   DER, or DER. It says what is wrong with anything else.
/// - Parsed once; verifying is safe from any number of threads at a time.
/// - A signature has exactly as many bytes as the modulus and exactly one padding: variants that
///   other implementations let pass are refused.
public struct VerificationKey: SignatureVerifier {
  /// The shortest modulus that is accepted, in bits. Registries in the field are signed with as
  /// little; new keys should have at least 3072.
  public static let minimumBits = 1024
  /// The longest modulus that is accepted, in bits, on every platform: Apple's systems take no longer ones, and
  /// a key that some apps cannot read must not get as far as the apps.
  public static let maximumBits = 8192

  /// Bits of the modulus.
  public let bits: Int
  /// The key as SubjectPublicKeyInfo in DER, however it was passed.
  public let spkiDER: [UInt8]

  private let key: PlatformRSAKey

  /// Reads a key from PEM, base64 of PEM, or base64 of DER.
  ///
  /// - Throws: ``VerificationKeyError``.
  public init(_ text: String) throws(VerificationKeyError) {
    try self.init(bytes: [UInt8](text.utf8))
  }

  /// Reads a key from a file's bytes: all that ``init(_:)`` reads, and DER.
  ///
  /// - Throws: ``VerificationKeyError``.
  public init(bytes: [UInt8]) throws(VerificationKeyError) {
    let der = try RSAKeyDER(try KeyEncoding.der(in: bytes))
    guard let key = PlatformRSAKey(pkcs1: der.pkcs1) else {
      throw .malformed("the platform's crypto library does not take it")
    }
    bits = der.bits
    spkiDER = der.spki
    self.key = key
  }

  /// Whether `signature` is the RSASSA-PKCS1-v1_5 signature of SHA-512 over `message`. Any failure
  /// is `false`.
  public func isValid(signature: [UInt8], over message: [UInt8]) -> Bool {
    signature.count == (bits + 7) / 8 && key.isValid(signature: signature, over: message)
  }
}

extension VerificationKey: Hashable {
  public static func == (left: VerificationKey, right: VerificationKey) -> Bool {
    left.spkiDER == right.spkiDER
  }

  public func hash(into hasher: inout Hasher) { hasher.combine(spkiDER) }
}
