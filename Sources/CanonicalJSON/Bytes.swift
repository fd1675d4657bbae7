/// A view of bytes stored elsewhere, with a check of every index.
///
/// - Hazard: valid only inside the `withUnsafeBufferPointer` of the storage from which it was made. Never
///   store one.
/// - `Span` does the same with a lifetime that the compiler checks. It is not used, because it adds a library to
///   apps whose minimum is below version 26 of Apple's systems.
struct Bytes {
  private let buffer: UnsafeBufferPointer<UInt8>

  init(_ buffer: UnsafeBufferPointer<UInt8>) { self.buffer = buffer }

  var count: Int { buffer.count }
  var isEmpty: Bool { buffer.isEmpty }

  @inline(__always)
  subscript(index: Int) -> UInt8 {
    // The buffer checks its index in debug builds only.
    precondition(index >= 0 && index < buffer.count, "no such byte")
    return buffer[index]
  }

  /// A part of the bytes, indexed from its own beginning.
  @inline(__always)
  func extracting(_ range: Range<Int>) -> Bytes {
    precondition(range.lowerBound >= 0 && range.upperBound <= buffer.count, "no such bytes")
    return Bytes(UnsafeBufferPointer(rebasing: buffer[range]))
  }

  /// Eight bytes at this index as a little-endian number.
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

/// A string that equals another only if their UTF-8 bytes are the same.
///
/// `String` compares by Unicode's canonical equivalence, under which two member names, or two host names,
/// that differ on the wire would be the same.
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
    // 0xFF never occurs in UTF-8, so it separates consecutive strings unambiguously.
    hasher.combine(0xFF as UInt8)
  }
}

extension String {
  /// Calls `body` with the UTF-8 bytes, without a copy if the string stores them contiguously.
  func withBytes<Result>(_ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
    utf8.withContiguousStorageIfAvailable(body) ?? Array(utf8).withUnsafeBufferPointer(body)
  }
}
