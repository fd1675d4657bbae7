import CanonicalJSON
import Foundation

extension Terminal {
  /// Writes a result as one line of JSON.
  static func write(_ json: JSONValue) throws(CommandFailure) {
    try write(json.canonicalBytes + [UInt8(ascii: "\n")])
  }
}

extension JSONValue {
  /// An object of these members.
  static func members(_ members: KeyValuePairs<String, JSONValue>) -> JSONValue {
    .object(JSONObject(members.map { ($0.key, $0.value) }))
  }

  /// The text, or `null`.
  static func optional(_ text: String?) -> JSONValue { text.map(JSONValue.string) ?? .null }
}

/// Rows of text in columns, for people.
struct TextTable {
  private var rows: [[String]]

  init(header: [String] = []) { rows = header.isEmpty ? [] : [header] }

  /// Adds a row; cells cannot break out of their line.
  mutating func add(_ row: [String]) {
    rows.append(row.map { $0.printable.replacingOccurrences(of: "\n", with: "\\n") })
  }

  /// The lines, the last column not padded.
  var text: String {
    let columns = rows.map(\.count).max() ?? 0
    let widths = (0..<columns).map { column in
      rows.map { $0.dropFirst(column).first?.count ?? 0 }.max() ?? 0
    }
    return rows.map { row in
      zip(row, widths).enumerated().map { index, cell in
        index == row.count - 1
          ? cell.0 : cell.0 + String(repeating: " ", count: cell.1 - cell.0.count + 2)
      }.joined()
    }.joined(separator: "\n")
  }
}

/// Moments for people: RFC 3339 in UTC.
func dateText(_ unixSeconds: Int64) -> String {
  guard (0...253_402_300_799).contains(unixSeconds) else { return "\(unixSeconds)" }
  return Date(timeIntervalSince1970: Double(unixSeconds)).ISO8601Format()
}
