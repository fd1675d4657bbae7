extension JSONParser {
  /// Reads a string whose opening quote has been seen. Only text with escapes is copied.
  mutating func string(_ document: Bytes) throws(JSONError) {
    let source = position
    position += 1
    let start = position
    try plainText(document)
    if document[position] == UInt8(ascii: "\"") {
      append(.plainString, at: source, UInt32(start), UInt32(position))
      position += 1
      return
    }
    let decodedStart = tape.decoded.count
    var copied = start
    while document[position] == UInt8(ascii: "\\") {
      copy(copied..<position, document)
      try escape(document)
      copied = position
      try plainText(document)
    }
    copy(copied..<position, document)
    append(.decodedString, at: source, UInt32(decodedStart), UInt32(tape.decoded.count))
    position += 1
  }

  private mutating func copy(_ range: Range<Int>, _ document: Bytes) {
    document.extracting(range).withUnsafeBufferPointer { tape.decoded.append(contentsOf: $0) }
  }

  /// Moves on to the next quote or backslash; everything up to there is well-formed UTF-8.
  private mutating func plainText(_ document: Bytes) throws(JSONError) {
    while true {
      position = Self.endOfPrintableASCII(from: position, in: document)
      guard position < document.count else { throw .unexpectedEnd(offset: position) }
      let byte = document[position]
      if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { return }
      if byte < 0x20 { throw .controlCharacter(byte, offset: position) }
      repeat {
        let length = Self.characterLength(at: position, in: document)
        guard length > 0 else { throw .invalidUTF8(offset: position) }
        position += length
      } while position < document.count && document[position] >= 0x80
    }
  }

  /// The index of the first byte that is not plain ASCII: a quote, a backslash, a control character or part
  /// of a longer character. Checks eight bytes at a time while there are that many.
  private static func endOfPrintableASCII(from start: Int, in document: Bytes) -> Int {
    let ones: UInt64 = 0x0101_0101_0101_0101
    let count = document.count
    var position = start
    while count - position >= 8 {
      let word = document.word(at: position)
      let quote = word ^ (ones &* 0x22)
      let backslash = word ^ (ones &* 0x5C)
      // Subtracting borrows into the top bit of the bytes that are too small; above the first such
      // byte a mark may be false, so only the lowest counts.
      let marks =
        (word | (word &- ones &* 0x20) | (quote &- ones) & ~quote
          | (backslash &- ones) & ~backslash) & (ones &* 0x80)
      if marks != 0 { return position + marks.trailingZeroBitCount / 8 }
      position += 8
    }
    while position < count {
      let byte = document[position]
      if byte < 0x20 || byte >= 0x80 || byte == 0x22 || byte == 0x5C { return position }
      position += 1
    }
    return position
  }

  /// The length of the well-formed multi-byte character at this index, 0 if there is none (the table of
  /// RFC 3629 section 4).
  static func characterLength(at start: Int, in document: Bytes) -> Int {
    let length: Int
    var second: ClosedRange<UInt8> = 0x80...0xBF
    switch document[start] {
    case 0xC2...0xDF: length = 2
    case 0xE0: (length, second) = (3, 0xA0...0xBF)
    case 0xED: (length, second) = (3, 0x80...0x9F)
    case 0xE1...0xEF: length = 3
    case 0xF0: (length, second) = (4, 0x90...0xBF)
    case 0xF1...0xF3: length = 4
    case 0xF4: (length, second) = (4, 0x80...0x8F)
    default: return 0
    }
    guard document.count - start >= length, second.contains(document[start + 1]) else { return 0 }
    for index in start + 2..<start + max(length, 2) where document[index] & 0xC0 != 0x80 {
      return 0
    }
    return length
  }

  /// The error for a byte that is not allowed here: bad UTF-8 is reported as such outside strings, too.
  func offence(at offset: Int, in document: Bytes) -> JSONError {
    let byte = document[offset]
    if byte >= 0x80, Self.characterLength(at: offset, in: document) == 0 {
      return .invalidUTF8(offset: offset)
    }
    return .unexpectedByte(byte, offset: offset)
  }

  /// Reads one escape and appends what it stands for.
  private mutating func escape(_ document: Bytes) throws(JSONError) {
    let backslash = position
    position += 1
    guard position < document.count else { throw .unexpectedEnd(offset: position) }
    let byte = document[position]
    position += 1
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): tape.decoded.append(byte)
    case UInt8(ascii: "b"): tape.decoded.append(0x08)
    case UInt8(ascii: "f"): tape.decoded.append(0x0C)
    case UInt8(ascii: "n"): tape.decoded.append(0x0A)
    case UInt8(ascii: "r"): tape.decoded.append(0x0D)
    case UInt8(ascii: "t"): tape.decoded.append(0x09)
    case UInt8(ascii: "u"):
      let scalar = try escapedScalar(after: backslash, document)
      tape.decoded.append(contentsOf: UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter)
    default:
      throw .invalidEscape(offset: backslash)
    }
  }

  /// Reads the digits after `\u`, and the second escape of a surrogate pair.
  private mutating func escapedScalar(
    after backslash: Int, _ document: Bytes
  ) throws(JSONError) -> Unicode.Scalar {
    let unit = try codeUnit(after: backslash, document)
    if let scalar = Unicode.Scalar(unit) { return scalar }
    guard UTF16.isLeadSurrogate(unit) else { throw .loneSurrogate(offset: backslash) }
    let second = position
    for byte in [UInt8(ascii: "\\"), UInt8(ascii: "u")] {
      guard position < document.count else { throw .unexpectedEnd(offset: position) }
      guard document[position] == byte else { throw .loneSurrogate(offset: backslash) }
      position += 1
    }
    let trail = try codeUnit(after: second, document)
    guard UTF16.isTrailSurrogate(trail),
      let scalar = Unicode.Scalar(
        0x10000 + (UInt32(unit) & 0x3FF) << 10 + UInt32(trail) & 0x3FF)
    else { throw .loneSurrogate(offset: backslash) }
    return scalar
  }

  private mutating func codeUnit(
    after backslash: Int, _ document: Bytes
  ) throws(JSONError) -> UInt16 {
    var unit: UInt16 = 0
    for _ in 0..<4 {
      guard position < document.count else { throw .unexpectedEnd(offset: position) }
      guard let digit = Self.hexadecimalValue(document[position]) else {
        throw .invalidEscape(offset: backslash)
      }
      unit = unit << 4 | UInt16(digit)
      position += 1
    }
    return unit
  }

  private static func hexadecimalValue(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
    default: nil
    }
  }
}
