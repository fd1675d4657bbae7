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
