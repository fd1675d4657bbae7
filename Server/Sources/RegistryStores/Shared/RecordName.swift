/// Which names records may have.
package enum RecordName {
  /// Refuses what is neither a document's file name nor such a name behind one dot: nothing else may
  /// become part of a path or a key.
  static func check(_ name: String) throws(StoreError) {
    let file = name.hasPrefix(".") ? String(name.dropFirst()) : name
    guard isSafe(file: file) else { throw .invalidName(name) }
  }

  /// Whether `name` is 1 to 128 letters, digits, `.`, `_` and `-`, not beginning with a dot.
  package static func isSafe(file name: String) -> Bool {
    let bytes = name.utf8
    guard (1...128).contains(bytes.count), bytes.first != UInt8(ascii: ".") else { return false }
    return bytes.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"),
        UInt8(ascii: "-"):
        true
      default: false
      }
    }
  }
}
