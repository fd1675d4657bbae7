import CSQLite

/// One connection to a SQLite file and its prepared statements. Not for two threads at once: the
/// owner sees to that.
package final class SQLiteConnection {
  private let database: OpaquePointer
  private var statements: [String: OpaquePointer] = [:]
  private let path: String

  /// What a file is opened for.
  package enum Access {
    /// To be written, and made where missing.
    case creating
    /// To be written or shared with writers.
    case sharing
    /// To be read alone.
    case reading

    fileprivate var flags: Int32 {
      switch self {
      case .creating: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
      case .sharing: SQLITE_OPEN_READWRITE
      case .reading: SQLITE_OPEN_READONLY
      }
    }
  }

  /// Opens a file; waits up to 5 s for locks of other processes.
  package init(path: String, for access: Access = .creating) throws(StoreError) {
    var opened: OpaquePointer?
    let flags = access.flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE
    let code = sqlite3_open_v2(path, &opened, flags, nil)
    guard code == SQLITE_OK, let opened else {
      let reason = opened.map { String(cString: sqlite3_errmsg($0)) } ?? "out of memory"
      sqlite3_close_v2(opened)
      throw .cannotOpen(path: path, reason: reason)
    }
    database = opened
    self.path = path
    sqlite3_busy_timeout(database, 5000)
  }

  deinit {
    for statement in statements.values { sqlite3_finalize(statement) }
    sqlite3_close_v2(database)
  }

  /// Runs statements without parameters and results.
  func execute(_ sql: String) throws(StoreError) {
    guard sqlite3_exec(database, sql, nil, nil, nil) == SQLITE_OK else { throw failure(sql) }
  }

  /// Runs one statement and returns the rows that `read` makes of its results. The statement is
  /// prepared once and kept.
  func query<Row>(
    _ sql: String, _ parameters: [Parameter] = [], read: (SQLiteRow) -> Row
  ) throws(StoreError) -> [Row] {
    let statement = try prepared(sql)
    defer {
      sqlite3_reset(statement)
      sqlite3_clear_bindings(statement)
    }
    for (index, parameter) in parameters.enumerated() {
      guard bind(parameter, to: statement, at: Int32(index) + 1) == SQLITE_OK else {
        throw failure(sql)
      }
    }
    var rows: [Row] = []
    while true {
      switch sqlite3_step(statement) {
      case SQLITE_ROW: rows.append(read(SQLiteRow(statement: statement)))
      case SQLITE_DONE: return rows
      default: throw failure(sql)
      }
    }
  }

  /// Runs one statement without results and returns how many rows it changed.
  func change(_ sql: String, _ parameters: [Parameter]) throws(StoreError) -> Int {
    _ = try query(sql, parameters) { _ in }
    return Int(sqlite3_changes(database))
  }

  /// Runs several statements, all of which are made or none. Other writers wait.
  func transaction<Value>(
    _ work: () throws(StoreError) -> Value
  ) throws(StoreError) -> Value {
    try execute("BEGIN IMMEDIATE")
    do throws(StoreError) {
      let value = try work()
      try execute("COMMIT")
      return value
    } catch {
      try? execute("ROLLBACK")
      throw error
    }
  }

  /// Copies all of it into another database, as of one moment; others write meanwhile (SQLite's online backup).
  func copy(into other: SQLiteConnection) throws(StoreError) {
    guard let backup = sqlite3_backup_init(other.database, "main", database, "main") else {
      throw other.failure("backup")
    }
    let step = sqlite3_backup_step(backup, -1)
    let end = sqlite3_backup_finish(backup)
    guard step == SQLITE_DONE, end == SQLITE_OK else {
      let code = end == SQLITE_OK ? step : end
      throw .failed(operation: "backup of \(path)", reason: String(cString: sqlite3_errstr(code)))
    }
  }

  /// A number that is another one after another connection's commit.
  func dataVersion() throws(StoreError) -> Int64 {
    try query("PRAGMA data_version") { $0.integer(0) }.first ?? 0
  }

  /// Whether the file was removed or renamed, or another one has its name.
  var hasMoved: Bool {
    var hasMoved: Int32 = 0
    return sqlite3_file_control(database, nil, SQLITE_FCNTL_HAS_MOVED, &hasMoved) == SQLITE_OK
      && hasMoved != 0
  }

  enum Parameter {
    case integer(Int64)
    case text(String)
    case blob([UInt8])
  }

  private func prepared(_ sql: String) throws(StoreError) -> OpaquePointer {
    if let statement = statements[sql] { return statement }
    var statement: OpaquePointer?
    guard
      sqlite3_prepare_v3(database, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil)
        == SQLITE_OK, let statement
    else { throw failure(sql) }
    statements[sql] = statement
    return statement
  }

  private func bind(_ value: Parameter, to statement: OpaquePointer, at index: Int32) -> Int32 {
    switch value {
    case .integer(let integer): sqlite3_bind_int64(statement, index, integer)
    case .text(let text):
      sqlite3_bind_text(statement, index, text, Int32(text.utf8.count), Self.copied)
    case .blob(let bytes):
      // A null pointer would bind NULL, so an empty blob is said so.
      bytes.isEmpty
        ? sqlite3_bind_zeroblob(statement, index, 0)
        : sqlite3_bind_blob64(statement, index, bytes, UInt64(bytes.count), Self.copied)
    }
  }

  private func failure(_ sql: String) -> StoreError {
    switch sqlite3_errcode(database) & 0xff {
    case SQLITE_BUSY, SQLITE_LOCKED: return .busy
    // Of a file that was a database, that is a bad first sector.
    case SQLITE_NOTADB:
      return .cannotOpen(path: path, reason: String(cString: sqlite3_errmsg(database)))
    case SQLITE_CORRUPT:
      return .damaged(path: path, reason: String(cString: sqlite3_errmsg(database)))
    default:
      let operation = sql.prefix { $0 != " " && $0 != "\n" }.lowercased()
      return .failed(
        operation: "\(operation) in \(path)", reason: String(cString: sqlite3_errmsg(database)))
    }
  }

  /// `SQLITE_TRANSIENT`, a macro that Swift does not see: SQLite copies before the call returns.
  private static var copied: sqlite3_destructor_type {
    unsafeBitCast(-1, to: sqlite3_destructor_type.self)
  }
}

/// The columns of a result row, counted from 0; valid inside `read` only.
struct SQLiteRow {
  fileprivate let statement: OpaquePointer

  func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(statement, column) }

  func blob(_ column: Int32) -> [UInt8] {
    guard let start = sqlite3_column_blob(statement, column) else { return [] }
    let count = Int(sqlite3_column_bytes(statement, column))
    return [UInt8](UnsafeRawBufferPointer(start: start, count: count))
  }
}
