/// A set of ASCII characters, asked for every byte of every head: two numbers, no memory.
struct ByteSet: Sendable {
  private var low: UInt64 = 0
  private var high: UInt64 = 0

  /// Letters, digits and these.
  init(lettersDigitsAnd others: String) {
    for byte in UInt8(ascii: "a")...UInt8(ascii: "z") { insert(byte) }
    for byte in UInt8(ascii: "A")...UInt8(ascii: "Z") { insert(byte) }
    for byte in UInt8(ascii: "0")...UInt8(ascii: "9") { insert(byte) }
    for byte in others.utf8 { insert(byte) }
  }

  @inline(__always)
  func contains(_ byte: UInt8) -> Bool {
    let half = byte < 64 ? low : byte < 128 ? high : 0
    return half >> UInt64(byte & 63) & 1 == 1
  }

  /// What a method or a header's name is made of (RFC 9110 §5.6.2).
  static let token = ByteSet(lettersDigitsAnd: "!#$%&'*+-.^_`|~")
  /// What a path is made of beside escapes: `pchar` and `/` (RFC 3986 §3.3).
  static let path = ByteSet(lettersDigitsAnd: "-._~!$&'()*+,;=:@/")

  private mutating func insert(_ byte: UInt8) {
    if byte < 64 { low |= 1 << UInt64(byte) } else { high |= 1 << UInt64(byte & 63) }
  }
}
