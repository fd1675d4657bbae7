import CPostgreSQL
import Foundation

/// One connection to PostgreSQL. Calls block, but none for ever: when nothing moves for
/// ``patience``, the call fails and the connection is of no further use.
///
/// Unchecked: one thread uses it at a time, its owner sees to that.
package final class PostgresConnection: DatabaseConnection, @unchecked Sendable {
  private let connection: OpaquePointer
  let place: String
  private let patience: Duration
  private var statements: [String: String] = [:]
  private var isBroken = false

  /// Connects.
  ///
  /// - Parameter patience: milliseconds for which a call waits for the next sign of the server.
  /// - Throws: ``StoreError/unreachable(place:reason:)``, ``StoreError/denied(place:reason:)``.
  package init(_ dsn: PostgresDSN, patience: Int = 6000) throws(StoreError) {
    place = dsn.place
    self.patience = .milliseconds(patience)
    let keywords = dsn.parameters.map { strdup($0.keyword) } + [nil]
    let values = dsn.parameters.map { strdup($0.value) } + [nil]
    defer { for text in keywords + values { free(text) } }
    let opened = PQconnectdbParams(
      keywords.map { UnsafePointer($0) }, values.map { UnsafePointer($0) }, 0)
    if PQstatus(opened) != CONNECTION_OK, Self.message(of: opened).isFromServer {
      // The words are in the server's language. libpq tells the code of a refused connection only in a verbose text, and
      // takes no wish for one before it has tried to connect.
      PQsetErrorVerbosity(opened, PQERRORS_VERBOSE)
      PQreset(opened)
    }
    guard let opened, PQstatus(opened) == CONNECTION_OK else {
      let error = Self.message(of: opened).connectError(dsn.place)
      PQfinish(opened)
      throw error
    }
    connection = opened
    PQsetnonblocking(opened, 1)
    // Notices are for people at a terminal.
    PQsetNoticeProcessor(opened, { _, _ in }, nil)
  }

  deinit { PQfinish(connection) }

  var isUsable: Bool {
    // What comes unasked is the server's farewell, and the end of the connection.
    guard !isBroken, PQstatus(connection) == CONNECTION_OK else { return false }
    return !awaits(POLLIN, for: .zero) || (PQconsumeInput(connection) == 1 && isStillThere)
  }

  /// The socket, to wait for what comes unasked.
  var socket: Int32 { PQsocket(connection) }

  /// Runs statements without parameters.
  func execute(_ sql: String) throws(StoreError) {
    guard PQsendQuery(connection, sql) == 1 else { throw broken() }
    _ = try results(of: sql)
  }

  /// Runs one statement, which is prepared once and kept, and returns its rows.
  func query(_ sql: String, _ values: [PostgresValue] = []) throws(StoreError) -> [PostgresRow] {
    let name = try prepared(sql, values)
    let encoded = values.map(\.encoded)
    let copies = encoded.map { bytes in
      // Never empty: a null pointer would be NULL.
      let copy = UnsafeMutablePointer<CChar>.allocate(capacity: bytes.count + 1)
      bytes.withUnsafeBytes {
        UnsafeMutableRawBufferPointer(start: copy, count: $0.count).copyMemory(from: $0)
      }
      return copy
    }
    defer { for copy in copies { copy.deallocate() } }
    let sent = PQsendQueryPrepared(
      connection, name, Int32(values.count), copies.map { UnsafePointer($0) },
      encoded.map { Int32(clamping: $0.count) }, values.map { _ in 1 }, 1)
    guard sent == 1 else { throw broken() }
    return try results(of: sql)
  }

  /// The payloads of notifications that have come.
  func notifications() throws(StoreError) -> [String] {
    guard PQconsumeInput(connection) == 1 else { throw broken() }
    var payloads: [String] = []
    while let notification = PQnotifies(connection) {
      if let payload = notification.pointee.extra { payloads.append(String(cString: payload)) }
      PQfreemem(notification)
    }
    guard PQstatus(connection) == CONNECTION_OK else { throw broken() }
    return payloads
  }

  private func prepared(_ sql: String, _ values: [PostgresValue]) throws(StoreError) -> String {
    if let name = statements[sql] { return name }
    let name = "s\(statements.count + 1)"
    guard PQsendPrepare(connection, name, sql, Int32(values.count), values.map(\.type)) == 1 else {
      throw broken()
    }
    _ = try results(of: sql)
    statements[sql] = name
    return name
  }

  /// Waits for everything that comes of what was sent, and reads the rows of the last result.
  private func results(of sql: String) throws(StoreError) -> [PostgresRow] {
    try flush()
    var rows: [PostgresRow] = []
    var failure: StoreError?
    while true {
      while PQisBusy(connection) == 1 {
        guard awaits(POLLIN, for: patience) else { throw broken("no answer in time") }
        guard PQconsumeInput(connection) == 1 else { throw broken() }
      }
      guard let result = PQgetResult(connection) else { break }
      defer { PQclear(result) }
      switch PQresultStatus(result) {
      case PGRES_TUPLES_OK: rows = Self.rows(of: result)
      case PGRES_COMMAND_OK, PGRES_EMPTY_QUERY: continue
      default:
        let message = PostgresMessage(result)
        if message.needsAnotherConnection { isBroken = true }
        failure = failure ?? message.error(sql, place)
      }
    }
    guard PQstatus(connection) == CONNECTION_OK else { throw broken(failure) }
    if let failure { throw failure }
    return rows
  }

  private func flush() throws(StoreError) {
    while true {
      switch PQflush(connection) {
      case 0: return
      case 1:
        guard awaits(POLLIN | POLLOUT, for: patience) else { throw broken("nothing is taken") }
        // A server that sends while we do would wait for us for ever.
        guard PQconsumeInput(connection) == 1 else { throw broken() }
      default: throw broken()
      }
    }
  }

  private func awaits(_ events: Int32, for duration: Duration) -> Bool {
    let end = ContinuousClock.now + duration
    while true {
      var file = pollfd(fd: PQsocket(connection), events: Int16(events), revents: 0)
      let count = poll(&file, 1, max(0, Int32(clamping: (end - .now).milliseconds)))
      if count >= 0 || errno != EINTR { return count > 0 }
    }
  }

  private var isStillThere: Bool {
    PQstatus(connection) == CONNECTION_OK && !awaits(POLLIN, for: .zero)
  }

  private func broken(_ reason: String? = nil) -> StoreError {
    isBroken = true
    return .unreachable(place: place, reason: reason ?? Self.message(of: connection).text)
  }

  private static func message(of connection: OpaquePointer?) -> PostgresMessage {
    PostgresMessage(connection.map { String(cString: PQerrorMessage($0)) } ?? "out of memory")
  }

  /// The server's own words where it had any before it left.
  private func broken(_ failure: StoreError?) -> StoreError {
    isBroken = true
    guard case .failed(_, let reason) = failure else { return failure ?? broken(nil as String?) }
    return .unreachable(place: place, reason: reason)
  }

  private static func rows(of result: OpaquePointer) -> [PostgresRow] {
    let columns = PQnfields(result)
    return (0..<PQntuples(result)).map { row in
      PostgresRow(
        columns: (0..<columns).map { column in
          guard PQgetisnull(result, row, column) == 0, let start = PQgetvalue(result, row, column)
          else { return nil }
          return [UInt8](
            UnsafeRawBufferPointer(
              start: start, count: Int(PQgetlength(result, row, column))))
        })
    }
  }
}

