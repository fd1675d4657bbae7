/// Finds the path in a request target and percent-decodes it, once (RFC 3986 §2.1).
enum TargetPath {
  /// The decoded path of a target in origin-form, `/path`, or absolute-form, `http://host/path`,
  /// which a server must take as well (RFC 9112 §3.2.2); `nil` where ``decoded(_:)`` has none.
  static func path(of target: String) -> String? {
    guard !target.utf8.starts(with: "/".utf8) else { return decoded(target) }
    let bytes = target.utf8
    guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")),
      ["http", "https"].contains(target[..<colon].lowercased()),
      bytes[colon...].starts(with: "://".utf8)
    else { return decoded(target) }
    let authority = bytes[colon...].dropFirst(3)
    guard let slash = authority.firstIndex(of: UInt8(ascii: "/")) else { return "/" }
    return decoded(String(target[slash...]))
  }

  /// The decoded path, or `nil` where an escape is malformed, or stands for a byte that would mean
  /// something else to a file system, or the result is no UTF-8.
  static func decoded(_ path: String) -> String? {
    let bytes = path.utf8
    guard bytes.contains(UInt8(ascii: "%")) else { return path }
    var out: [UInt8] = []
    out.reserveCapacity(bytes.count)
    var rest = bytes[...]
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        out.append(byte)
        continue
      }
      guard let high = rest.popFirst().flatMap(hexDigit),
        let low = rest.popFirst().flatMap(hexDigit)
      else { return nil }
      let decoded = high << 4 | low
      guard decoded >= 0x20, decoded != 0x7f, decoded != UInt8(ascii: "/"),
        decoded != UInt8(ascii: "\\")
      else { return nil }
      out.append(decoded)
    }
    return String(validating: out, as: UTF8.self)
  }

  private static func hexDigit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
    default: nil
    }
  }
}
