/// Writes the RFC 8785 form, from a tape or from a ``JSONValue``. Recursion is as deep as the value.
struct CanonicalWriter {
  private(set) var bytes: [UInt8] = []

  init(reserving capacity: Int) {
    bytes.reserveCapacity(capacity)
  }

  mutating func write(_ value: JSONValue) {
    switch value {
    case .null: write("null")
    case .bool(let bool): write(bool ? "true" : "false")
    case .number(let number): NumberLayout.write(number.value, to: &bytes)
    case .string(let string): write(string: string)
    case .array(let elements):
      bytes.append(UInt8(ascii: "["))
      for (index, element) in elements.enumerated() {
        if index > 0 { bytes.append(UInt8(ascii: ",")) }
        write(element)
      }
      bytes.append(UInt8(ascii: "]"))
    case .object(let object):
      bytes.append(UInt8(ascii: "{"))
      for (index, member) in object.membersInCanonicalOrder.enumerated() {
        if index > 0 { bytes.append(UInt8(ascii: ",")) }
        write(string: member.key)
        bytes.append(UInt8(ascii: ":"))
        write(member.value)
      }
      bytes.append(UInt8(ascii: "}"))
    }
  }

  /// Writes the value at this index of the tape.
  mutating func write(_ index: Int, of tape: borrowing JSONTape, _ document: Span<UInt8>) {
    let token = tape.tokens[index]
    switch token.kind {
    case .null: write("null")
    case .false: write("false")
    case .true: write("true")
    case .integer: append(document.extracting(token.range))
    case .double: NumberLayout.write(token.double, to: &bytes)
    case .plainString: append(document.extracting(Int(token.first) - 1..<Int(token.second) + 1))
    case .decodedString:
      tape.decoded.span.extracting(token.range).withUnsafeBufferPointer { writeEscaped($0) }
    case .array:
      bytes.append(UInt8(ascii: "["))
      var element = index + 1
      while element < Int(token.first) {
        if element > index + 1 { bytes.append(UInt8(ascii: ",")) }
        write(element, of: tape, document)
        element = tape.end(of: element)
      }
      bytes.append(UInt8(ascii: "]"))
    case .object:
      bytes.append(UInt8(ascii: "{"))
      if token.second == JSONTape.sortedAsReceived {
        var name = index + 1
        while name < Int(token.first) {
          if name > index + 1 { bytes.append(UInt8(ascii: ",")) }
          writeMember(name, of: tape, document)
          name = tape.end(of: name + 1)
        }
      } else {
        let start = Int(token.second) + 1
        for position in start..<start + Int(tape.order[start - 1]) {
          if position > start { bytes.append(UInt8(ascii: ",")) }
          writeMember(Int(tape.order[position]), of: tape, document)
        }
      }
      bytes.append(UInt8(ascii: "}"))
    }
  }

  private mutating func writeMember(
    _ name: Int, of tape: borrowing JSONTape, _ document: Span<UInt8>
  ) {
    write(name, of: tape, document)
    bytes.append(UInt8(ascii: ":"))
    write(name + 1, of: tape, document)
  }

  private mutating func write(_ text: StaticString) {
    bytes.append(
      contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }

  private mutating func append(_ text: Span<UInt8>) {
    text.withUnsafeBufferPointer { bytes.append(contentsOf: $0) }
  }

  private mutating func write(string: String) {
    string.withBytes { writeEscaped($0) }
  }

  /// RFC 8785 section 3.2.2.2: the short escapes, `\u00xx` for the other control characters, all else
  /// as it is.
  private mutating func writeEscaped(_ text: UnsafeBufferPointer<UInt8>) {
    bytes.append(UInt8(ascii: "\""))
    for byte in text {
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"): escape(byte)
      case 0x08: escape(UInt8(ascii: "b"))
      case 0x09: escape(UInt8(ascii: "t"))
      case 0x0A: escape(UInt8(ascii: "n"))
      case 0x0C: escape(UInt8(ascii: "f"))
      case 0x0D: escape(UInt8(ascii: "r"))
      case 0x00..<0x20:
        write(byte < 0x10 ? "\\u000" : "\\u001")
        let digit = byte & 0x0F
        bytes.append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
      default: bytes.append(byte)
      }
    }
    bytes.append(UInt8(ascii: "\""))
  }

  private mutating func escape(_ byte: UInt8) {
    bytes.append(UInt8(ascii: "\\"))
    bytes.append(byte)
  }
}

extension JSONObject {
  /// The members in the order of RFC 8785 section 3.2.3.
  var membersInCanonicalOrder: [Member] {
    members.sorted { left, right in
      left.key.withBytes { one in
        right.key.withBytes { other in UTF16Order.compare(one.span, other.span) < 0 }
      }
    }
  }
}
