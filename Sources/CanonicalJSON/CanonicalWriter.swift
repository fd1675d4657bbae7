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

  /// An array or object of the tape that is being written.
  private struct Container {
    let end: Int
    /// The token of the next element or name, or, where names came unsorted, its place in `order`.
    var next: Int
    let isObject: Bool
    let isReordered: Bool
  }

  /// Writes the whole document, without recursion.
  mutating func write(_ tape: borrowing JSONTape, _ document: Bytes) {
    var open = ContiguousArray<Container>()
    var index = 0
    while true {
      if let container = write(scalarOrOpening: index, of: tape, document) {
        open.append(container)
      }
      while let last = open.last, last.next == last.end {
        bytes.append(last.isObject ? UInt8(ascii: "}") : UInt8(ascii: "]"))
        open.removeLast()
      }
      guard let container = open.last else { return }
      let top = open.count - 1
      if container.isReordered {
        index = Int(tape.order[container.next])
        open[top].next += 1
      } else {
        index = container.next
        open[top].next = tape.end(of: container.isObject ? index + 1 : index)
      }
      let byte = bytes.last
      if byte != UInt8(ascii: "["), byte != UInt8(ascii: "{") { bytes.append(UInt8(ascii: ",")) }
      if container.isObject {
        _ = write(scalarOrOpening: index, of: tape, document)
        bytes.append(UInt8(ascii: ":"))
        index += 1
      }
    }
  }

  /// Writes one token; for an array or object that is its bracket, and what must follow is returned.
  private mutating func write(
    scalarOrOpening index: Int, of tape: borrowing JSONTape, _ document: Bytes
  ) -> Container? {
    let token = tape.tokens[index]
    switch token.kind {
    case .null: write("null")
    case .false: write("false")
    case .true: write("true")
    case .integer: append(document.extracting(token.range))
    case .double: NumberLayout.write(token.double, to: &bytes)
    case .plainString: append(document.extracting(Int(token.first) - 1..<Int(token.second) + 1))
    case .decodedString:
      tape.decoded.withUnsafeBufferPointer { decoded in
        Bytes(decoded).extracting(token.range).withUnsafeBufferPointer { writeEscaped($0) }
      }
    case .array:
      bytes.append(UInt8(ascii: "["))
      return Container(
        end: Int(token.first), next: index + 1, isObject: false, isReordered: false)
    case .object:
      bytes.append(UInt8(ascii: "{"))
      guard token.second != JSONTape.sortedAsReceived else {
        return Container(
          end: Int(token.first), next: index + 1, isObject: true, isReordered: false)
      }
      let start = Int(token.second) + 1
      return Container(
        end: start + Int(tape.order[start - 1]), next: start, isObject: true, isReordered: true)
    }
    return nil
  }

  private mutating func write(_ text: StaticString) {
    text.withUTF8Buffer { bytes.append(contentsOf: $0) }
  }

  private mutating func append(_ text: Bytes) {
    text.withUnsafeBufferPointer { bytes.append(contentsOf: $0) }
  }

  private mutating func write(string: String) {
    string.withBytes { writeEscaped($0) }
  }

  /// RFC 8785 section 3.2.2.2: the short escapes, `\u00xx` for the other control characters, all else
  /// as it is.
  private mutating func writeEscaped(_ text: UnsafeBufferPointer<UInt8>) {
    bytes.append(UInt8(ascii: "\""))
    var written = 0
    for (index, byte) in text.enumerated()
    where byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") {
      bytes.append(contentsOf: text[written..<index])
      written = index + 1
      switch byte {
      case 0x08: escape(UInt8(ascii: "b"))
      case 0x09: escape(UInt8(ascii: "t"))
      case 0x0A: escape(UInt8(ascii: "n"))
      case 0x0C: escape(UInt8(ascii: "f"))
      case 0x0D: escape(UInt8(ascii: "r"))
      case 0x00..<0x20:
        write(byte < 0x10 ? "\\u000" : "\\u001")
        let digit = byte & 0x0F
        bytes.append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
      default: escape(byte)
      }
    }
    bytes.append(contentsOf: text[written...])
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
    // Whoever writes much writes it in order, and sorting costs as much as writing.
    let isInOrder = zip(members, members.dropFirst()).allSatisfy(Self.isBefore)
    return isInOrder ? members : members.sorted(by: Self.isBefore)
  }

  private static func isBefore(_ left: Member, _ right: Member) -> Bool {
    left.key.withBytes { one in
      right.key.withBytes { other in UTF16Order.compare(Bytes(one), Bytes(other)) < 0 }
    }
  }
}
