import SslPinningRules

/// An RSA public key, read strictly from DER.
///
///     SubjectPublicKeyInfo ::= SEQUENCE { SEQUENCE { OID, NULL }, BIT STRING { RSAPublicKey } }
///     RSAPublicKey         ::= SEQUENCE { INTEGER n, INTEGER e }
///                                                (RFC 3279 §2.3.1, RFC 8017 §A.1.1)
///
/// - One key has one SubjectPublicKeyInfo and so one key id: DER in its only spelling, the NULL
///   required, integers minimal and positive, nothing behind any of it.
/// - 1024 to 8192 bits. An even modulus is not RSA; the exponent is odd, at least 3 and below
///   2^64: with 1 every message is its own signature, and libraries refuse to compute larger ones.
struct RSAKeyDER {
  /// Bits of the modulus.
  let bits: Int
  /// The RSAPublicKey.
  let pkcs1: [UInt8]
  /// The SubjectPublicKeyInfo.
  let spki: [UInt8]

  init(_ der: [UInt8]) throws(VerificationKeyError) {
    do {
      let key = try Self.rsaPublicKey(in: der)
      (bits, pkcs1) = (try Self.checkedBits(key), [UInt8](key))
    } catch let error as VerificationKeyError {
      throw error
    } catch let error as CertificateSyntaxError {
      throw Self.error(for: error)
    } catch {
      throw .malformed("\(error)")
    }
    spki = Self.sequence(Self.rsaAlgorithm + Self.element(0x03, [0] + pkcs1))
  }

  /// The RSAPublicKey inside a key of either form; tells by their shape what else people pass.
  private static func rsaPublicKey(in der: [UInt8]) throws -> ArraySlice<UInt8> {
    var outer = DERReader(der[...])
    let whole = try outer.element(tag: .sequence, what: "key")
    guard outer.isAtEnd else { throw VerificationKeyError.trailingData }
    var fields = DERReader(whole.contents)
    if fields.nextTag == .integer {
      _ = try fields.element(tag: .integer, what: "modulus")
      // Private keys begin with a version, and go on differently or for longer.
      guard fields.nextTag == .integer else { throw VerificationKeyError.privateKey }
      _ = try fields.element(tag: .integer, what: "exponent")
      guard fields.isAtEnd else {
        throw fields.nextTag == .integer
          ? VerificationKeyError.privateKey : VerificationKeyError.trailingData
      }
      return whole.whole
    }
    let algorithm = try fields.element(tag: .sequence, what: "algorithm")
    switch fields.nextTag {
    case .sequence: throw VerificationKeyError.certificate
    case .octetString: throw VerificationKeyError.privateKey
    default: break
    }
    let key = try fields.element(tag: .bitString, what: "public key")
    guard fields.isAtEnd else { throw VerificationKeyError.trailingData }
    guard algorithm.whole.elementsEqual(rsaAlgorithm) else {
      var parameters = DERReader(algorithm.contents)
      let identifier = try parameters.element(tag: .objectIdentifier, what: "algorithm")
      let name = KeyAlgorithmName(objectIdentifier: identifier.contents)
      guard name != .rsa else {
        throw VerificationKeyError.malformed("RSA parameters other than NULL")
      }
      throw VerificationKeyError.notRSA(name.description)
    }
    guard key.contents.first == 0 else {
      throw VerificationKeyError.malformed("the key is not a whole number of bytes")
    }
    let inner = key.contents.dropFirst()
    var reader = DERReader(inner)
    _ = try reader.element(tag: .sequence, what: "RSAPublicKey")
    guard reader.isAtEnd else { throw VerificationKeyError.trailingData }
    return inner
  }

