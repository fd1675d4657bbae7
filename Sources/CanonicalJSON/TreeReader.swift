/// Builds a ``JSONValue`` from a tape. Recursion is bounded by the parser's depth limit.
struct TreeReader {
  let tape: JSONTape
  private var index = 0

  init(tape: JSONTape) {
    self.tape = tape
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
