import Foundation
import RegistryServer
import RegistryStores
import TestSupport
import Testing

/// A store of which a record is damaged beside its servers: by a bad sector, or by somebody who may write there.
struct DamagedStore {
  /// Those in which a record that cannot be read can be replaced; SQLite cannot let go of its page.
  static let replaceable: [StoreKind] = [.fileSystem, .redis]

  let kind: StoreKind
  /// The YAML of `storage`, in which DIR is a directory.
  let yaml: String
  private let ground: (any Sendable)?

  init(_ kind: StoreKind) async throws {
    self.kind = kind
    (yaml, ground) = try await StoredServiceTests.storage(kind)
  }

  /// Opens a handle.
  func open(in directory: TemporaryDirectory) throws -> any RegistryStore {
    let text = yaml.replacing("DIR", with: directory.path())
    let storage = try configuration("keys: [{fqdn: a.b}]\nstorage: \(text)").storage
    switch storage {
    case .fileSystem(let path): return try FileSystemStore(directory: path)
    case .sqlite(let path): return try SQLiteStore(path: path)
    case .postgres(let dsn, let pool, _): return try PostgresStore(dsn: dsn, pool: pool)
    case .redis(let dsn, let pool, _): return try RedisStore(dsn: dsn, pool: pool)
    case .memory: return MemoryStore()
    }
  }

  /// Damages a record. In SQLite it is one of more than two pages of 0xa5, and nobody has the file open.
  func damage(_ name: String, in directory: TemporaryDirectory) async throws {
    switch kind {
    case .memory: Issue.record("nothing is kept that could be damaged")
    case .fileSystem:
      let file = directory.file("state/records/\(name)/record")
      var bytes = try Data(contentsOf: file)
      bytes[bytes.count / 2] ^= 1
      try bytes.write(to: file)
    case .sqlite:
      let file = directory.file("registry.db")
      var bytes = [UInt8](try Data(contentsOf: file))
      // Of a page that goes on in another one, the number of that.
      let page = try #require(
        stride(from: 0, to: bytes.count, by: 4096).first { start in
          bytes[start + 4..<start + 4096].allSatisfy { $0 == 0xa5 }
        })
      for place in page..<page + 4 { bytes[place] = 0xff }
      try Data(bytes).write(to: file)
    case .postgres:
      let server = try #require(ground as? PostgresServer)
      let database = try #require(yaml.firstMatch(of: /\/(test\d+)/)).1
      try await server.run(
        """
        ALTER TABLE ssl_pinning_records RENAME TO sound_records;
        CREATE FUNCTION damaged() RETURNS bytea LANGUAGE plpgsql AS
          $$ BEGIN RAISE EXCEPTION 'missing chunk number 0' USING ERRCODE = 'XX001'; END $$;
        CREATE VIEW ssl_pinning_records AS SELECT name, version, entries,
          CASE WHEN name = '\(name)' THEN damaged() ELSE bytes END AS bytes FROM sound_records
        """, in: String(database))
    case .redis:
      let server = try #require(ground as? RedisServer)
      let text = try #require(yaml.firstMatch(of: /\/(\d+)\?/)).1
      let database = try #require(Int(text))
      try await server.run("SET", "ssl-pinning:record:{\(name)}", "x", in: database)
    }
  }
}
