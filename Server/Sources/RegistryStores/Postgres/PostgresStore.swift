import SslPinningPlatform

/// A store in a PostgreSQL database (12 or newer). See ``RegistryStore`` for the contract.
///
/// - A replacement is one statement: the record, its history entries and the notification of the
///   others are made together or not at all.
/// - Changes come over a connection of their own (`LISTEN`). When it was lost, all records may have
///   changed.
/// - The leader holds a session's advisory lock on a connection of its own, which it tries every
///   second. A leader that dies loses it with the connection, at once where its kernel lives, within
///   7 s where the network is cut; the old leader knows after 4.
/// - A cut network, a hanging server and a restart end in an error within seconds; the next call
///   connects anew.
///
/// Hazards: names are looked up by the system, which may take longer than that. Connect to PostgreSQL itself, or through a pooler that keeps sessions: one that hands
/// each transaction to another connection breaks leadership and notifications. With asynchronous
/// replication, a fail-over to a standby may lose what was acknowledged last: set
/// `synchronous_standby_names` where that matters. After an error, whether a replacement was made is
/// unknown; read again.
public final class PostgresStore: RegistryStore {
  private static let channel = "ssl_pinning_changes"

  private let dsn: PostgresDSN
  private let schema = PostgresSchema()
  private let pool: ConnectionPool<PostgresConnection>
  private let hub = ChangeHub()
  private let feed = Slot<DatabaseFeed>()
  private let leaderships: PostgresLeaderships

  /// Reads where the database is. It is reached, and its tables are made, with the first call.
  ///
  /// - Parameter isInsecure: whether another machine may be talked to without verified TLS.
  /// - Throws: ``StoreError/invalidDSN(reason:hint:)``.
  public init(
    dsn text: String, pool configuration: ConnectionPoolConfiguration = .init(),
    isInsecure: Bool = false
  ) throws(StoreError) {
    let dsn = try PostgresDSN(text, isInsecure: isInsecure)
    self.dsn = dsn
    pool = ConnectionPool(configuration) { [schema] () throws(StoreError) in
      let connection = try PostgresConnection(dsn)
      try schema.prepare(connection, place: dsn.place)
      return connection
    }
    leaderships = PostgresLeaderships { [schema] () throws(StoreError) in
      let connection = try PostgresConnection(dsn, patience: 3000)
      try schema.prepare(connection, place: dsn.place)
      return connection
    }
  }

  public var warning: String? { schema.warning }

  public func record(named name: String) async throws(StoreError) -> StoredRecord? {
    try RecordName.check(name)
    return try await run { connection throws(StoreError) in
      try connection.query(
        "SELECT version, bytes FROM ssl_pinning_records WHERE name = $1", [.text(name)]
      ).first.map { StoredRecord(version: $0.integer(0) ?? 0, bytes: $0.bytes(1)) }
    }
  }

  public func replace(
    _ name: String, version: Int64, with bytes: [UInt8], history: [[UInt8]]
  ) async throws(StoreError) -> StoreReplacement {
    try RecordName.check(name)
    return try await run { connection throws(StoreError) in
      let made = try connection.query(
        version == 0 ? Self.inserting : Self.updating,
        [.text(name), .integer(version), .bytes(bytes), .arrayOfBytes(history)])
      if let new = made.first?.integer(0) { return .replaced(version: new) }
      let current = try connection.query(
        "SELECT version FROM ssl_pinning_records WHERE name = $1", [.text(name)])
      return .conflict(version: current.first?.integer(0) ?? 0)
    }
  }

  public func history(
    of name: String, before: Int64?, limit: Int
  ) async throws(StoreError) -> [StoredEntry] {
    try RecordName.check(name)
    return try await run { connection throws(StoreError) in
      try connection.query(
        """
        SELECT number, bytes FROM ssl_pinning_history WHERE name = $1 AND number < $2
        ORDER BY number DESC LIMIT $3
        """, [.text(name), .integer(before ?? .max), .integer(Int64(max(0, limit)))]
      ).map { StoredEntry(number: $0.integer(0) ?? 0, bytes: $0.bytes(1)) }
    }
  }

