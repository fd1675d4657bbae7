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
      if case .failed = error { schema.forget() }
      throw error
    }
  }

  private static let inserting = statement(
    """
    INSERT INTO ssl_pinning_records (name, version, entries, bytes)
    VALUES ($1, $2 + 1, cardinality($4), $3) ON CONFLICT DO NOTHING
    """)

  private static let updating = statement(
    """
    UPDATE ssl_pinning_records SET version = version + 1, entries = entries + cardinality($4),
      bytes = $3
    WHERE name = $1 AND version = $2
    """)

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
