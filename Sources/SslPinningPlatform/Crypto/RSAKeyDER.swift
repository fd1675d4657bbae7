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
