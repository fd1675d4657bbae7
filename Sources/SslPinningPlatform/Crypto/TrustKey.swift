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

/// Trust in keys as apps ship them.
extension RegistryTrust {
  /// One RSA key for everything: the root and the online key of set 0, and the key of format 1.
  ///
  /// A first start cannot see that a statement was stripped, unless `requiresStatement`.
  ///
  /// - Throws: `DocumentFault`; not for a key that was read.
  public init(
    registry: String, signingKey: VerificationKey, requiresStatement: Bool = false,
    minimum: RegistryMinimum? = nil, limits: RegistryLimits = .standard
  ) throws(DocumentFault) {
    try self.init(
      registry: registry, rootKeys: [TrustKey(signingKey)], threshold: 1, signingKey: signingKey,
      requiresStatement: requiresStatement, minimum: minimum, limits: limits)
  }

  /// Root keys, so many of which must sign a key set, or a statement as long as there is no key set.
  ///
  /// - Parameters:
  ///   - registry: the name that key sets and statements must carry.
  ///   - rootKeys: the keys of set 0, each once.
  ///   - threshold: how many of them must sign.
  ///   - signingKey: the key of format 1, for a registry that was retired.
  ///   - requiresStatement: whether the very first document must carry a statement.
  ///   - minimum: nothing older is believed.
  ///   - limits: sizes in bytes and times in days.
  /// - Throws: ``SslPinningRules/DocumentFault`` for a key that stands twice, and a threshold of zero or above the
  ///   number of keys.
  public init(
    registry: String, rootKeys: [TrustKey], threshold: Int, signingKey: VerificationKey? = nil,
    requiresStatement: Bool = true, minimum: RegistryMinimum? = nil,
    limits: RegistryLimits = .standard
  ) throws(DocumentFault) {
    let crypto = PlatformRegistryCrypto()
    var keys: [RoleKey] = []
    for key in rootKeys { keys.append(try key.roleKey) }
    self.init(
      registry: registry, shipped: try KeyRole(keys: keys, threshold: threshold),
      format1Key: signingKey, requiresStatement: requiresStatement, minimum: minimum,
      limits: limits, crypto: crypto)
  }
}

extension TrustKey {
  /// The key as key sets carry it.
  ///
  /// - Throws: ``SslPinningRules/DocumentFault`` where it is not the DER of its algorithm.
  public var roleKey: RoleKey {
    get throws(DocumentFault) {
      try RoleKey(
        algorithm: algorithm.rawValue, spki: spkiDER, crypto: PlatformRegistryCrypto())
    }
  }
}

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
