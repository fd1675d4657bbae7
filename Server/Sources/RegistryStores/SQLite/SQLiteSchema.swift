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
  package static func check(_ connection: SQLiteConnection, path: String) throws(StoreError) -> Int64 {
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
