import Foundation
import SslPinningPlatform
import TestSupport
import Testing

@testable import RegistryServer
@testable import RegistryStores

@Suite("The store in PostgreSQL") struct PostgresStoreTests {
  private func database() async throws -> (PostgresServer, name: String, dsn: String) {
    let server = try await PostgresServer.shared.value
    let name = try await server.makeDatabase()
    return (server, name, server.dsn(name))
  }

  @Test("makes its tables once, however many servers start together, and keeps to them")
  func migrations() async throws {
    let (server, name, dsn) = try await database()
    try await server.run(
      "CREATE TABLE records (a int); CREATE TABLE schema_migrations (version bigint)", in: name)
    let stores = try (0..<6).map { _ in try PostgresStore(dsn: dsn) }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for (index, store) in stores.enumerated() {
        group.addTask { _ = try await store.replace("r\(index)", version: 0, with: [1]) }
      }
      try await group.waitForAll()
    }
    let tables = try await server.run(
      "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
        + " ORDER BY 1", in: name)
    #expect(
      tables == """
        records
        schema_migrations
        ssl_pinning_history
        ssl_pinning_migrations
        ssl_pinning_records

        """)
    #expect(try await server.run("SELECT count(*) FROM ssl_pinning_migrations", in: name) == "1\n")
    #expect(try await stores[0].record(named: "r5")?.bytes == [1])
  }

  @Test("works for a user who may not make tables, where they are there")
  func noRights() async throws {
    let (server, name, dsn) = try await database()
    _ = try await PostgresStore(dsn: dsn).replace("a", version: 0, with: [1])
    try await server.run(
      """
      CREATE ROLE user_\(name) LOGIN PASSWORD 'secret'; REVOKE ALL ON SCHEMA public FROM public;
      GRANT USAGE ON SCHEMA public TO user_\(name);
      GRANT SELECT ON ssl_pinning_migrations TO user_\(name);
      GRANT SELECT, INSERT, UPDATE ON ssl_pinning_records, ssl_pinning_history TO user_\(name)
      """, in: name)
    let user = "postgres://user_\(name):secret@127.0.0.1:\(server.port)/\(name)"
    let store = try PostgresStore(dsn: user)
    let outcome = try await store.replace("a", version: 1, with: [2], history: [[3]])
    #expect(outcome == .replaced(version: 2))
    // Elsewhere it is told what it may not do.
    let (_, other, _) = try await database()
    try await server.run(
      "REVOKE ALL ON SCHEMA public FROM public; GRANT USAGE ON SCHEMA public TO user_\(name)",
      in: other)
    let refused = try PostgresStore(
      dsn: "postgres://user_\(name):secret@127.0.0.1:\(server.port)/\(other)")
    await #expect(
      throws: StoreError.denied(
        place: "127.0.0.1:\(server.port)/\(other)", reason: "permission denied for schema public")
    ) { try await refused.record(named: "a") }
  }

  @Test("cannot be opened if the table of its schema is damaged: that is no record's damage")
  func damagedSchema() async throws {
    let (server, name, dsn) = try await database()
    _ = try await PostgresStore(dsn: dsn).record(named: "a")
    try await server.run(
      """
      ALTER TABLE ssl_pinning_migrations RENAME TO sound_migrations;
      CREATE FUNCTION damaged() RETURNS integer LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'missing chunk number 0' USING ERRCODE = 'XX001'; END $$;
      CREATE VIEW ssl_pinning_migrations AS SELECT damaged() AS number
      """, in: name)
    let place = "127.0.0.1:\(server.port)/\(name)"
    await #expect(
      throws: StoreError.cannotOpen(path: place, reason: "missing chunk number 0")
    ) { try await PostgresStore(dsn: dsn).record(named: "a") }
  }

  @Test(
    "takes for damage of a record what is said of its row, and no other internal error",
    arguments: [
      ("XX001", "invalid page in block 1 of relation base/1/2", true),
      ("XX002", "index is corrupted", true),
      ("XX000", "unexpected chunk number 3 (expected 2) for toast value 1", true),
      ("XX000", "compressed data is corrupted", true),
      ("XX000", "invalid memory alloc request size 18446744073709551613", true),
      ("XX000", "cache lookup failed for relation 1", false),
    ])
  func internalErrors(code: String, text: String, isDamage: Bool) async throws {
    let (server, name, dsn) = try await database()
    let store = try PostgresStore(dsn: dsn)
    _ = try await store.replace("a", version: 0, with: [1])
    try await server.run(
      """
      ALTER TABLE ssl_pinning_records RENAME TO sound_records;
      CREATE FUNCTION damaged() RETURNS bytea LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION '\(text)' USING ERRCODE = '\(code)'; END $$;
      CREATE VIEW ssl_pinning_records AS SELECT name, version, damaged() AS bytes FROM sound_records
      """, in: name)
    let error = await #expect(throws: StoreError.self) {
      try await PostgresStore(dsn: dsn).record(named: "a")
    }
    switch error {
    case .damaged?: #expect(isDamage)
    case .failed?: #expect(!isDamage)
    default: Issue.record("\(String(describing: error))")
    }
    await store.close()
  }

  @Test("refuses tables of a newer version instead of damaging them")
  func newer() async throws {
    let (server, name, dsn) = try await database()
    _ = try await PostgresStore(dsn: dsn).record(named: "a")
    try await server.run("INSERT INTO ssl_pinning_migrations VALUES (7)", in: name)
    await #expect(
      throws: StoreError.newerSchema(
        path: "127.0.0.1:\(server.port)/\(name)", found: 7, known: 1)
    ) { try await PostgresStore(dsn: dsn).record(named: "a") }
  }

  @Test("is an error, and no more, where somebody wrote a migration that there cannot be")
  func strangeMigration() async throws {
    let (server, name, dsn) = try await database()
    _ = try await PostgresStore(dsn: dsn).record(named: "a")
    try await server.run("UPDATE ssl_pinning_migrations SET number = -5", in: name)
    await #expect(throws: StoreError.self) { try await PostgresStore(dsn: dsn).record(named: "a") }
    try await server.run("UPDATE ssl_pinning_migrations SET number = 1", in: name)
    #expect(try await PostgresStore(dsn: dsn).record(named: "a") == nil)
  }

  @Test("makes its tables anew where somebody dropped them")
  func dropped() async throws {
    let (server, name, dsn) = try await database()
    let store = try PostgresStore(dsn: dsn)
    _ = try await store.replace("a", version: 0, with: [1])
    try await server.run(
      "DROP TABLE ssl_pinning_records, ssl_pinning_history, ssl_pinning_migrations;"
        + " SELECT pg_terminate_backend(pid, 20000) FROM pg_stat_activity"
        + " WHERE datname = current_database() AND pid <> pg_backend_pid()", in: name)
    var record: StoredRecord?
    do { record = try await store.record(named: "a") } catch StoreError.failed {}
    #expect(record == nil)
    #expect(try await store.record(named: "a") == nil)
  }

  @Test("goes on with a record that was restored or removed without its history")
  func restoredRecord() async throws {
    let (server, name, dsn) = try await database()
    let store = try PostgresStore(dsn: dsn)
    _ = try await store.replace("a", version: 0, with: [1], history: [[1]])
    try await server.run("CREATE TABLE backup AS TABLE ssl_pinning_records", in: name)
    _ = try await store.replace("a", version: 1, with: [2], history: [[2], [3]])
    try await server.run(
      "DELETE FROM ssl_pinning_records; INSERT INTO ssl_pinning_records SELECT * FROM backup",
      in: name)
    #expect(
      try await store.replace("a", version: 1, with: [4], history: [[4]]) == .replaced(version: 2))
    try await server.run("DELETE FROM ssl_pinning_records", in: name)
    #expect(
      try await store.replace("a", version: 0, with: [5], history: [[5]]) == .replaced(version: 1))
    let history = try await store.history(of: "a", before: nil, limit: 9)
    #expect(history.map(\.number) == [5, 4, 3, 2, 1])
    #expect(history.map(\.bytes) == [[5], [4], [3], [2], [1]])
  }

  @Test("connects anew if it is at a server that only reads: its name may lead elsewhere by now")
  func readOnly() async throws {
    let (server, name, dsn) = try await database()
    _ = try await PostgresStore(dsn: dsn).replace("a", version: 0, with: [1])
    try await server.run("ALTER DATABASE \(name) SET default_transaction_read_only = on", in: name)
    let store = try PostgresStore(dsn: dsn)
    let error = await #expect(throws: StoreError.self) {
      try await store.replace("a", version: 1, with: [2])
    }
    #expect("\(error, default: "")".contains("read-only"))
    try await server.run("ALTER DATABASE \(name) RESET default_transaction_read_only")
    #expect(try await store.replace("a", version: 1, with: [2]) == .replaced(version: 2))
  }

  @Test("leads no longer once its table is another one, as after a restore")
  func restoredTable() async throws {
    let (server, name, dsn) = try await database()
    let (store, other) = (try PostgresStore(dsn: dsn), try PostgresStore(dsn: dsn))
    let leadership = try #require(try await store.lead())
    #expect(try await other.lead() == nil)
    try await server.run(
      "CREATE TABLE restored (LIKE ssl_pinning_records INCLUDING ALL);"
        + " DROP TABLE ssl_pinning_records; ALTER TABLE restored RENAME TO ssl_pinning_records",
      in: name)
    let hasEnded = Locked(false)
    let waiting = Task {
      await leadership.ended()
      hasEnded.withLock { $0 = true }
    }
    #expect(await eventually(within: 20) { hasEnded.withLock { $0 } })
    waiting.cancel()
    #expect(try await other.lead() != nil)
    #expect(try await store.lead() == nil)
  }

  @Test(
    "takes a lock for a leader's only if its holder may write the records, and says who holds it otherwise"
  )
  func strangersLock() async throws {
    let (server, name, dsn) = try await database()
    let (store, other) = (try PostgresStore(dsn: dsn), try PostgresStore(dsn: dsn))
    let leadership = try #require(try await store.lead())
    #expect(try await other.lead() == nil)
    await leadership.resign()
    try await server.run("CREATE ROLE stranger_\(name) LOGIN PASSWORD 'secret'")
    let stranger = try PostgresConnection(
      PostgresDSN("postgres://stranger_\(name):secret@127.0.0.1:\(server.port)/\(name)"))
    _ = try stranger.query(
      "SELECT pg_advisory_lock(1397969006, 'ssl_pinning_records'::regclass::oid::integer)")
    let error = await #expect(throws: StoreError.self) { try await other.lead() }
    #expect("\(error, default: "")".contains("the role stranger_\(name), which may not write"))
    // A server of its own role may.
    try await server.run("GRANT UPDATE ON ssl_pinning_records TO stranger_\(name)", in: name)
    #expect(try await other.lead() == nil)
    try await server.run("REVOKE UPDATE ON ssl_pinning_records FROM stranger_\(name)", in: name)
    await #expect(throws: StoreError.self) { try await other.lead() }
    // So may one that becomes a role that may, if it inherits nothing.
    for sql in [
      "CREATE ROLE writer_\(name)", "GRANT UPDATE ON ssl_pinning_records TO writer_\(name)",
      "ALTER ROLE stranger_\(name) NOINHERIT", "GRANT writer_\(name) TO stranger_\(name)",
    ] { try await server.run(sql, in: name) }
    #expect(try await other.lead() == nil)
    // It held the lock until here.
    #expect(try stranger.query("SELECT 1").count == 1)
    for store in [store, other] { await store.close() }
  }

  @Test("takes no prepared transaction for a leader, though it has the lock and no session")
  func preparedLock() async throws {
    let (_, name, dsn) = try await database()
    let store = try PostgresStore(dsn: dsn)
    let leadership = try #require(try await store.lead())
    await leadership.resign()
    let session = try PostgresConnection(PostgresDSN(dsn))
    for sql in [
      "BEGIN",
      "SELECT pg_advisory_xact_lock(1397969006, 'ssl_pinning_records'::regclass::oid::integer)",
      "PREPARE TRANSACTION 'of \(name)'",
    ] { _ = try session.query(sql) }
    let error = await #expect(throws: StoreError.self) { try await store.lead() }
    #expect("\(error, default: "")".contains("hint: ROLLBACK PREPARED"))
    _ = try session.query("ROLLBACK PREPARED 'of \(name)'")
    #expect(try await store.lead() != nil)
    await store.close()
  }

  @Test("leads at no standby, which has locks of its own and takes no writes")
  func standby() async throws {
    let server = try await PostgresServer.start()
    let store = try PostgresStore(dsn: server.dsn())
    _ = try await store.replace("a", version: 0, with: [1])
    try await server.stop()
    try await server.launch(asStandby: true)
    let error = await #expect(throws: StoreError.self) { try await store.lead() }
    #expect("\(error, default: "")".contains("it is a standby"))
    try await server.stop()
    try await server.launch()
    #expect(try await store.lead() != nil)
    await store.close()
    try await server.stop()
  }

  @Test("opens no more connections than it was allowed, and uses them again")
  func pooling() async throws {
    let (server, name, dsn) = try await database()
    let store = try PostgresStore(dsn: dsn, pool: ConnectionPoolConfiguration(maxOpen: 2))
    for _ in 0..<3 {
      try await withThrowingTaskGroup(of: Void.self) { group in
        for index in 0..<30 {
          group.addTask { _ = try await store.record(named: "r\(index)") }
        }
        try await group.waitForAll()
      }
      let count = try await server.run(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'ssl-pinning'"
          + " AND datname = current_database()", in: name)
      #expect(["1\n", "2\n"].contains(count))
    }
  }

  @Test("commits to the disk even where a session's default says otherwise")
  func synchronousCommit() async throws {
    let (server, name, dsn) = try await database()
    try await server.run("ALTER DATABASE \(name) SET synchronous_commit = off", in: name)
    let connection = try PostgresConnection(PostgresDSN(dsn))
    let schema = PostgresSchema()
    try schema.prepare(connection, place: "")
    #expect(
      try connection.query("SELECT current_setting('synchronous_commit')").first?.text(0) == "on")
    #expect(schema.warning == nil)
  }
}
