import Foundation
import SslPinningPlatform

/// A store in one SQLite file. See ``RegistryStore`` for the contract.
///
/// - Write-ahead log with `synchronous=FULL`: a commit is flushed to disk before it is acknowledged.
///   (The default for WAL, NORMAL, survives `kill -9` but may lose the last commits with the power.)
/// - Compare and swap is one conditional statement, so it holds between processes that share the
///   file. Not for network file systems: SQLite's locks do not hold there.
/// - A history entry is written in the transaction of the replacement that brings it.
/// - Changes by other processes are noticed by probing `PRAGMA data_version` four times a second.
/// - What is acknowledged is in the file that has the name then: if a backup took its place, that is opened, and
///   all records may have changed.
/// - The leader holds a lock on the file `<path>.leader`, which the kernel lets go of when it dies.
/// - The directory is made with mode 0700 and the file with 0600.
///
/// Unchecked: what is mutable is touched on `queue` only.
public final class SQLiteStore: RegistryStore, @unchecked Sendable {
  private let path: String
  private let access: SQLiteConnection.Access
  private let queue = WorkQueue("registry store")
  private let hub = ChangeHub()
  private let leaderships: FileLeaderships
  private let polling = Locked<RepeatingWork?>(nil)
  private var connection: SQLiteConnection?
  private var dataVersion: Int64
  private var isClosed = false

  /// Opens a file, creating it with its directory where missing, and brings older schemas up to
  /// date.
  ///
  /// - Throws: ``StoreError/cannotOpen(path:reason:)``, ``StoreError/foreign(path:)``,
  ///   ``StoreError/newerSchema(path:found:known:)``, ``StoreError/busy``.
  public convenience init(path: String) throws(StoreError) { try self.init(path, for: .creating) }

  /// Opens a file that ``SQLiteBackup`` wrote, to read it.
  ///
  /// - Throws: as the other, and ``StoreError/damaged(path:reason:)``.
  package convenience init(backup path: String) throws(StoreError) {
    try self.init(path, for: .reading)
  }

  private init(_ path: String, for access: SQLiteConnection.Access) throws(StoreError) {
    let connection = try Self.connect(to: path, for: access)
    (self.path, self.access) = (path, access)
    leaderships = FileLeaderships(path: Self.leader(of: path))
    dataVersion = try connection.dataVersion()
    self.connection = connection
  }

  /// Why no server could lead on this store as this user; `nil` if nothing is known to keep it from that. Makes nothing.
  package static func leadershipProblem(path: String) -> StoreError? {
    FileLock.problem(leader(of: path))
  }

  private static func leader(of path: String) -> String { path + ".leader" }

  private static func connect(
    to path: String, for access: SQLiteConnection.Access
  ) throws(StoreError) -> SQLiteConnection {
    guard access == .creating else { return try SQLiteBackup.open(path) }
    try prepareFile(path)
    let connection = try SQLiteConnection(path: path)
    do throws(StoreError) {
      try connection.execute("PRAGMA journal_mode=WAL")
      try connection.execute("PRAGMA synchronous=FULL")
      try SQLiteSchema.migrate(connection, path: path)
    } catch { throw error.whileOpening }
    return connection
  }

  public func record(named name: String) async throws(StoreError) -> StoredRecord? {
    try await run { connection throws(StoreError) in
      try connection.query(
        "SELECT version, bytes FROM records WHERE name = ?", [.text(name)]
      ) { StoredRecord(version: $0.integer(0), bytes: $0.blob(1)) }.first
    }
  }

  public func replace(
    _ name: String, version: Int64, with bytes: [UInt8], history: [[UInt8]]
  ) async throws(StoreError) -> StoreReplacement {
    try await run { connection throws(StoreError) in
      let outcome = try connection.transaction { () throws(StoreError) -> StoreReplacement in
        let changed =
          version == 0
          ? try connection.change(
            "INSERT INTO records (name, version, bytes) VALUES (?, 1, ?) ON CONFLICT DO NOTHING",
            [.text(name), .blob(bytes)])
          : try connection.change(
            "UPDATE records SET version = ?, bytes = ? WHERE name = ? AND version = ?",
            [.integer(version &+ 1), .blob(bytes), .text(name), .integer(version)])
        guard changed == 1 else {
          let current = try connection.query(
            "SELECT version FROM records WHERE name = ?", [.text(name)]
          ) { $0.integer(0) }
          return .conflict(version: current.first ?? 0)
        }
        try Self.append(history, to: name, connection)
        // After the last number it throws, and nothing of it was made.
        return .replaced(version: try StoredRecord.number(after: version, of: name))
      }
      guard !connection.hasMoved else {
        throw .failed(operation: "writing \(name)", reason: "the file was replaced meanwhile")
      }
      return outcome
    }
  }

  private static func append(
    _ entries: [[UInt8]], to name: String, _ connection: SQLiteConnection
  ) throws(StoreError) {
    guard !entries.isEmpty else { return }
    let last = try connection.query(
      "SELECT coalesce(max(number), 0) FROM history WHERE name = ?", [.text(name)]
    ) { $0.integer(0) }
    var number = last.first ?? 0
    for entry in entries {
      number = try StoredRecord.number(after: number, of: name)
      _ = try connection.change(
        "INSERT INTO history (name, number, bytes) VALUES (?, ?, ?)",
        [.text(name), .integer(number), .blob(entry)])
    }
  }

