/// The one grammar: strict I-JSON (RFC 7493) bytes to a ``JSONTape``.
///
/// - Every byte is read through bounds-checked ``Bytes``.
/// - Open arrays and objects are on the parser's own stack, so no document exhausts the thread's.
/// - The work is near-linear in the document's size, whatever it holds: duplicates are found by sorting.
struct JSONParser {
  private struct Container {
    var token: Int
    var isObject: Bool
    /// The last name's token; negative before the first.
    var lastName = -1
    /// Whether the names so far are strictly ascending, and so without duplicates.
    var isSorted = true
  }

  /// A name to sort, with the prefix that usually decides the comparison.
  private struct RankedName {
    var prefix: UInt64
    var token: UInt32
  }

  let limits: JSONLimits
  var position = 0
  var tape = JSONTape()
  private var open = ContiguousArray<Container>()
  /// Kept between objects only to reuse its storage.
  private var ranked = ContiguousArray<RankedName>()

  init(limits: JSONLimits) {
    self.limits = limits
  }

  /// Reads one whole document; afterwards `tape` holds it.
  mutating func parse(_ document: Bytes) throws(JSONError) {
    guard document.count <= limits.maximumBytes else {
      throw .tooLarge(limit: limits.maximumBytes, offset: limits.maximumBytes)
    }
    if document.count >= 3, document[0] == 0xEF, document[1] == 0xBB, document[2] == 0xBF {
      throw .byteOrderMark(offset: 0)
    }
    tape.tokens.reserveCapacity(document.count / 16)
    repeat {
      try value(document)
    } while try another(document)
    if position < document.count { throw .trailingData(offset: position) }
  }

  /// Reads one scalar, or opens arrays and objects down to the first that is empty or holds a scalar.
  private mutating func value(_ document: Bytes) throws(JSONError) {
    while true {
      switch try nextByte(document) {
      case UInt8(ascii: "\""):
        try string(document)
      case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
        try number(document)
      case UInt8(ascii: "t"):
        try literal("true", .true, document)
      case UInt8(ascii: "f"):
        try literal("false", .false, document)
      case UInt8(ascii: "n"):
        try literal("null", .null, document)
      case UInt8(ascii: "["):
        try push(.array)
        if try nextByte(document) == UInt8(ascii: "]") { break }
        continue
      case UInt8(ascii: "{"):
        try push(.object)
        if try nextByte(document) == UInt8(ascii: "}") { break }
        try name(document)
        continue
      default:
        throw offence(at: position, in: document)
      }
      return
    }
  }

  /// After a value: closes the containers that end here; true if another value must follow.
  private mutating func another(_ document: Bytes) throws(JSONError) -> Bool {
    while let container = open.last {
      let byte = try nextByte(document)
      if byte == UInt8(ascii: ",") {
        position += 1
        if container.isObject {
          _ = try nextByte(document)
          try name(document)
        }
        return true
      }
      guard byte == (container.isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")) else {
        throw offence(at: position, in: document)
      }
      position += 1
      try close(document)
    }
    skipWhiteSpace(document)
    return false
  }

  private mutating func push(_ kind: JSONTape.Kind) throws(JSONError) {
    guard open.count < limits.maximumDepth else {
      throw .nestingTooDeep(limit: limits.maximumDepth, offset: position)
    }
    open.append(Container(token: tape.tokens.count, isObject: kind == .object))
    append(kind, 0, JSONTape.sortedAsReceived)
    position += 1
  }

  /// Reads a member's name and its colon.
  private mutating func name(_ document: Bytes) throws(JSONError) {
    guard document[position] == UInt8(ascii: "\"") else {
      throw offence(at: position, in: document)
    }
    let token = tape.tokens.count
    try string(document)
    let top = open.count - 1
    if open[top].isSorted, open[top].lastName >= 0 {
      open[top].isSorted = tape.compare(open[top].lastName, token, in: document) < 0
    }
    open[top].lastName = token
    guard try nextByte(document) == UInt8(ascii: ":") else {
      throw offence(at: position, in: document)
    }
    position += 1
  }

