/// The order of RFC 8785 section 3.2.3, that of the names' UTF-16 code units, found on UTF-8 bytes.
///
/// Both orders agree but for one thing: characters beyond U+FFFF are surrogates (0xD800 and up) in
/// UTF-16, and so come *before* U+E000 to U+FFFF, though their UTF-8 lead bytes (0xF0 and up) are
/// greater than those (0xEE and 0xEF). So those two lead bytes are moved above all others, and bytes
/// compared: continuation bytes and shorter characters lie below either way.
enum UTF16Order {
  /// Negative, zero or positive as the left text comes before, is, or comes after the right one.
  /// Both must be well-formed UTF-8.
  static func compare(_ left: Bytes, _ right: Bytes) -> Int {
    let shared = min(left.count, right.count)
    var index = 0
    while index < shared {
      let (one, other) = (left[index], right[index])
      if one != other { return Int(rank(one)) - Int(rank(other)) }
      index += 1
    }
    return left.count - right.count
  }

  /// A text's first eight bytes as a number: of two texts with different numbers, the one with the
  /// smaller comes first. Equal numbers decide nothing.
  static func prefix(_ text: Bytes) -> UInt64 {
    var prefix: UInt64 = 0
    for index in 0..<min(text.count, 8) { prefix = prefix << 8 | UInt64(rank(text[index])) }
    return text.count < 8 ? prefix << (8 * UInt64(8 - text.count)) : prefix
  }

  private static func rank(_ byte: UInt8) -> UInt8 {
    byte == 0xEE || byte == 0xEF ? byte + 0x10 : byte
  }
}