  public func history(
    of name: String, before: Int64?, limit: Int
  ) async throws(StoreError) -> [StoredEntry] {
    try await run { connection throws(StoreError) in
      try connection.query(
        """
        SELECT number, bytes FROM history WHERE name = ? AND number < ?
        ORDER BY number DESC LIMIT ?
        """, [.text(name), .integer(before ?? .max), .integer(Int64(max(0, limit)))]
      ) { StoredEntry(number: $0.integer(0), bytes: $0.blob(1)) }
    }
  }

  public func forgetHistory(of name: String, through number: Int64) async throws(StoreError) {
    try await run { connection throws(StoreError) in
      _ = try connection.change(
        """
        DELETE FROM history WHERE name = ?1 AND number <= ?2
        AND number < (SELECT max(number) FROM history WHERE name = ?1)
        """, [.text(name), .integer(number)])
    }
  }

  /// The names of all records.
  package func names() async throws(StoreError) -> [String] {
    try await run { connection throws(StoreError) in
      try connection.query("SELECT name FROM records ORDER BY name") { row in
        String(decoding: row.blob(0), as: UTF8.self)
      }
    }
  }

  public func changes() -> AsyncStream<String> {
    polling.withLock {
      if $0 == nil { $0 = queue.every(250) { [weak self] in self?.poll() } }
    }
    return hub.stream()
  }

  public func lead() async throws(StoreError) -> (any StoreLeadership)? {
    try await run { _ in }
    return try await leaderships.take()
  }

  public func close() async {
    polling.withLock { $0 = nil }
    hub.finish()
    await leaderships.end()
    try? await queue.run { (self.connection, self.isClosed) = (nil, true) }
  }

  /// Which record another process replaced, `data_version` does not say.
  private func poll() {
    guard let version = try? opened().dataVersion(), version != dataVersion else { return }
    dataVersion = version
    hub.tell("")
  }

  /// The connection to the file that has the name now: what is written to one that lost it is gone with the process.
  private func opened() throws(StoreError) -> SQLiteConnection {
    guard !isClosed else { throw .closed }
    if let connection, !connection.hasMoved { return connection }
    // Closed first: the new one would share the old one's files beside it.
    connection = nil
    let new = try Self.connect(to: path, for: access)
    (dataVersion, connection) = (try new.dataVersion(), new)
    hub.tell("")
    return new
  }

  private func run<Value: Sendable>(
    _ work: @escaping @Sendable (SQLiteConnection) throws(StoreError) -> Value
  ) async throws(StoreError) -> Value {
    try await queue.run { () throws(StoreError) in
      try work(self.opened())
    }
  }

  private static func prepareFile(_ path: String) throws(StoreError) {
    let directory = URL(filePath: path).deletingLastPathComponent()
    do {
      try FileManager.default.createDirectory(
        at: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    } catch {
      throw .cannotOpen(path: path, reason: "its directory cannot be made")
    }
    let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw .cannotOpen(path: path, errno: errno) }
    Foundation.close(descriptor)
  }
}

/// The tables of a SQLite store, and how older ones become them.
package enum SQLiteSchema {
  /// The schema that this version writes: `PRAGMA user_version`.
  package static let newest = Int64(migrations.count)
  /// Marks the file as ours ("SSPn"): `PRAGMA application_id`.
  static let applicationID: Int64 = 0x5353_506e

  /// The statements that lead from each schema to the next, beginning with an empty file.
  private static let migrations = [
    """
    CREATE TABLE records (
      name TEXT PRIMARY KEY, version INTEGER NOT NULL, bytes BLOB NOT NULL
    ) STRICT;
    PRAGMA application_id = \(applicationID);
    """,
    """
    CREATE TABLE history (
      name TEXT NOT NULL, number INTEGER NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY (name, number)
    ) STRICT, WITHOUT ROWID;
    """,
  ]

  /// Brings a file up to date, in one transaction: two servers that start together must not both
  /// create the tables, and one that dies half-way leaves the old ones.
  static func migrate(_ connection: SQLiteConnection, path: String) throws(StoreError) {
    try connection.transaction { () throws(StoreError) in
      let found = try check(connection, path: path)
      for migration in migrations.dropFirst(Int(max(0, found))) {
        try connection.execute(migration)
      }
      if found < newest { try connection.execute("PRAGMA user_version = \(newest)") }
    }
  }

  /// The schema of a file, if it is empty or ours and not of a newer program.
  @discardableResult
  package static func check(_ connection: SQLiteConnection, path: String) throws(StoreError)
    -> Int64
  {
    let found = try connection.query("PRAGMA user_version") { $0.integer(0) }.first ?? 0
    let owner = try connection.query("PRAGMA application_id") { $0.integer(0) }.first ?? 0
    let tables = try connection.query("SELECT count(*) FROM sqlite_schema") { $0.integer(0) }
    guard owner == applicationID || (owner == 0 && tables.first == 0) else {
      throw .foreign(path: path)
    }
    guard found <= newest else { throw .newerSchema(path: path, found: found, known: newest) }
    return found
  }
}