  private static func checkedBits(_ key: ArraySlice<UInt8>) throws -> Int {
    var outer = DERReader(key)
    var numbers = DERReader(try outer.element(tag: .sequence, what: "RSAPublicKey").contents)
    let modulus = try positive(&numbers, "modulus")
    let exponent = try positive(&numbers, "exponent")
    guard numbers.isAtEnd else { throw VerificationKeyError.trailingData }
    let bits = modulus.count * 8 - (modulus.first?.leadingZeroBitCount ?? 0)
    guard bits >= VerificationKey.minimumBits else {
      throw VerificationKeyError.tooSmall(bits: bits)
    }
    guard bits <= VerificationKey.maximumBits else {
      throw VerificationKeyError.tooLarge(bits: bits)
    }
    guard modulus.last.map({ $0 & 1 }) == 1 else {
      throw VerificationKeyError.unusableNumbers("the modulus is even")
    }
    guard exponent.last.map({ $0 & 1 }) == 1, exponent.count > 1 || exponent.first != 1 else {
      throw VerificationKeyError.unusableNumbers("the exponent is even or 1")
    }
    guard exponent.count <= 8 else {
      throw VerificationKeyError.unusableNumbers("the exponent has more than 64 bits")
    }
    return bits
  }

  /// A positive INTEGER without its sign byte (X.690 §8.3.2: the shortest spelling only).
  private static func positive(_ reader: inout DERReader, _ what: String) throws
    -> ArraySlice<UInt8>
  {
    let contents = try reader.element(tag: .integer, what: what).contents
    guard let first = contents.first, first < 0x80 else {
      throw VerificationKeyError.malformed("the \(what) is not a positive number")
    }
    guard first == 0 else { return contents }
    guard let second = contents.dropFirst().first, second >= 0x80 else {
      throw VerificationKeyError.malformed("the \(what) is zero or has leading zeros")
    }
    return contents.dropFirst()
  }

  private static func error(for error: CertificateSyntaxError) -> VerificationKeyError {
    switch error {
    case .truncated(let field, let offset): .malformed("it ends inside \(field) at byte \(offset)")
    case .unexpectedTag(_, let field, let offset):
      .malformed("something else where \(field) belongs, at byte \(offset)")
    case .badLength(let field, let offset):
      .malformed("a length that DER does not allow in \(field), at byte \(offset)")
    case .trailingData: .trailingData
    }
  }

  /// rsaEncryption with NULL parameters.
  private static let rsaAlgorithm: [UInt8] = [
    0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00,
  ]

  private static func sequence(_ contents: [UInt8]) -> [UInt8] { element(0x30, contents) }

  private static func element(_ tag: UInt8, _ contents: [UInt8]) -> [UInt8] {
    var length: [UInt8] = []
    var rest = contents.count
    while rest > 0 {
      length.insert(UInt8(rest & 0xff), at: 0)
      rest >>= 8
    }
    if contents.count >= 0x80 { length.insert(0x80 | UInt8(length.count), at: 0) }
    return [tag] + (length.isEmpty ? [0] : length) + contents
  }
}

/// A P-256 or Ed25519 public key, read strictly from DER.
///
/// - One key has one SubjectPublicKeyInfo and so one key id: the algorithm's bytes are fixed
///   (RFC 5480 §2.1.1 with a named curve, RFC 8410 §4), the point is uncompressed, and the length
///   follows from both. Explicit parameters, compressed points and bytes behind are refused.
/// - Whether the point lies on the curve is the platform's to say.
struct CurveKeyDER {
  let algorithm: SignatureAlgorithm
  /// The SubjectPublicKeyInfo.
  let spki: [UInt8]
  /// 0x04, x and y (P-256), or the 32 bytes of RFC 8032 §5.1.2 (Ed25519).
  let key: [UInt8]

  /// - Returns: `nil` where `der` is a key of another type, or such a key in another spelling.
  init?(_ der: [UInt8]) {
    for (algorithm, frame, count) in Self.frames
    where der.count == frame.count + count && der.starts(with: frame) {
      let key = Array(der.dropFirst(frame.count))
      guard algorithm == .edDSA || key.first == 0x04 else { return nil }
      (self.algorithm, self.spki, self.key) = (algorithm, der, key)
      return
    }
    return nil
  }

