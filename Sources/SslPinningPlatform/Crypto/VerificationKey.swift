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

/// What people call a key algorithm, for messages.
enum KeyAlgorithmName: Equatable, CustomStringConvertible {
  case rsa
  case other(String)

  /// From the contents of an OBJECT IDENTIFIER (X.690 §8.19).
  init(objectIdentifier contents: ArraySlice<UInt8>) {
    let dotted = Self.dotted(contents)
    self =
      switch dotted {
      case "1.2.840.113549.1.1.1": .rsa
      case "1.2.840.113549.1.1.10": .other("RSA-PSS")
      case "1.2.840.10045.2.1": .other("EC")
      case "1.2.840.10040.4.1": .other("DSA")
      case "1.3.101.112": .other("Ed25519")
      case "1.3.101.113": .other("Ed448")
      case "1.3.101.110": .other("X25519")
      case "1.3.101.111": .other("X448")
      default: .other("of type \(dotted)")
      }
  }

  var description: String {
    switch self {
    case .rsa: "RSA"
    case .other(let name): name
    }
  }

  private static func dotted(_ contents: ArraySlice<UInt8>) -> String {
    var arcs: [UInt64] = []
    var arc: UInt64 = 0
    // Enough for every algorithm in use; longer identifiers are cut.
    for byte in contents.prefix(32) {
      arc = arc << 7 | UInt64(byte & 0x7f)
      guard byte & 0x80 == 0 else { continue }
      if arcs.isEmpty {
        let first = min(arc / 40, 2)
        arcs = [first, arc - first * 40]
      } else {
        arcs.append(arc)
      }
      arc = 0
    }
    return arcs.map(String.init).joined(separator: ".")
  }
}
