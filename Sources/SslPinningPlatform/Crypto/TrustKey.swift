import SslPinningRules

/// A public key of a key set: RSA, P-256 or Ed25519. Checks signatures of key sets and statements;
/// format 1 knows ``VerificationKey`` alone.
///
/// - The type of the key fixes the algorithm: RSA is RS512, P-256 is ES256, Ed25519 is EdDSA.
/// - One key has one SubjectPublicKeyInfo in DER, whose SHA-256 is its id: a second spelling of a key
///   would let one holder count for two.
/// - Parsed once; verifying is safe from any number of threads at a time.
public struct TrustKey: SignatureVerifier {
  /// How the key signs.
  public let algorithm: SignatureAlgorithm
  /// The key as SubjectPublicKeyInfo in DER, however it was passed.
  public let spkiDER: [UInt8]

  private enum Key: Sendable {
    case rsa(VerificationKey)
    case curve(PlatformCurveKey)
  }

  private let key: Key

  /// Reads a key from PEM, base64 of PEM, or base64 of DER.
  ///
  /// - Throws: ``VerificationKeyError``.
  public init(_ text: String) throws(VerificationKeyError) {
    try self.init(bytes: [UInt8](text.utf8))
  }

  /// Reads a key from a file's bytes: all that ``init(_:)-(String)`` reads, and DER.
  ///
  /// - Throws: ``VerificationKeyError``.
  public init(bytes: [UInt8]) throws(VerificationKeyError) {
    let der = try KeyEncoding.der(in: bytes)
    if let curve = CurveKeyDER(der) {
      guard let key = PlatformCurveKey(curve) else { throw .malformed("a point off the curve") }
      (algorithm, spkiDER, self.key) = (curve.algorithm, curve.spki, .curve(key))
      return
    }
    let rsa: VerificationKey
    do throws(VerificationKeyError) { rsa = try VerificationKey(bytes: der) } catch {
      guard case .notRSA(let type) = error else { throw error }
      throw .unsupportedType(type)
    }
    (algorithm, spkiDER, key) = (.rs512, rsa.spkiDER, .rsa(rsa))
  }

  /// The same key, for signatures of key sets and statements.
  public init(_ rsa: VerificationKey) {
    (algorithm, spkiDER, key) = (.rs512, rsa.spkiDER, .rsa(rsa))
  }

  /// A key as a key set carries it.
  ///
  /// - Returns: `nil` where `spkiDER` is not the one spelling of a key of this algorithm: a PKCS#1
  ///   key, PEM and base64 are no such spellings here.
  public init?(_ algorithm: SignatureAlgorithm, spkiDER: [UInt8]) {
    guard spkiDER.first == 0x30, let key = try? TrustKey(bytes: spkiDER),
      key.algorithm == algorithm, key.spkiDER == spkiDER
    else { return nil }
    self = key
  }

  /// The key's id: SHA-256 of its SubjectPublicKeyInfo, computed as a pin is.
  public var id: SPKIPin { SPKIPin(computed: Digest.sha256(spkiDER)) }

  /// Whether `signature` was made over `message` by this key under its algorithm. Any failure is
  /// `false`.
  public func isValid(signature: [UInt8], over message: [UInt8]) -> Bool {
    switch (key, algorithm) {
    case (.rsa(let key), _): key.isValid(signature: signature, over: message)
    case (.curve(let key), .edDSA):
      signature.count == 64 && key.isValid(signature: signature, over: message)
    case (.curve(let key), _):
      ECDSASignatureDER.isStrict(signature) && key.isValid(signature: signature, over: message)
    }
  }
}

extension TrustKey: Hashable {
  public static func == (left: TrustKey, right: TrustKey) -> Bool { left.spkiDER == right.spkiDER }

  public func hash(into hasher: inout Hasher) { hasher.combine(spkiDER) }
}