/// What PostgreSQL said of a failure, and what that means here.
struct PostgresMessage {
  /// One line, lower case first, without a full stop.
  let text: String
  /// SQLSTATE; empty where it has none.
  private let code: String
  /// Whether the server said it, and not libpq.
  let isFromServer: Bool

  /// What libpq says of a connection: `where: SEVERITY:  text` if the server refused it, `where: SEVERITY:  SQLSTATE: text` if
  /// libpq was asked to be verbose. The severity is in the server's language, too; the two spaces are not.
  /// A name with two addresses has a line of each, and what a server said counts more than that nobody was at the other.
  init(_ message: String) {
    let lines = message.split(separator: "\n")
    var line =
      (lines.first { $0.contains(":  ") } ?? lines.first).map(String.init)
      ?? "the connection was lost"
    var code = ""
    let mark = line.range(of: ":  ")
    if let mark {
      line = String(line[mark.upperBound...])
      let start = line.prefix { $0.isASCII && ($0.isNumber || $0.isUppercase) }
      if start.count == 5, line.dropFirst(5).hasPrefix(": ") {
        code = String(start)
        line = String(line.dropFirst(7))
      }
    }
    isFromServer = mark != nil
    self.code = code
    text = Self.asOurs(line)
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

  /// Whether another connection may do what this one never will: it was prepared for tables that are gone or are
  /// others, or it leads to a server that is only read from, and the name to another one by now.
  var needsAnotherConnection: Bool { ["42P01", "0A000", "26000", "25006"].contains(code) }

  /// What it means for somebody who wanted to connect.
  func connectError(_ place: String) -> StoreError {
    // Connection exceptions, no room, a database in a state that takes nobody, and a server that starts, ends or was too slow. 08P01
    // is a protocol violation, and what PgBouncer says of nearly everything, such as of a wrong password.
    let passing = ["08", "53", "55", "57"].contains(where: code.hasPrefix) && code != "08P01"
    return code.isEmpty || passing
      ? .unreachable(place: place, reason: text) : .denied(place: place, reason: text)
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
      // Data or an index that is corrupted, and internal errors about a row's parts, as versions before 13 tell all of
      // these. Other internal errors are of no row.
      let isOfRow = ["chunk number", "chunk size", "data is corrupt", "memory alloc request size"]
        .contains(where: text.contains)
      if ["XX001", "XX002"].contains(code) || (code == "XX000" && isOfRow) {
        return .damaged(path: place, reason: text)
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

/// A parameter of a statement, in PostgreSQL's binary form.
enum PostgresValue {
  case integer(Int64)
  case text(String)
  case bytes([UInt8])
  case arrayOfBytes([[UInt8]])

  /// Its type's number in `pg_type`.
  var type: UInt32 {
    switch self {
    case .integer: 20
    case .text: 25
    case .bytes: 17
    case .arrayOfBytes: 1001
    }
  }

  var encoded: [UInt8] {
    var out: [UInt8] = []
    switch self {
    case .integer(let number): out.append(bigEndian: number)
    case .text(let text): out += text.utf8
    case .bytes(let bytes): out = bytes
    case .arrayOfBytes(let items):
      // Dimensions, no nulls, the items' type; then length and first index, and each item.
      for number in [items.isEmpty ? 0 : 1, 0, 17] as [Int32] { out.append(bigEndian: number) }
      guard !items.isEmpty else { break }
      for number in [Int32(clamping: items.count), 1] { out.append(bigEndian: number) }
      for item in items {
        out.append(bigEndian: Int32(clamping: item.count))
        out += item
      }
    }
    return out
  }
}

/// A row of a result, column by column; `nil` for NULL.
struct PostgresRow {
  let columns: [[UInt8]?]

  func integer(_ column: Int) -> Int64? {
    guard columns.indices.contains(column), let bytes = columns[column], bytes.count <= 8 else {
      return nil
    }
    // Sign-extended: int4 and bool come shorter.
    let start: Int64 = bytes.first.map { $0 & 0x80 != 0 && bytes.count > 1 ? -1 : 0 } ?? 0
    return bytes.reduce(start) { $0 << 8 | Int64($1) }
  }

  func bytes(_ column: Int) -> [UInt8] {
    columns.indices.contains(column) ? columns[column] ?? [] : []
  }

  func text(_ column: Int) -> String { String(decoding: bytes(column), as: UTF8.self) }
}