  /// All that stands before the key itself, and how many bytes the key has.
  private static let frames: [(SignatureAlgorithm, [UInt8], Int)] = [
    (
      .es256,
      [
        0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08,
        0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
      ], 65
    ),
    (
      .edDSA,
      [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00], 32
    ),
  ]
}

/// Tells the one DER spelling of an ECDSA signature from the others that some libraries let pass.
///
///     Ecdsa-Sig-Value ::= SEQUENCE { r INTEGER, s INTEGER }      (RFC 3279 §2.2.3)
enum ECDSASignatureDER {
  /// Whether `signature` is two positive integers of at most 32 bytes in DER, and nothing else.
  static func isStrict(_ signature: [UInt8]) -> Bool {
    var outer = DERReader(signature[...])
    guard let pair = try? outer.element(tag: .sequence, what: "signature"), outer.isAtEnd else {
      return false
    }
    var numbers = DERReader(pair.contents)
    for name in ["r", "s"] {
      guard let number = try? numbers.element(tag: .integer, what: name).contents,
        isPositive(number)
      else { return false }
    }
    return numbers.isAtEnd
  }

  private static func isPositive(_ number: ArraySlice<UInt8>) -> Bool {
    guard let first = number.first, first < 0x80 else { return false }
    guard first == 0 else { return number.count <= 32 }
    guard let second = number.dropFirst().first else { return false }
    return second >= 0x80 && number.count <= 33
  }
}

/// Finds the DER of a key in any of the spellings that people pass keys in.
///
/// - DER begins with 0x30 and is taken as it stands, never trimmed.
/// - PEM may stand among white space and text, and holds exactly one block.
/// - Everything else is base64, of DER or of PEM, with line breaks or without. One layer only.
enum KeyEncoding {
  /// The DER inside `bytes`.
  static func der(in bytes: [UInt8]) throws(VerificationKeyError) -> [UInt8] {
    if isDER(bytes) { return bytes }
    if isPEM(bytes) { return try contents(ofPEM: bytes) }
    let characters = bytes.filter { !isWhiteSpace($0) }
    guard !characters.isEmpty else { throw .empty }
    guard let inner = StrictBase64.decode(characters) else { throw .unknownEncoding }
    if isDER(inner) { return inner }
    guard isPEM(inner) else { throw .unknownEncoding }
    return try contents(ofPEM: inner)
  }

  private static func contents(ofPEM text: [UInt8]) throws(VerificationKeyError) -> [UInt8] {
    let blocks: [PEMBlock]
    do throws(PEMError) { blocks = try PEMBlock.blocks(in: text) } catch {
      // Only private keys are ever encrypted.
      throw error == .encrypted ? .privateKey : .pem(error)
    }
    // Refused before anything else is said: a private key has no business here at all.
    guard !blocks.contains(where: { $0.label.hasSuffix("PRIVATE KEY") }) else { throw .privateKey }
    guard let block = blocks.first else { throw .unknownEncoding }
    guard blocks.count == 1 else { throw .severalBlocks(blocks.count) }
    if block.label.hasSuffix("CERTIFICATE") { throw .certificate }
    guard block.label == "PUBLIC KEY" || block.label == "RSA PUBLIC KEY" else {
      throw .unexpectedBlock(label: block.label)
    }
    return block.bytes
  }

  private static func isDER(_ bytes: [UInt8]) -> Bool { bytes.first == 0x30 }

  private static func isPEM(_ bytes: [UInt8]) -> Bool {
    let marker = [UInt8]("-----BEGIN ".utf8)
    return bytes.indices.contains { bytes[$0...].starts(with: marker) }
  }

  private static func isWhiteSpace(_ byte: UInt8) -> Bool {
    byte == 0x20 || (0x09...0x0d).contains(byte)
  }
}
