import RegistryServer
import RegistryStores

/// The kinds of store that keep what they acknowledged.
enum DurableStore: String, CaseIterable, Sendable {
  case fileSystem = "fs"
  case sqlite
  case postgres
  case redis

  /// Opens a handle.
  ///
  /// - Parameter dsn: a directory, a file, or the URL of a database.
  func open(_ dsn: String) throws(StoreError) -> any RegistryStore {
    switch self {
    case .fileSystem: try FileSystemStore(directory: dsn)
    case .sqlite: try SQLiteStore(path: dsn)
    case .postgres: try PostgresStore(dsn: dsn)
    case .redis: try RedisStore(dsn: dsn)
    }
  }
}
