/// Finds the path in a request target and percent-decodes it, once (RFC 3986 §2.1).
///
/// - Origin-form, `/path`, and absolute-form, `http://host/path`, which a server must take as well
///   (RFC 9112 §3.2.2). A target of another scheme is a path that nothing is served at. `*` is for
///   OPTIONS alone, and an authority for CONNECT; neither is served here.
/// - Only characters that a path may have stand there undecoded (RFC 3986 §3.3), so nothing that a
///   proxy could read as an end of the path: no space, control character, `\`, `#` or raw byte
///   above 0x7e.
enum TargetPath {
  /// The decoded path of a target without its query; `nil` where it is malformed.
  static func path(of target: UnsafeBufferPointer<UInt8>, method: String) -> String? {
    if target.first == UInt8(ascii: "/") { return decoded(target) }
    if method == "CONNECT" {
      return HostField.isAuthority(target) ? String(decoding: target, as: UTF8.self) : nil
    }
    if method == "OPTIONS", target.elementsEqual([UInt8(ascii: "*")]) { return "*" }
    guard let colon = target.firstIndex(of: UInt8(ascii: ":")), isScheme(target[..<colon]),
      target[colon...].starts(with: "://".utf8)
    else { return nil }
    let scheme = String(decoding: target[..<colon], as: UTF8.self).lowercased()
    guard scheme == "http" || scheme == "https" else { return decoded(target) }
    let rest = UnsafeBufferPointer(rebasing: target[(colon + 3)...])
    let slash = rest.firstIndex(of: UInt8(ascii: "/")) ?? rest.endIndex
    guard HostField.isAuthority(UnsafeBufferPointer(rebasing: rest[..<slash])) else { return nil }
    return slash == rest.endIndex ? "/" : decoded(UnsafeBufferPointer(rebasing: rest[slash...]))
  }

  /// The decoded path, or `nil` where a character does not belong into a path, an escape is
  /// malformed or stands for a byte that would mean something else to a file system, or the result
  /// is no UTF-8.
  static func decoded(_ path: String) -> String? {
    var path = path
    return path.withUTF8(decoded)
  }

  static func decoded(_ path: UnsafeBufferPointer<UInt8>) -> String? {
    var hasEscape = false
    let plain = ByteSet.path
    for byte in path where !plain.contains(byte) {
      guard byte == UInt8(ascii: "%") else { return nil }
      hasEscape = true
    }
    guard hasEscape else { return String(decoding: path, as: UTF8.self) }
    guard let bytes = PercentEncoding.decoded(path), !hidesSlash(path) else { return nil }
    let isPlain = bytes.allSatisfy { $0 >= 0x20 && $0 != 0x7f && $0 != UInt8(ascii: "\\") }
    return isPlain ? String(validating: bytes, as: UTF8.self) : nil
  }

  /// Whether an escape stands for `/`, which would end a segment behind the back of whoever split
  /// the path before decoding it.
  private static func hidesSlash(_ path: UnsafeBufferPointer<UInt8>) -> Bool {
    path.indices.dropLast(2).contains {
      path[$0] == UInt8(ascii: "%") && path[$0 + 1] == UInt8(ascii: "2")
        && path[$0 + 2] | 0x20 == UInt8(ascii: "f")
    }
  }

  private static func isScheme(_ bytes: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
    guard let first = bytes.first else { return false }
    return isLetter(first)
      && bytes.allSatisfy { isLetter($0) || isDigit($0) || "+-.".utf8.contains($0) }
  }

  private static func isLetter(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
  }

  private static func isDigit(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
  }
}

/// The syntax of `Host` and of an authority in a target (RFC 9110 §7.2), narrowed to what host names
/// and addresses are made of: no user information, no list, no escape.
enum HostField {
  static func isAuthority(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
    guard let first = bytes.first else { return false }
    let host: Slice<UnsafeBufferPointer<UInt8>>
    if first == UInt8(ascii: "[") {
      guard let end = bytes.firstIndex(of: UInt8(ascii: "]")), end > 2,
        bytes[1..<end].allSatisfy({
          isHexDigit($0) || $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: ".")
        })
      else { return false }
      host = bytes[...end]
    } else {
      host = bytes.prefix { isNameCharacter($0) }
      guard !host.isEmpty else { return false }
    }
    let port = bytes[host.endIndex...]
    guard let colon = port.first else { return true }
    return colon == UInt8(ascii: ":") && port.count <= 6
      && port.dropFirst().allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
  }

  private static func isHexDigit(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"),
      UInt8(ascii: "A")...UInt8(ascii: "F"):
      true
    default: false
    }
  }

  private static func isNameCharacter(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
      UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "-"), UInt8(ascii: "."),
      UInt8(ascii: "_"), UInt8(ascii: "~"):
      true
    default: false
    }
  }
}

/// Reads a query as forms write it (URL Standard §5.1), strictly.
enum QueryString {
  /// The pairs; `nil` where a character does not belong into a query (RFC 3986 §3.4, with the few
  /// more that browsers leave as they are), an escape is malformed, or a name or value has a
  /// control character or is no UTF-8.
  static func pairs(_ query: [UInt8]) -> [(name: String, value: String)]? {
    guard query.allSatisfy({ $0 > 0x20 && $0 < 0x7f && !"\"#<>\\".utf8.contains($0) }) else {
      return nil
    }
    var pairs: [(name: String, value: String)] = []
    for piece in query.split(separator: UInt8(ascii: "&")) {
      let equals = piece.firstIndex(of: UInt8(ascii: "="))
      guard let name = text(piece[..<(equals ?? piece.endIndex)]),
        let value = text(equals.map { piece[($0 + 1)...] } ?? [])
      else { return nil }
      pairs.append((name, value))
    }
    return pairs
  }

  private static func text(_ piece: ArraySlice<UInt8>) -> String? {
    let spaced = piece.map { $0 == UInt8(ascii: "+") ? 0x20 : $0 }
    guard let bytes = PercentEncoding.decoded(spaced),
      bytes.allSatisfy({ $0 >= 0x20 && $0 != 0x7f })
    else { return nil }
    return String(validating: bytes, as: UTF8.self)
  }
}

/// Percent-encoding (RFC 3986 §2.1).
package enum PercentEncoding {
  /// The bytes that a text stands for; `nil` where an escape is not two hexadecimal digits.
  static func decoded(_ text: some Collection<UInt8>) -> [UInt8]? {
    var out: [UInt8] = []
    out.reserveCapacity(text.count)
    var rest = text[...]
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        out.append(byte)
        continue
      }
      guard let high = rest.popFirst().flatMap(hexDigit),
        let low = rest.popFirst().flatMap(hexDigit)
      else { return nil }
      out.append(high << 4 | low)
    }
    return out
  }

  /// A text as one segment of a path: all but unreserved characters (RFC 3986 §2.3) escaped.
  package static func encoded(segment text: String) -> String {
    var out: [UInt8] = []
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
        UInt8(ascii: "_"), UInt8(ascii: "~"):
        out.append(byte)
      default: out += [UInt8(ascii: "%"), hexDigits[Int(byte >> 4)], hexDigits[Int(byte & 15)]]
      }
    }
    return String(decoding: out, as: UTF8.self)
  }

  private static let hexDigits = [UInt8]("0123456789ABCDEF".utf8)

  private static func hexDigit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
    default: nil
    }
  }
}

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
