import Foundation
import SslPinningPlatform
import TestSupport
import Testing

@testable import RegistryServer
@testable import RegistryStores

@Suite("The SQLite store") struct SQLiteStoreTests {
  @Test("has everything after a restart")
  func restart() async throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("registry.db")
    let first = try SQLiteStore(path: path)
    _ = try await first.replace("a", version: 0, with: [1])
    _ = try await first.replace("a", version: 1, with: [2])
    await first.close()
    let second = try SQLiteStore(path: path)
    let record = try await second.record(named: "a")
    #expect(record?.version == 2)
    #expect(record?.bytes == [2])
  }

  @Test("has in its files what it acknowledged, at the moment it did")
  func crash() async throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("registry.db")
    let store = try SQLiteStore(path: path)
    for version in Int64(0)..<10 {
      _ = try await store.replace("a", version: version, with: [UInt8](repeating: 1, count: 5000))
      // What kill -9 leaves behind is what the files hold now: nothing is closed or checkpointed.
      let image = try TemporaryDirectory()
      for suffix in ["", "-wal"] {
        try FileManager.default.copyItem(
          atPath: path + suffix, toPath: image.path("registry.db" + suffix))
      }
      let survivor = try SQLiteStore(path: image.path("registry.db"))
      #expect(try await survivor.record(named: "a")?.version == version + 1)
      await survivor.close()
    }
  }

  @Test("is shared by two processes' connections without lost updates")
  func shared() async throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("registry.db")
    let one = try SQLiteStore(path: path)
    let other = try SQLiteStore(path: path)
    #expect(try await one.replace("a", version: 0, with: [1]) == .replaced(version: 1))
    #expect(try await other.replace("a", version: 0, with: [2]) == .conflict(version: 1))
    #expect(try await other.replace("a", version: 1, with: [3]) == .replaced(version: 2))
    #expect(try await one.record(named: "a")?.bytes == [3])
  }

  @Test("brings a file of schema 1 up to date and keeps what is in it")
  func migration() async throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("registry.db")
    let old = try SQLiteConnection(path: path)
    try old.execute(
      """
      CREATE TABLE records (
        name TEXT PRIMARY KEY, version INTEGER NOT NULL, bytes BLOB NOT NULL
      ) STRICT;
      PRAGMA application_id = 0x5353506e;
      PRAGMA user_version = 1;
      INSERT INTO records VALUES ('a', 7, x'010203');
      """)
    // Twice, and two at a time: servers that start together.
    for _ in 0..<2 {
      let (store, other) = (try SQLiteStore(path: path), try SQLiteStore(path: path))
      let record = try #require(try await store.record(named: "a"))
      #expect(record.bytes == [1, 2, 3])
      let outcome = try await other.replace(
        "a", version: record.version, with: record.bytes, history: [[9]])
      #expect(outcome == .replaced(version: record.version + 1))
      await store.close()
      await other.close()
    }
    let history = try await SQLiteStore(path: path).history(of: "a", before: nil, limit: 9)
    #expect(history.map(\.number) == [2, 1])
  }

  @Test("makes a record and its history entries in one transaction")
  func oneTransaction() async throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("registry.db")
    let store = try SQLiteStore(path: path)
    _ = try await store.replace("a", version: 0, with: [1], history: [[1]])
    let other = try SQLiteConnection(path: path)
    try other.execute(
      "CREATE TRIGGER full BEFORE INSERT ON history BEGIN SELECT raise(FAIL, 'full'); END")
    await #expect(throws: StoreError.self) {
      try await store.replace("a", version: 1, with: [2], history: [[2]])
    }
    #expect(try await store.record(named: "a") == StoredRecord(version: 1, bytes: [1]))
    try other.execute("DROP TRIGGER full")
    let outcome = try await store.replace("a", version: 1, with: [2], history: [[2]])
    #expect(outcome == .replaced(version: 2))
  }

  @Test("writes to the file that has its name, also after a backup took the old one's place")
  func replacedFile() async throws {
    let directory = try TemporaryDirectory()
    let (path, backup) = (directory.path("registry.db"), directory.path("backup.db"))
    let store = try SQLiteStore(path: path)
    _ = try await store.replace("a", version: 0, with: [1], history: [[1]])
    try SQLiteConnection(path: path).execute("VACUUM INTO '\(backup)'")
    _ = try await store.replace("a", version: 1, with: [2])
    let (told, changes) = (store.changes(), Locked(0))
    let listening = Task { for await _ in told { changes.withLock { $0 += 1 } } }
    for suffix in ["-wal", "-shm"] { try FileManager.default.removeItem(atPath: path + suffix) }
    #expect(rename(backup, path) == 0)
    #expect(try await store.record(named: "a") == StoredRecord(version: 1, bytes: [1]))
    #expect(await eventually(within: 20) { changes.withLock { $0 } > 0 })
    listening.cancel()
    #expect(
      try await store.replace("a", version: 1, with: [3], history: [[2]]) == .replaced(version: 2))
    // What kill -9 leaves is what another process finds under the name.
    let survivor = try SQLiteStore(path: path)
    #expect(try await survivor.record(named: "a") == StoredRecord(version: 2, bytes: [3]))
    #expect(try await survivor.history(of: "a", before: nil, limit: 9).count == 2)
  }

  @Test(
    "acknowledges nothing while its file is gone with its directory, and goes on when it is back")
  func movedDirectory() async throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("a/registry.db")
    let store = try SQLiteStore(path: path)
    _ = try await store.replace("a", version: 0, with: [1])
    #expect(rename(directory.path("a"), directory.path("b")) == 0)
    try directory.write("in the way", to: "a")
    for _ in 0..<2 {
      await #expect(throws: StoreError.self) { try await store.replace("a", version: 1, with: [2]) }
    }
    #expect(unlink(directory.path("a")) == 0)
    #expect(rename(directory.path("b"), directory.path("a")) == 0)
    #expect(try await store.replace("a", version: 1, with: [2]) == .replaced(version: 2))
    await store.close()
    await #expect(throws: StoreError.closed) { try await store.record(named: "a") }
  }

  @Test("keeps its files to its owner")
  func modes() async throws {
    let directory = try TemporaryDirectory()
    let store = try SQLiteStore(path: directory.path("a/b/registry.db"))
    _ = try await store.replace("a", version: 0, with: [1])
    for (name, mode) in [
      ("a/b", 0o700), ("a/b/registry.db", 0o600), ("a/b/registry.db-wal", 0o600),
    ] {
      let attributes = try FileManager.default.attributesOfItem(atPath: directory.path(name))
      #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == mode, "\(name)")
    }
  }

  @Test("refuses what is no file of its own")
  func foreign() async throws {
    let directory = try TemporaryDirectory()
    let text = try directory.write("not a database, but long enough to probe", to: "text.db")
      .path(percentEncoded: false)
    #expect(throws: StoreError.cannotOpen(path: text, reason: "file is not a database")) {
      try SQLiteStore(path: text)
    }
    let other = directory.path("other.db")
    try await makeDatabase(other, with: 0x6d6c_6b6a, at: Header.applicationID)
    #expect(throws: StoreError.foreign(path: other)) { try SQLiteStore(path: other) }
    #expect(throws: StoreError.self) { try SQLiteStore(path: directory.path()) }
    #expect(throws: StoreError.self) { try SQLiteStore(path: "/proc/no/such/place.db") }
  }

  @Test("refuses a file of a newer version instead of damaging it")
  func newer() async throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("registry.db")
    try await makeDatabase(path, with: 9, at: Header.userVersion)
    #expect(throws: StoreError.newerSchema(path: path, found: 9, known: 2)) {
      try SQLiteStore(path: path)
    }
  }

  @Test(
    "cannot be opened if it is damaged where all records are found: that is no record's damage",
    arguments: [0, 100] as [UInt64])
  func damagedBeginning(_ place: UInt64) async throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("registry.db")
    try await makeDatabase(path, with: .max, at: place)
    let error = #expect(throws: StoreError.self) { try SQLiteStore(path: path) }
    guard case .cannotOpen(path, _)? = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(error?.isAbsence(wasOpen: true) == true)
  }

  /// Offsets in a database's header (sqlite.org/fileformat2.html §1.3).
  private enum Header {
    static let userVersion: UInt64 = 60
    static let applicationID: UInt64 = 68
  }

  /// Makes an empty store and writes a number of four bytes into its header.
  private func makeDatabase(_ path: String, with value: UInt32, at offset: UInt64) async throws {
    await (try SQLiteStore(path: path)).close()
    let file = try #require(FileHandle(forUpdatingAtPath: path))
    try file.seek(toOffset: offset)
    try file.write(contentsOf: withUnsafeBytes(of: value.bigEndian) { Data($0) })
    try file.close()
  }
}
