import RegistryStores
extension StorageConfiguration {
  /// Opens the store that is configured.
  func open() throws(StoreError) -> any RegistryStore {
    switch self {
    case .memory: MemoryStore()
    case .sqlite(let path): try SQLiteStore(path: path)
    case .fileSystem(let directory): try FileSystemStore(directory: directory)
    case .postgres(let dsn, let pool, let isInsecure):
      try PostgresStore(dsn: dsn, pool: pool, isInsecure: isInsecure)
    case .redis(let dsn, let pool, let isInsecure):
      try RedisStore(dsn: dsn, pool: pool, isInsecure: isInsecure)
    }
  }
}