  private mutating func close(_ document: Bytes) throws(JSONError) {
    guard let container = open.popLast() else { return }
    tape.tokens[container.token].first = UInt32(tape.tokens.count)
    if container.isObject, !container.isSorted { try sortNames(of: container.token, document) }
  }

  /// Lists an object's names in canonical order, which puts equal names side by side.
  private mutating func sortNames(of object: Int, _ document: Bytes) throws(JSONError) {
    var names = ranked
    ranked = []
    names.removeAll(keepingCapacity: true)
    var index = object + 1
    while index < tape.tokens.count {
      names.append(RankedName(prefix: tape.prefix(index, in: document), token: UInt32(index)))
      index = tape.end(of: index + 1)
    }
    names.sort { left, right in
      if left.prefix != right.prefix { return left.prefix < right.prefix }
      let difference = tape.compare(Int(left.token), Int(right.token), in: document)
      return difference == 0 ? left.token < right.token : difference < 0
    }
    tape.tokens[object].second = UInt32(tape.order.count)
    tape.order.append(UInt32(names.count))
    var firstDuplicate: UInt32?
    var last: RankedName?
    for name in names {
      if let last, last.prefix == name.prefix,
        tape.compare(Int(last.token), Int(name.token), in: document) == 0
      {
        firstDuplicate = min(name.token, firstDuplicate ?? name.token)
      }
      last = name
      tape.order.append(name.token)
    }
    if let firstDuplicate { throw duplicate(Int(firstDuplicate), document) }
    ranked = names
  }

  private func duplicate(_ token: Int, _ document: Bytes) -> JSONError {
    .duplicateMember(
      name: tape.string(token, in: document), offset: Int(tape.tokens[token].source))
  }

  mutating func append(_ kind: JSONTape.Kind, _ first: UInt32, _ second: UInt32) {
    append(kind, at: position, first, second)
  }

  mutating func append(_ kind: JSONTape.Kind, at source: Int, _ first: UInt32, _ second: UInt32) {
    tape.tokens.append(
      JSONTape.Token(kind: kind, source: UInt32(source), first: first, second: second))
  }
}

/// How large and how deeply nested a document may be before it is refused.
///
/// Both limits are for untrusted documents: the size bounds the work, and the depth bounds the stack for
/// comparing, hashing, writing and freeing a ``JSONValue``.
///
/// Hazard: reading takes several times the document's size in memory, most for documents of only short
/// elements. For untrusted documents, set `maximumBytes` to the size that you expect.
public struct JSONLimits: Sendable, Hashable {
  /// The most arrays and objects that may be open at once; a lone scalar has depth 0, `[]` depth 1.
  public let maximumDepth: Int

  /// The most bytes a document may have.
  public let maximumBytes: Int

  /// 128 levels and 64 MiB.
  ///
  /// RFC 8259 section 9 leaves both to the parser. Signed documents nest four levels deep, and a registry
  /// of 100 000 keys has 22 MB, so both limits are far above what is needed and far below harm.
  public static let standard = JSONLimits()

  /// The deepest nesting that limits may allow: in an optimized build, comparing, hashing and freeing such a
  /// value fit into the 512 KiB stack of secondary threads on Apple platforms.
  public static let greatestDepth = 512

  /// The largest size that limits may allow: positions in a document have 32 bits.
  public static let greatestBytes = Int(Int32.max) - 1

  /// Custom limits; values outside `0...greatestDepth` and `0...greatestBytes` are clamped.
  public init(maximumDepth: Int = 128, maximumBytes: Int = 64 * 1024 * 1024) {
    self.maximumDepth = min(max(maximumDepth, 0), Self.greatestDepth)
    self.maximumBytes = min(max(maximumBytes, 0), Self.greatestBytes)
  }
}

extension JSONParser {
  /// Skips white space and returns the byte after it, without consuming it.
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
    // A double holds fifteen digits exactly and is written back digit by digit; `-0` is not.
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

  /// Reads digits, at least one, and returns how many.
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
