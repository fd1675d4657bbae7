import SslPinningRules

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
