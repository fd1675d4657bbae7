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
