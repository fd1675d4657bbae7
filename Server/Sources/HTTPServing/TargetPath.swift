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
