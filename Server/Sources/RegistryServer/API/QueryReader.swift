import CanonicalJSON

/// The query of a call, read strictly: an unknown name and one that stands twice are refused.
struct QueryReader {
  private var values: [String: String] = [:]

  init(
    _ query: [(name: String, value: String)], known: [String]
  ) throws(APIError) {
    for (name, value) in query {
      guard known.contains(where: { $0.utf8.elementsEqual(name.utf8) }) else {
        throw .badRequest(
          "unknown query parameter: \(name)",
          hint: known.isEmpty
            ? "there are none here" : "known: \(known.sorted().joined(separator: ", "))")
      }
      guard values.updateValue(value, forKey: name) == nil else {
        throw .badRequest("\(name) stands twice in the query")
      }
    }
  }

  /// A text of so many characters.
  func text(_ name: String, atMost limit: Int) throws(APIError) -> String? {
    guard let value = values[name] else { return nil }
    guard value.unicodeScalars.count <= limit else {
      throw .badRequest("\(name) is longer than \(limit) characters")
    }
    return value
  }

  /// A whole number in digits. `Int64("+5")` succeeds; a number here is digits.
  func integer(
    _ name: String, in range: ClosedRange<Int64>
  ) throws(APIError) -> Int64? {
    guard let text = values[name] else { return nil }
    guard text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
      let value = Int64(text), range.contains(value)
    else {
      throw .badRequest(
        "\(name) is no number from \(range.lowerBound) to \(range.upperBound)")
    }
    return value
  }

  /// One of an enumeration's words.
  func choice<Choice: RawRepresentable<String> & CaseIterable>(
    _ name: String, _ type: Choice.Type
  ) throws(APIError) -> Choice? {
    guard let text = values[name] else { return nil }
    guard let choice = Choice.allCases.first(where: { $0.rawValue == text }) else {
      throw .badRequest(
        "\(name) is \"\(text)\"",
        hint: "one of \(Choice.allCases.map(\.rawValue).joined(separator: ", "))")
    }
    return choice
  }

  /// Which part of a list is asked for.
  func page() throws(APIError) -> PageRange {
    PageRange(
      offset: Int(clamping: try integer("offset", in: 0...greatest) ?? 0), limit: try limit())
  }

  /// How many are asked for.
  func limit() throws(APIError) -> Int {
    Int(clamping: try integer("limit", in: 1...1000) ?? 100)
  }

  /// The largest whole number that JSON says exactly.
  private let greatest: Int64 = 1 << 53 - 1

  /// Any whole number that JSON says exactly.
  func number(_ name: String, from least: Int64) throws(APIError) -> Int64? {
    try integer(name, in: least...greatest)
  }
}

/// A part of a long list.
struct PageRange: Sendable, Equatable {
  let offset: Int
  let limit: Int

  /// The part of a list and how long the list is: `{offset, limit, total, items}`.
  func page<Element>(
    of list: [Element], _ show: (Element) -> JSONValue
  ) -> JSONObject {
    [
      "offset": .count(offset), "limit": .count(limit), "total": .count(list.count),
      "items": .array(list.dropFirst(offset).prefix(limit).map(show)),
    ]
  }
}
