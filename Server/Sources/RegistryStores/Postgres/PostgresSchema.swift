import SslPinningPlatform

/// The tables, and how older ones become them. All names begin with `ssl_pinning_`, in the first
/// schema of the connection's `search_path`; whatever else a database holds is left alone.
package final class PostgresSchema: Sendable {
  /// In order; what was once released is never changed.
  private static let migrations = [
    """
    CREATE TABLE ssl_pinning_records (
      name text COLLATE "C" PRIMARY KEY, version bigint NOT NULL, entries bigint NOT NULL,
      bytes bytea NOT NULL
    );
    CREATE TABLE ssl_pinning_history (
      name text COLLATE "C" NOT NULL, number bigint NOT NULL, bytes bytea NOT NULL,
      PRIMARY KEY (name, number)
    );
    """
  ]
  /// Whoever migrates holds this lock ("SSPn", 1): servers that start together take turns.
  private static let lock = "pg_advisory_xact_lock(1397969006, 1)"

  private let isReady = Locked(false)
  private let lossy = Locked<String?>(nil)

  /// Nothing is known of any database.
  package init() {}

  /// What the server's settings do not keep; `nil` where they keep everything.
  var warning: String? { lossy.withLock { $0 } }

  /// Prepares a new connection: the tables are there afterwards, and commits are flushed.
  func prepare(_ connection: PostgresConnection, place: String) throws(StoreError) {
    try noteSettings(of: connection)
    guard !isReady.withLock({ $0 }) else { return }
    try migrate(connection, place: place)
    isReady.withLock { $0 = true }
  }

  /// Whether the tables are there as this version has them. None may be, but none of a newer program.
  package func isNewest(_ connection: PostgresConnection, place: String) throws(StoreError) -> Bool {
    try applied(connection, place: place) == Self.migrations.count
  }

  /// Has the next connection look for the tables again: they were gone.
  func forget() { isReady.withLock { $0 = false } }

  private func noteSettings(of connection: PostgresConnection) throws(StoreError) {
    let settings = try connection.query(
      "SELECT current_setting('fsync'), current_setting('full_page_writes'),"
        + " current_setting('synchronous_commit')")
    guard let row = settings.first else { return }
    // A setting of the session, so ours to make.
    if row.text(2) == "off" { try connection.execute("SET synchronous_commit = on") }
    let off = [(0, "fsync"), (1, "full_page_writes")].filter { row.text($0.0) == "off" }.map(\.1)
    let warning =
      "PostgreSQL runs with \(off.joined(separator: " and ")) off: what it acknowledged may be lost"
      + " or damaged when its machine fails; hint: turn it on in postgresql.conf"
    lossy.withLock { $0 = off.isEmpty ? nil : warning }
  }

  private func migrate(_ connection: PostgresConnection, place: String) throws(StoreError) {
    // Without a lock first: a user who may not create tables can still use those that are there.
    if try applied(connection, place: place) == Self.migrations.count { return }
    try connection.execute("BEGIN; SELECT \(Self.lock)")
    do throws(StoreError) {
      for number in try applied(connection, place: place)..<Self.migrations.count {
        if number == 0 {
          try connection.execute(
            "CREATE TABLE ssl_pinning_migrations"
              + " (number integer PRIMARY KEY, applied timestamptz NOT NULL DEFAULT now())")
        }
        try connection.execute(Self.migrations[number])
        try connection.execute("INSERT INTO ssl_pinning_migrations VALUES (\(number + 1))")
      }
      try connection.execute("COMMIT")
    } catch {
      try? connection.execute("ROLLBACK")
      throw error
    }
  }

  /// How many migrations were made.
  private func applied(
    _ connection: PostgresConnection, place: String
  ) throws(StoreError) -> Int {
    // Not `to_regclass`: inside a transaction it may remember that there was no such table.
    let found = try connection.query(
      "SELECT 1 FROM pg_class WHERE relname = 'ssl_pinning_migrations' AND pg_table_is_visible(oid)"
    )
    guard !found.isEmpty else { return 0 }
    let rows = try connection.query("SELECT coalesce(max(number), 0) FROM ssl_pinning_migrations")
    let number = rows.first?.integer(0) ?? 0
    guard number <= Self.migrations.count else {
      throw .newerSchema(path: place, found: number, known: Int64(Self.migrations.count))
    }
    return Int(number)
  }
}
