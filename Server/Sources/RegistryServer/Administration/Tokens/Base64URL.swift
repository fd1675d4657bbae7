import SslPinningRules

/// Base64url without padding (RFC 4648 §5, RFC 7515 §2), in which every byte string has exactly one
/// spelling.
enum Base64URL {
  static func encode(_ bytes: some Collection<UInt8>) -> String {
    let text = StrictBase64.encode(bytes).utf8.filter { $0 != UInt8(ascii: "=") }
    return String(
      decoding: text.map { byte in
        switch byte {
        case UInt8(ascii: "+"): UInt8(ascii: "-")
        case UInt8(ascii: "/"): UInt8(ascii: "_")
        default: byte
        }
      }, as: UTF8.self)
  }

  /// The bytes that a text spells, or `nil` where it is not the one spelling of any bytes.
  static func decode(_ text: some Collection<UInt8>) -> [UInt8]? {
    var standard: [UInt8] = []
    standard.reserveCapacity(text.count + 3)
    for byte in text {
      switch byte {
      case UInt8(ascii: "+"), UInt8(ascii: "/"), UInt8(ascii: "="): return nil
      case UInt8(ascii: "-"): standard.append(UInt8(ascii: "+"))
      case UInt8(ascii: "_"): standard.append(UInt8(ascii: "/"))
      default: standard.append(byte)
      }
    }
    while standard.count % 4 != 0 { standard.append(UInt8(ascii: "=")) }
    return StrictBase64.decode(standard)
  }
}
