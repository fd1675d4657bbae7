/// A string that is equal to another only when their UTF-8 bytes are.
///
/// `String`'s own equality is Unicode's canonical equivalence, under which two members of a JSON
/// object, or two host names, that differ on the wire would pass for one.
struct ByteString: Hashable {
  let string: String

  init(_ string: String) {
    self.string = string
  }

  static func == (left: ByteString, right: ByteString) -> Bool {
    left.string.utf8.count == right.string.utf8.count
      && left.string.utf8.elementsEqual(right.string.utf8)
  }

  func hash(into hasher: inout Hasher) {
    string.withBytes { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    // 0xFF stands in no UTF-8 text, so that two strings in a row never hash as another two.
    hasher.combine(0xFF as UInt8)
  }
}

extension String {
  /// Hands over the UTF-8 bytes, without a copy wherever the string stores them so.
  func withBytes<Result>(_ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
    utf8.withContiguousStorageIfAvailable(body) ?? Array(utf8).withUnsafeBufferPointer(body)
  }
}
