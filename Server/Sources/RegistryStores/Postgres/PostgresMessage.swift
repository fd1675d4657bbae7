import CPostgreSQL

/// What PostgreSQL said of a failure, and what that means here.
struct PostgresMessage {
  /// One line, lower case first, without a full stop.
  let text: String
  /// SQLSTATE; empty where it has none.
  private let code: String
  private let isFromServer: Bool

  /// What libpq says of a connection.
  init(_ message: String) {
    var line = message.split(separator: "\n").first.map(String.init) ?? "the connection was lost"
    isFromServer = line.contains("FATAL:")
    if let mark = line.range(of: "FATAL:") {
      line = String(line[mark.upperBound...].drop { $0 == " " })
    }
    text = Self.asOurs(line)
    code = ""
  }

  /// What the server says of a statement; details, which may quote what is stored, are left out.
  init(_ result: OpaquePointer) {
    func field(_ name: Character) -> String? {
      let code = Int32(name.asciiValue ?? 0)
      return PQresultErrorField(result, code).map { String(cString: $0) }
    }
    code = field("C") ?? ""
    text = Self.asOurs(field("M") ?? "the connection was lost")
    isFromServer = true
  }

  var isMissingTable: Bool { code == "42P01" }

  /// What it means for somebody who wanted to connect.
  func connectError(_ place: String) -> StoreError {
    let passing = ["starting up", "shutting down", "recovery", "too many", "slots"]
    let isDenial = isFromServer && !passing.contains(where: text.contains)
    return isDenial
      ? .denied(place: place, reason: text) : .unreachable(place: place, reason: text)
  }

  /// What it means for a statement.
  func error(_ sql: String, _ place: String) -> StoreError {
    switch code {
    // Lock not available; deadlock.
    case "55P03", "40P01": return .busy
    // Insufficient privilege; a server that is only read from.
    case "42501", "25006": return .denied(place: place, reason: text)
    default:
      // Connection exceptions, and a server that goes or has no room.
      if ["08", "53", "57P"].contains(where: code.hasPrefix) {
        return .unreachable(place: place, reason: text)
      }
      let verb = sql.prefix { $0 != " " && $0 != "\n" }.lowercased()
      return .failed(operation: "\(verb) in \(place)", reason: text)
    }
  }

  private static func asOurs(_ text: String) -> String {
    (text.prefix(1).lowercased() + text.dropFirst()).trimmingSuffix(".")
  }
}

extension String {
  fileprivate func trimmingSuffix(_ suffix: String) -> String {
    hasSuffix(suffix) ? String(dropLast(suffix.count)) : self
  }
}
