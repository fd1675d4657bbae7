/// A parsed document as a flat list of tokens in reading order; proves that the document is I-JSON.
///
/// Only ``JSONParser`` makes one. Canonical bytes and ``JSONValue`` are both made from it, so there is one
/// grammar. It holds positions and no text: the document is passed beside it.
///
///     {"b":[1],"a":"\n"}  →  object b "b" · array · integer 1 · string "a" · string (decoded)
struct JSONTape {
  /// The kind of a token; determines the meaning of its `first` and `second`.
  enum Kind: UInt8 {
    case null, `false`, `true`
    /// Digits that are already canonical, `first..<second` in the document.
    case integer
    /// Any other number: the halves of the double's bit pattern, high and low.
    case double
    /// A string without escapes, so already canonical: its content, `first..<second` in the document.
    case plainString
    /// A string that had escapes: its content `first..<second` in `decoded`.
    case decodedString
    /// `first` is the index past its last token.
    case array
    /// Names and values in turn. `first` is the index past its last token; `second` is where
    /// `order` lists its names sorted, or `sortedAsReceived`.
    case object
  }

  struct Token {
    var kind: Kind
    /// Where it begins in the document.
    var source: UInt32
    var first: UInt32
    var second: UInt32
  }

  static let sortedAsReceived = UInt32.max

  var tokens = ContiguousArray<Token>()
  /// The unescaped content of all strings that had escapes.
  var decoded = ContiguousArray<UInt8>()
  /// For each object whose members came unsorted: their number, then the token index of each name.
  var order = ContiguousArray<UInt32>()
  /// How many `double` tokens there are; only these can be longer in canonical form.
  var doubles = 0

  /// The index of the token after the value at `index`.
  func end(of index: Int) -> Int {
    let token = tokens[index]
    switch token.kind {
    case .array, .object: return Int(token.first)
    default: return index + 1
    }
  }

  /// The indices of an array's elements.
  func children(of array: Int) -> [Int] {
    var (children, child): ([Int], Int) = ([], array + 1)
    while child < end(of: array) {
      children.append(child)
      child = end(of: child)
    }
    return children
  }

  /// Compares two strings' content in the order of RFC 8785 section 3.2.3.
  func compare(_ left: Int, _ right: Int, in document: Bytes) -> Int {
    content(left, document) { one in
      content(right, document) { other in UTF16Order.compare(one, other) }
    }
  }

  /// Whether a string's content is this text, byte by byte.
  func holds(_ index: Int, _ text: Bytes, in document: Bytes) -> Bool {
    guard tokens[index].range.count == text.count else { return false }
    return content(index, document) { UTF16Order.compare($0, text) == 0 }
  }

  /// ``UTF16Order/prefix(_:)`` of a string's content.
  func prefix(_ index: Int, in document: Bytes) -> UInt64 {
    content(index, document, UTF16Order.prefix)
  }

  /// A string's content.
  func string(_ index: Int, in document: Bytes) -> String {
    content(index, document) {
      $0.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
    }
  }

  /// Calls `body` with the bytes of a string's content.
  @inline(__always)
  private func content<R>(_ index: Int, _ document: Bytes, _ body: (Bytes) -> R) -> R {
    let token = tokens[index]
    guard token.kind == .decodedString else { return body(document.extracting(token.range)) }
    return decoded.withUnsafeBufferPointer { body(Bytes($0).extracting(token.range)) }
  }
}

extension JSONTape.Token {
  /// The bytes of a string's content or an integer's digits.
  var range: Range<Int> { Int(first)..<Int(second) }

  /// The value of a `double`.
  var double: Double { Double(bitPattern: UInt64(first) << 32 | UInt64(second)) }
}

/// Builds a ``JSONValue`` from a tape. Recursion is bounded by the parser's depth limit.
struct TreeReader {
  let tape: JSONTape
  private var index: Int

  init(tape: JSONTape, from index: Int) {
    self.tape = tape
    self.index = index
  }

  /// The value at the next token.
  mutating func value(_ document: Bytes) -> JSONValue {
    let (start, token) = (index, tape.tokens[index])
    index += 1
    switch token.kind {
    case .null: return .null
    case .false: return .bool(false)
    case .true: return .bool(true)
    case .integer:
      return .number(JSONNumber(shortInteger: document.extracting(token.range)))
    case .double:
      return .number(JSONNumber(finite: token.double))
    case .plainString, .decodedString:
      return .string(tape.string(start, in: document))
    case .array:
      var elements: [JSONValue] = []
      while index < Int(token.first) { elements.append(value(document)) }
      return .array(elements)
    case .object:
      var members: [JSONObject.Member] = []
      while index < Int(token.first) {
        index += 1
        let key = tape.string(index - 1, in: document)
        members.append((key, value(document)))
      }
      return .object(JSONObject(distinct: members))
    }
  }
}
