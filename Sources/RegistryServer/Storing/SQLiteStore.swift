import Foundation

/// A store in one SQLite file. See ``RegistryStore`` for the contract.
///
/// - Write-ahead log with `synchronous=FULL`: a commit is flushed to disk before it is acknowledged.
///   (The default for WAL, NORMAL, survives `kill -9` but may lose the last commits with the power.)
/// - Compare and swap is one conditional statement, so it holds between processes that share the
///   file. Not for network file systems: SQLite's locks do not hold there.
/// - The directory is made with mode 0700 and the file with 0600.
///
/// Unchecked: the connection is touched on `queue` only.
public final class SQLiteStore: RegistryStore, @unchecked Sendable {
  /// The schema that this version writes: `PRAGMA user_version`.
  static let schema: Int64 = 1
  /// Marks the file as ours ("SSPn"): `PRAGMA application_id`.
  static let applicationID: Int64 = 0x5353_506e

  private let queue = DispatchQueue(label: "registry store")
  private var connection: SQLiteConnection?

  /// Opens a file, creating it with its directory where missing.
  ///
  /// - Throws: ``StoreError/cannotOpen(path:reason:)``, ``StoreError/foreign(path:)``,
  ///   ``StoreError/newerSchema(path:found:known:)``, ``StoreError/busy``.
  public init(path: String) throws(StoreError) {
    try Self.prepareFile(path)
    let connection = try SQLiteConnection(path: path)
    try connection.execute("PRAGMA journal_mode=WAL")
    try connection.execute("PRAGMA synchronous=FULL")
    try Self.migrate(connection, path: path)
    self.connection = connection
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
      let changed =
        version == 0
        ? try connection.change(
          "INSERT INTO records (name, version, bytes) VALUES (?, 1, ?) ON CONFLICT DO NOTHING",
          [.text(name), .blob(bytes)])
        : try connection.change(
          "UPDATE records SET version = version + 1, bytes = ? WHERE name = ? AND version = ?",
          [.blob(bytes), .text(name), .integer(version)])
      if changed == 1 { return .replaced(version: version + 1) }
      let current = try connection.query(
        "SELECT version FROM records WHERE name = ?", [.text(name)]
      ) { $0.integer(0) }
      return .conflict(version: current.first ?? 0)
    }
  }

  public func history(
    of name: String, before: Int64?, limit: Int
  ) async throws(StoreError) -> [StoredEntry] { [] }

  public func changes() -> AsyncStream<String> { AsyncStream { $0.finish() } }

  public func lead() async throws(StoreError) -> (any StoreLeadership)? { MemoryLeadership() }

  public func close() async {
    await withCheckedContinuation { continuation in
      queue.async {
        self.connection = nil
        continuation.resume()
      }
    }
  }

  /// Runs blocking work off the cooperative threads.
  private func run<Value: Sendable>(
    _ work: @escaping @Sendable (SQLiteConnection) throws(StoreError) -> Value
  ) async throws(StoreError) -> Value {
    let result: Result<Value, StoreError> = await withCheckedContinuation { continuation in
      queue.async {
        continuation.resume(
          returning: Result { () throws(StoreError) in
            guard let connection = self.connection else { throw .closed }
            return try work(connection)
          })
      }
    }
    return try result.get()
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
    guard descriptor >= 0 else {
      throw .cannotOpen(path: path, reason: String(cString: strerror(errno)).lowercased())
    }
    Foundation.close(descriptor)
  }

  private static func migrate(
    _ connection: SQLiteConnection, path: String
  ) throws(StoreError) {
    // Two servers that start together must not both create the tables.
    try connection.execute("BEGIN IMMEDIATE")
    do throws(StoreError) {
      let found = try connection.query("PRAGMA user_version") { $0.integer(0) }.first ?? 0
      let owner = try connection.query("PRAGMA application_id") { $0.integer(0) }.first ?? 0
      let tables = try connection.query("SELECT count(*) FROM sqlite_schema") { $0.integer(0) }
      guard owner == applicationID || (owner == 0 && tables.first == 0) else {
        throw .foreign(path: path)
      }
      guard found <= schema else { throw .newerSchema(path: path, found: found, known: schema) }
      if found < 1 {
        try connection.execute(
          """
          CREATE TABLE records (
            name TEXT PRIMARY KEY, version INTEGER NOT NULL, bytes BLOB NOT NULL
          ) STRICT;
          PRAGMA application_id = \(applicationID);
          PRAGMA user_version = \(schema);
          """)
      }
      try connection.execute("COMMIT")
    } catch {
      try? connection.execute("ROLLBACK")
      throw error
    }
  }
}
