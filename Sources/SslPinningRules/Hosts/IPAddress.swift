/// An IPv4 or IPv6 address: 4 or 16 bytes in network order.
///
/// - An address matches only itself; `::ffff:1.2.3.4` is 16 bytes and never `1.2.3.4`.
/// - IPv4 is dotted decimal without leading zeros (RFC 6943 §3.1.1 lists what else resolvers accept);
///   IPv6 is RFC 4291 §2.2 without a zone.
public struct IPAddress: Hashable, Sendable {
  /// 4 or 16 bytes.
  public let bytes: [UInt8]

  /// An address from its bytes, as an iPAddress subjectAltName carries it (RFC 5280 §4.2.1.6).
  public init?(bytes: [UInt8]) {
    guard bytes.count == 4 || bytes.count == 16 else { return nil }
    self.bytes = bytes
  }

  init?(v4 text: String) {
    let parts = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    guard parts.count == 4 else { return nil }
    var bytes: [UInt8] = []
    for part in parts {
      guard let value = Self.decimal(part) else { return nil }
      bytes.append(value)
    }
    self.bytes = bytes
  }

  init?(v6 text: String) {
    var rest = [UInt8](text.utf8)[...]
    if rest.first == UInt8(ascii: "[") {
      guard rest.last == UInt8(ascii: "]"), rest.count > 2 else { return nil }
      rest = rest.dropFirst().dropLast()
    }
    guard let bytes = Self.groups(rest) else { return nil }
    self.bytes = bytes
  }

  /// The 16 bytes that an IPv6 text stands for.
  private static func groups(_ text: ArraySlice<UInt8>) -> [UInt8]? {
    let colon = UInt8(ascii: ":")
    let gap = text.indices.dropLast().first { text[$0] == colon && text[$0 + 1] == colon }
    guard let gap else {
      guard let all = bytes(of: text, isLast: true), all.count == 16 else { return nil }
      return all
    }
    // "::" stands for at least one group of zeros and occurs at most once: a second one would leave
    // an empty group in the tail.
    guard let head = bytes(of: text[..<gap], isLast: false),
      let tail = bytes(of: text[(gap + 2)...], isLast: true), head.count + tail.count <= 14
    else { return nil }
    return head + [UInt8](repeating: 0, count: 16 - head.count - tail.count) + tail
  }

  private static func bytes(of half: ArraySlice<UInt8>, isLast: Bool) -> [UInt8]? {
    guard !half.isEmpty else { return [] }
    let parts = half.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
    var out: [UInt8] = []
    for (index, part) in parts.enumerated() {
      if isLast, index == parts.count - 1, part.contains(UInt8(ascii: ".")) {
        guard let v4 = IPAddress(v4: String(decoding: part, as: UTF8.self)) else { return nil }
        out += v4.bytes
        continue
      }
      guard (1...4).contains(part.count) else { return nil }
      var value: UInt16 = 0
      for byte in part {
        guard let digit = hexDigit(byte) else { return nil }
        value = value << 4 | UInt16(digit)
      }
      out += [UInt8(value >> 8), UInt8(value & 0xff)]
    }
    return out.count <= 16 ? out : nil
  }

  private static func decimal(_ part: Substring.UTF8View) -> UInt8? {
    guard (1...3).contains(part.count), part.count == 1 || part.first != UInt8(ascii: "0") else {
      return nil
    }
    var value = 0
    for byte in part {
      guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { return nil }
      value = value * 10 + Int(byte - UInt8(ascii: "0"))
    }
    return UInt8(exactly: value)
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

extension IPAddress: CustomStringConvertible {
  /// Dotted decimal, or the compressed form of RFC 5952 §4.
  public var description: String {
    guard bytes.count == 16 else { return bytes.map(String.init).joined(separator: ".") }
    let groups = stride(from: 0, to: 16, by: 2).map {
      UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1])
    }
    var best = 0..<0
    var start = 0
    while start < 8 {
      var end = start
      while end < 8, groups[end] == 0 { end += 1 }
      if end - start > best.count { best = start..<end }
      start = max(end, start + 1)
    }
    func text(_ part: ArraySlice<UInt16>) -> String {
      part.map { String($0, radix: 16) }.joined(separator: ":")
    }
    guard best.count > 1 else { return text(groups[...]) }
    return text(groups[..<best.lowerBound]) + "::" + text(groups[best.upperBound...])
  }
}
