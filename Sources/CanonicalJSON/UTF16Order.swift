/// The order of RFC 8785 section 3.2.3, that of the names' UTF-16 code units, found on UTF-8 bytes.
///
/// Both orders agree but for one thing: characters beyond U+FFFF are surrogates (0xD800 and up) in
/// UTF-16, and so come *before* U+E000 to U+FFFF, though their UTF-8 lead bytes (0xF0 and up) are
/// greater than those (0xEE and 0xEF). Where two well-formed texts first differ in a byte of 0xEE or
/// above, it is the lead byte on both sides or the other side is smaller in both orders.
enum UTF16Order {
  /// Negative, zero or positive as the left text comes before, is, or comes after the right one.
  /// Both must be well-formed UTF-8.
  static func compare(_ left: Span<UInt8>, _ right: Span<UInt8>) -> Int {
    let shared = min(left.count, right.count)
    var index = 0
    while index < shared {
      let (one, other) = (left[index], right[index])
      if one != other { return rank(one) - rank(other) }
      index += 1
    }
    return left.count - right.count
  }

  /// Moves 0xEE and 0xEF above every other lead byte.
  private static func rank(_ byte: UInt8) -> Int {
    byte == 0xEE || byte == 0xEF ? Int(byte) + 0x10 : Int(byte)
  }
}
