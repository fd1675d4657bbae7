/// Bytes that stand somewhere else, read with a check of every index.
///
/// - Hazard: valid for as long as the storage that it was made from, inside that one's
///   `withUnsafeBufferPointer`. Never keep one.
/// - `Span` is the same with a lifetime that the compiler watches. It is not used here, because it costs an app
///   with a minimum below Apple's systems 26 one more library.
struct Bytes {
  private let buffer: UnsafeBufferPointer<UInt8>

  init(_ buffer: UnsafeBufferPointer<UInt8>) { self.buffer = buffer }

  var count: Int { buffer.count }
  var isEmpty: Bool { buffer.isEmpty }

  @inline(__always)
  subscript(index: Int) -> UInt8 {
    // The buffer's own check stands in debug builds only.
    precondition(index >= 0 && index < buffer.count, "no such byte")
    return buffer[index]
  }

  /// A part of the bytes, counted from its own beginning.
  @inline(__always)
  func extracting(_ range: Range<Int>) -> Bytes {
    precondition(range.lowerBound >= 0 && range.upperBound <= buffer.count, "no such bytes")
    return Bytes(UnsafeBufferPointer(rebasing: buffer[range]))
  }

  /// Eight bytes from this place on as a number, the first byte lowest.
  @inline(__always)
  func word(at index: Int) -> UInt64 {
    precondition(index >= 0 && index <= buffer.count - 8, "no such bytes")
    return UInt64(
      littleEndian: UnsafeRawBufferPointer(buffer).loadUnaligned(
        fromByteOffset: index, as: UInt64.self))
  }

  @inline(__always)
  func withUnsafeBufferPointer<R>(_ body: (UnsafeBufferPointer<UInt8>) -> R) -> R { body(buffer) }
}

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
