import Foundation

/// A copy of a store in one file: a SQLite database with the tables of ``SQLiteSchema``, and in them every record with
/// its seal, under the version that it has in its store, and its history under its numbers.
///
/// - Of a store in SQLite it is SQLite's online backup: as of one moment, with what the log beside the file has, while
///   servers go on writing. A copy of `registry.db` alone lacks that log, and what was acknowledged last is in it.
/// - Of any other store it is made record by record. Each is whole; between two of them a server may write.
/// - It is complete and on the disk before it has its name, and takes no other file's place.
package final class SQLiteBackup: Sendable {
  /// Where it is to be.
  private let path: String
  /// Where it is meanwhile: nobody else has the name.
  private let beside: String

  /// A backup in the making, beside the place that it is to have.
  ///
  /// - Throws: ``StoreError/cannotBackUp(path:reason:)``.
  package init(_ path: String) throws(StoreError) {
    self.path = path
    beside = path + "." + String(UInt32.random(in: .min ... .max), radix: 16)
    guard access(path, F_OK) != 0 else { throw Self.failure(path, EEXIST) }
    let descriptor = Foundation.open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw Self.failure(path, errno) }
    close(descriptor)
  }

  deinit {
    for end in ["", "-journal", "-wal", "-shm"] { unlink(beside + end) }
  }

  /// Fills it from a store in SQLite.
  package func copy(_ store: String) throws(StoreError) {
    let source = try SQLiteConnection(path: store, for: .sharing)
    try SQLiteSchema.check(source, path: store)
    let copy = try SQLiteConnection(path: beside)
    try source.copy(into: copy)
    // The original's mode comes with it, and would have files beside this one.
    try copy.execute("PRAGMA journal_mode=DELETE")
  }

  /// Fills it from a store of another kind, with these records.
  package func copy(_ names: Set<String>, of store: any RegistryStore) async throws(StoreError) {
    let copy = try SQLiteConnection(path: beside)
    try SQLiteSchema.migrate(copy, path: beside)
    for name in names.sorted() {
      guard let record = try await store.record(named: name) else { continue }
      _ = try copy.change(
        "INSERT INTO records (name, version, bytes) VALUES (?, ?, ?)",
        [.text(name), .integer(record.version), .blob(record.bytes)])
      var before: Int64?
      while true {
        let page = try await store.history(of: name, before: before, limit: StoredEntry.page)
        guard let last = page.last else { break }
        try copy.transaction { () throws(StoreError) in
          for entry in page {
            _ = try copy.change(
              "INSERT INTO history (name, number, bytes) VALUES (?, ?, ?)",
              [.text(name), .integer(entry.number), .blob(entry.bytes)])
          }
        }
        before = last.number
      }
    }
  }

  /// Opens it as it stands, to be read.
  package func opened() throws(StoreError) -> SQLiteStore { try SQLiteStore(backup: beside) }

  /// Gives it its name.
  package func takePlace() throws(StoreError) {
    // Not by a rename: that takes the place of what somebody made meanwhile.
    guard link(beside, path) == 0 else { throw Self.failure(path, errno) }
    let cut = path.utf8.lastIndex(of: UInt8(ascii: "/")).map { path.utf8.index(after: $0) }
    FileSystemStore.flush(directory: cut.map { String(path[..<$0]) } ?? ".")
  }

  /// A connection to a backup, if the file is one, and whole.
  static func open(_ path: String) throws(StoreError) -> SQLiteConnection {
    var status = stat()
    guard access(path, R_OK) == 0, stat(path, &status) == 0 else {
      throw .cannotReadBackup(path: path, reason: reason(errno))
    }
    // A pipe would be waited on for ever.
    guard status.st_mode & S_IFMT == S_IFREG else {
      throw .cannotReadBackup(path: path, reason: "it is no file")
    }
    let connection = try SQLiteConnection(path: path, for: .reading)
    try SQLiteSchema.check(connection, path: path)
    let findings = try connection.query("PRAGMA quick_check(1)") {
      String(decoding: $0.blob(0), as: UTF8.self)
    }
    guard findings == ["ok"] else {
      throw .cannotReadBackup(path: path, reason: findings.first ?? "it is empty")
    }
    return connection
  }

  private static func reason(_ code: Int32) -> String {
    String(cString: strerror(code)).lowercased()
  }

  private static func failure(_ path: String, _ code: Int32) -> StoreError {
    .cannotBackUp(path: path, reason: code == EEXIST ? "it exists and is kept" : reason(code))
  }
}
