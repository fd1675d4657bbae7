extension StorageConfiguration {
  /// Opens the store that is configured.
  func open() throws(StoreError) -> any RegistryStore {
    switch self {
    case .memory: MemoryStore()
    case .sqlite(let path): try SQLiteStore(path: path)
    case .fileSystem(let directory): try FileSystemStore(directory: directory)
    case .postgres(let dsn, let pool): try PostgresStore(dsn: dsn, pool: pool)
    case .redis(let dsn, let pool): try RedisStore(dsn: dsn, pool: pool)
    }
  }
}
