import SslPinningPlatform
import SslPinningRules

/// Makes and compares entity tags (RFC 9110 §8.8.3, §13.1.2).
package enum EntityTag {
  /// A strong tag with its quotes: equal tags mean equal bytes.
  package static func of(_ bytes: [UInt8]) -> String {
    "\"\(StrictBase64.encode(Digest.sha256(bytes)))\""
  }

  /// Whether an `If-None-Match` value names `tag`, under the weak comparison that this header asks
  /// for. `*` names every tag. What is malformed names nothing: the client then gets the document.
  ///
  /// - Parameter tag: a strong tag with its quotes.
  package static func matches(ifNoneMatch: String, _ tag: String) -> Bool {
    var rest = ifNoneMatch.utf8[...]
    rest.skip { $0 == 0x20 || $0 == 0x09 || $0 == UInt8(ascii: ",") }
    if rest.first == UInt8(ascii: "*") {
      rest.removeFirst()
      return rest.allSatisfy { $0 == 0x20 || $0 == 0x09 }
    }
    var found = false
    while !rest.isEmpty {
      if rest.starts(with: "W/".utf8) { rest = rest.dropFirst(2) }
      guard rest.first == UInt8(ascii: "\""),
        let end = rest.dropFirst().firstIndex(of: UInt8(ascii: "\""))
      else { return found }
      if rest[...end].elementsEqual(tag.utf8) { found = true }
      rest = rest[rest.index(after: end)...]
      let before = rest.count
      rest.skip { $0 == 0x20 || $0 == 0x09 || $0 == UInt8(ascii: ",") }
      guard rest.isEmpty || rest.count < before else { return found }
    }
    return found
  }
}

extension Substring.UTF8View {
  fileprivate mutating func skip(while isSkipped: (UInt8) -> Bool) {
    while let byte = first, isSkipped(byte) { removeFirst() }
  }
}