  public func forgetHistory(of name: String, through number: Int64) async throws(StoreError) {
    try RecordName.check(name)
    _ = try await run { connection throws(StoreError) in
      try connection.query(
        """
        DELETE FROM ssl_pinning_history WHERE name = $1 AND number <= $2
        AND number < (SELECT max(number) FROM ssl_pinning_history WHERE name = $1)
        """, [.text(name), .integer(number)]
      ).count
    }
  }

  public func changes() -> AsyncStream<String> {
    let stream = hub.stream()
    guard !hub.isFinished else { return stream }
    feed.setIfEmpty {
      DatabaseFeed(hub: hub) { [dsn] () throws(StoreError) in
        try PostgresListener(dsn, channel: Self.channel)
      }
    }
    return stream
  }

  public func lead() async throws(StoreError) -> (any StoreLeadership)? {
    guard !hub.isFinished else { throw .closed }
    return try await leaderships.take()
  }

  public func close() async {
    hub.finish()
    feed.take()?.stop()
    pool.close()
    await leaderships.close()
  }

  private func run<Value: Sendable>(
    _ work: @escaping @Sendable (PostgresConnection) throws(StoreError) -> Value
  ) async throws(StoreError) -> Value {
    do throws(StoreError) { return try await pool.run(work) } catch {
      switch error {
      case .failed, .damaged: schema.forget()
      default: break
      }
      throw error
    }
  }

  private static let inserting = statement(
    """
    INSERT INTO ssl_pinning_records (name, version, entries, bytes)
    VALUES ($1, $2 + 1, \(last("0")) + cardinality($4), $3) ON CONFLICT DO NOTHING
    """)

  private static let updating = statement(
    """
    UPDATE ssl_pinning_records SET version = version + 1,
      entries = \(last("entries")) + cardinality($4), bytes = $3
    WHERE name = $1 AND version = $2
    """)

  /// The number of the last entry. A record that was restored alone, or removed, has newer ones.
  private static func last(_ known: String) -> String {
    "greatest(\(known), (SELECT max(number) FROM ssl_pinning_history WHERE name = $1))"
  }

  /// The replacement, the entries that come with it, and word of it to the others.
  private static func statement(_ replacing: String) -> String {
    """
    WITH made AS (\(replacing) RETURNING version, entries), added AS (
      INSERT INTO ssl_pinning_history (name, number, bytes)
      SELECT $1, made.entries - cardinality($4) + entry.place, entry.bytes
      FROM made, unnest($4) WITH ORDINALITY AS entry (bytes, place)
    )
    SELECT version, pg_notify('\(channel)', $1) FROM made
    """
  }
}

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
    do throws(StoreError) {
      try noteSettings(of: connection)
      guard !isReady.withLock({ $0 }) else { return }
      try migrate(connection, place: place)
    } catch { throw error.whileOpening }
    isReady.withLock { $0 = true }
  }

  /// Whether the tables are there as this version has them. None may be, but none of a newer program.
  package func isNewest(_ connection: PostgresConnection, place: String) throws(StoreError) -> Bool
  {
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
    // Whoever can write to the database may have written a negative one.
    return Int(max(0, number))
  }
}

/// A connection that hears of replacements.
final class PostgresListener: ChangeSource {
  private let connection: PostgresConnection

  init(_ dsn: PostgresDSN, channel: String) throws(StoreError) {
    connection = try PostgresConnection(dsn)
    try connection.execute("LISTEN \(channel)")
  }

  var socket: Int32 { connection.socket }

  func names() throws(StoreError) -> [String] { try connection.notifications() }

  func probe() throws(StoreError) { try connection.execute("SELECT 1") }
}
