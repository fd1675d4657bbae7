/// The header lines of a request.
///
/// One buffer holds them all, because most handlers look at one line or none.
package struct HTTPHeaders: Sendable {
  /// Name, NUL, blanks, value, blanks, two NULs, and so on: neither part can have a NUL.
  private var bytes: [UInt8] = []

  init() {}

  /// Lines from elsewhere than a connection.
  init(_ lines: [(name: String, value: String)]) {
    for (name, value) in lines {
      var (name, value) = (name, value)
      name.withUTF8 { name in
        value.withUTF8 { append(UnsafeRawBufferPointer(name), UnsafeRawBufferPointer($0)) }
      }
    }
  }

  /// The value under a name, whatever its letter case; several lines are joined by `, `
  /// (RFC 9110 §5.3). `nil` where there is no such line. Bytes that are no UTF-8 are replaced.
  package subscript(name: String) -> String? {
    var found: String?
    var rest = bytes[...]
    while let line = Self.next(&rest) {
      guard Self.isSame(line.name, name.utf8) else { continue }
      let value = String(decoding: line.value, as: UTF8.self)
      found = found.map { "\($0), \(value)" } ?? value
    }
    return found
  }

  /// Adds a line.
  mutating func append(_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) {
    bytes.append(contentsOf: name)
    bytes.append(0)
    bytes.append(contentsOf: value)
    bytes.append(0)
    bytes.append(0)
  }

  /// Adds lines as they are kept here.
  mutating func append(_ lines: UnsafeRawBufferPointer) { bytes.append(contentsOf: lines) }

  /// Forgets all lines and keeps the buffer, where nobody else has it.
  mutating func removeAll() { bytes.removeAll(keepingCapacity: true) }

  /// White space around a value is no part of it (RFC 9110 §5.5).
  private static func next(
    _ rest: inout ArraySlice<UInt8>
  ) -> (name: ArraySlice<UInt8>, value: ArraySlice<UInt8>)? {
    guard let colon = rest.firstIndex(of: 0),
      let end = rest[(colon + 1)...].firstIndex(of: 0)
    else { return nil }
    defer { rest = rest[(end + 2)...] }
    var value = rest[(colon + 1)..<end]
    while let last = value.last, isBlank(last) { value.removeLast() }
    while let first = value.first, isBlank(first) { value.removeFirst() }
    return (rest[..<colon], value)
  }

  private static func isSame(_ name: ArraySlice<UInt8>, _ other: String.UTF8View) -> Bool {
    name.count == other.count && zip(name, other).allSatisfy { lowered($0) == lowered($1) }
  }

  private static func lowered(_ byte: UInt8) -> UInt8 {
    (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
  }

  private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
}
