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
