extension JSONParser {
  /// Skips white space and returns the byte after it, without taking it.
  @inline(__always)
  mutating func nextByte(_ document: Bytes) throws(JSONError) -> UInt8 {
    skipWhiteSpace(document)
    guard position < document.count else { throw .unexpectedEnd(offset: position) }
    return document[position]
  }

  @inline(__always)
  mutating func skipWhiteSpace(_ document: Bytes) {
    while position < document.count {
      switch document[position] {
      case 0x20, 0x0A, 0x0D, 0x09: position += 1
      default: return
      }
    }
  }

  /// Reads `true`, `false` or `null`, whose first byte has been seen.
  mutating func literal(
    _ text: StaticString, _ kind: JSONTape.Kind, _ document: Bytes
  ) throws(JSONError) {
    let start = position
    for index in 0..<text.utf8CodeUnitCount {
      guard position < document.count else { throw .unexpectedEnd(offset: position) }
      guard document[position] == text.utf8Start[index] else {
        throw offence(at: position, in: document)
      }
      position += 1
    }
    append(kind, at: start, 0, 0)
  }

  /// Reads a number, RFC 8259 section 6, whose first byte has been seen.
  mutating func number(_ document: Bytes) throws(JSONError) {
    let start = position
    let isNegative = document[position] == UInt8(ascii: "-")
    if isNegative { position += 1 }
    let firstDigit = position
    let leads = try digits(document)
    if leads > 1, document[firstDigit] == UInt8(ascii: "0") {
      throw .invalidNumber(offset: firstDigit + 1)
    }
    var isInteger = true
    if position < document.count, document[position] == UInt8(ascii: ".") {
      isInteger = false
      position += 1
      _ = try digits(document)
    }
    if position < document.count, document[position] | 0x20 == UInt8(ascii: "e") {
      isInteger = false
      position += 1
      if position < document.count,
        document[position] == UInt8(ascii: "+") || document[position] == UInt8(ascii: "-")
      {
        position += 1
      }
      _ = try digits(document)
    }
    // Fifteen digits always fit a double and are written back digit by digit; `-0` is not.
    if isInteger, leads <= 15, !(isNegative && document[firstDigit] == UInt8(ascii: "0")) {
      append(.integer, at: start, UInt32(start), UInt32(position))
      return
    }
    let text = document.extracting(start..<position).withUnsafeBufferPointer {
      String(decoding: $0, as: UTF8.self)
    }
    guard let value = Double(text) else { throw .invalidNumber(offset: start) }
    guard let number = JSONNumber(value) else { throw .numberOverflow(offset: start) }
    let bits = number.value.bitPattern
    tape.doubles += 1
    append(.double, at: start, UInt32(bits >> 32), UInt32(truncatingIfNeeded: bits))
  }

  /// Takes digits, at least one, and says how many.
  private mutating func digits(_ document: Bytes) throws(JSONError) -> Int {
    let start = position
    while position < document.count, document[position] &- UInt8(ascii: "0") < 10 { position += 1 }
    guard position > start else {
      guard position < document.count else { throw .unexpectedEnd(offset: position) }
      throw .invalidNumber(offset: position)
    }
    return position - start
  }
}
