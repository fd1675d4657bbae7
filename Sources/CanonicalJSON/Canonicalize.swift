/// The RFC 8785 form of a document: strict I-JSON (RFC 7493) in, the bytes that signatures cover out.
///
/// Only what canonical form requires is decoded, so unknown members are kept.
///
/// - Parameters:
///   - bytes: the document in UTF-8, without a byte order mark; the top may be any value.
///   - limits: its greatest size and depth.
/// - Returns: the canonical bytes; canonicalizing them again changes nothing.
/// - Throws: the first offence, with its byte offset.
public func canonicalize(
  _ bytes: [UInt8], limits: JSONLimits = .standard
) throws(JSONError) -> [UInt8] {
  try JSONView(parsing: bytes, limits: limits).canonicalBytes
}

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
    /// The token of the next element or name or, if the names came unsorted, its place in `order`.
    var next: Int
    let isObject: Bool
    let isReordered: Bool
  }

  /// Writes the value at a token, without recursion.
  mutating func write(_ tape: borrowing JSONTape, _ document: Bytes, from start: Int) {
    var open = ContiguousArray<Container>()
    var index = start
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

  /// Writes one token. For an array or object that is its opening bracket; the container is returned.
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

  /// RFC 8785 section 3.2.2.2: short escapes, `\u00xx` for other control characters, everything else as it is.
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
    // Large objects are usually in order already, and sorting costs as much as writing.
    let isInOrder = zip(members, members.dropFirst()).allSatisfy(Self.isBefore)
    return isInOrder ? members : members.sorted(by: Self.isBefore)
  }

  private static func isBefore(_ left: Member, _ right: Member) -> Bool {
    left.key.withBytes { one in
      right.key.withBytes { other in UTF16Order.compare(Bytes(one), Bytes(other)) < 0 }
    }
  }
}

/// ECMAScript's `Number::toString` (ECMA-262 section 6.1.6.1.20), which RFC 8785 section 3.2.2.3
/// prescribes.
///
/// Swift's `description` finds the same digits: the shortest that read back as the number, and the closest
/// of those. Only the place of the point and the exponent differs.
enum NumberLayout {
  /// Appends a finite number that is not `-0`.
  static func write(_ value: Double, to bytes: inout [UInt8]) {
    if value.magnitude < 0x1p53, value == Double(Int64(value)) {
      bytes.append(contentsOf: String(Int64(value)).utf8)
      return
    }
    if value < 0 { bytes.append(UInt8(ascii: "-")) }
    let (significand, scale) = decimal(value.magnitude)
    let digits = String(significand).utf8
    lay(digits, point: digits.count + scale, to: &bytes)
  }

  /// A positive number as `significand` times ten to the power of `scale`, without trailing zeros.
  /// A double never needs more than 17 digits, so the significand fits.
  private static func decimal(_ magnitude: Double) -> (significand: UInt64, scale: Int) {
    var significand: UInt64 = 0
    var (scale, exponent) = (0, 0)
    var (sawPoint, sawExponent, isNegativeExponent) = (false, false, false)
    for byte in magnitude.description.utf8 {
      switch byte {
      case UInt8(ascii: "."): sawPoint = true
      case UInt8(ascii: "e"): sawExponent = true
      case UInt8(ascii: "-"): isNegativeExponent = true
      case UInt8(ascii: "+"): break
      default:
        let digit = byte & 0x0F
        if sawExponent {
          exponent = exponent * 10 + Int(digit)
        } else {
          significand = significand &* 10 &+ UInt64(digit)
          if sawPoint { scale -= 1 }
        }
      }
    }
    scale += isNegativeExponent ? -exponent : exponent
    while significand > 0, significand.isMultiple(of: 10) {
      significand /= 10
      scale += 1
    }
    return (significand, scale)
  }

  /// The layouts of the specification; `point` is the n there, and the number of digits is k.
  private static func lay(_ digits: String.UTF8View, point: Int, to bytes: inout [UInt8]) {
    let zero = UInt8(ascii: "0")
    if digits.count <= point, point <= 21 {
      bytes.append(contentsOf: digits)
      bytes.append(contentsOf: repeatElement(zero, count: point - digits.count))
    } else if point > 0, point <= 21 {
      bytes.append(contentsOf: digits.prefix(point))
      bytes.append(UInt8(ascii: "."))
      bytes.append(contentsOf: digits.dropFirst(point))
    } else if point > -6, point <= 0 {
      bytes.append(zero)
      bytes.append(UInt8(ascii: "."))
      bytes.append(contentsOf: repeatElement(zero, count: -point))
      bytes.append(contentsOf: digits)
    } else {
      bytes.append(contentsOf: digits.prefix(1))
      if digits.count > 1 { bytes.append(UInt8(ascii: ".")) }
      bytes.append(contentsOf: digits.dropFirst())
      bytes.append(UInt8(ascii: "e"))
      bytes.append(UInt8(ascii: point > 0 ? "+" : "-"))
      bytes.append(contentsOf: String((point - 1).magnitude).utf8)
    }
  }
}

/// The order of RFC 8785 section 3.2.3, by UTF-16 code units, computed from UTF-8 bytes.
///
/// The two orders differ in one case: characters beyond U+FFFF are surrogates (0xD800 and up) in UTF-16,
/// and so come *before* U+E000 to U+FFFF, although their UTF-8 lead bytes (0xF0 and up) are greater than
/// 0xEE and 0xEF. So bytes are compared with these two lead bytes moved above all others; continuation
/// bytes and shorter characters are below them either way.
enum UTF16Order {
  /// Negative, zero or positive if the left text comes before, equals or comes after the right one.
  /// Both must be well-formed UTF-8.
  static func compare(_ left: Bytes, _ right: Bytes) -> Int {
    let shared = min(left.count, right.count)
    var index = 0
    while index < shared {
      let (one, other) = (left[index], right[index])
      if one != other { return Int(rank(one)) - Int(rank(other)) }
      index += 1
    }
    return left.count - right.count
  }

  /// A text's first eight bytes as a number. Of two texts with different numbers, the one with the smaller
  /// number comes first; equal numbers decide nothing.
  static func prefix(_ text: Bytes) -> UInt64 {
    var prefix: UInt64 = 0
    for index in 0..<min(text.count, 8) { prefix = prefix << 8 | UInt64(rank(text[index])) }
    return text.count < 8 ? prefix << (8 * UInt64(8 - text.count)) : prefix
  }

  private static func rank(_ byte: UInt8) -> UInt8 {
    byte == 0xEE || byte == 0xEF ? byte + 0x10 : byte
  }
}
