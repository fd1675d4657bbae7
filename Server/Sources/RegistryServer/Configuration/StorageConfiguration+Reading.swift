extension StorageConfiguration {
  /// Reads `storage`.
  ///
  /// A database's address is read as its store reads it: what the store would refuse is refused here, with the line.
  ///
  /// A setting beside a type that does not use it is tolerated: the environment of a container often
  /// carries all of them. So is a URL without a type, which the field's server reads as `memory`.
  init(_ tree: ConfigurationTree) throws(ConfigurationError) {
    let storage = tree.section(of: .storageType)
    let dsn = try storage.optionalString("dsn", orPlain: true) ?? ""
    let directory = try storage.nonEmpty("dump_dir")
    let pool = try ConnectionPoolConfiguration(storage)
    let isInsecure = try storage.boolean("insecure") ?? false
    switch try storage.nonEmpty("type") {
    case "memory": self = .memory
    case "fs", "filesystem":
      self = .fileSystem(directory: directory ?? tree.stateDirectory + "/documents")
    case "postgres":
      try Self.check(dsn, of: storage, schemes: ["postgres", "postgresql"])
      try Self.check(storage) { () throws(StoreError) in
        _ = try PostgresDSN(dsn, isInsecure: isInsecure)
      }
      self = .postgres(dsn: dsn, pool: pool, isInsecure: isInsecure)
    case "redis":
      try Self.check(dsn, of: storage, schemes: ["redis", "rediss"])
      try Self.check(storage) { () throws(StoreError) in
        _ = try RedisDSN(dsn, isInsecure: isInsecure)
      }
      self = .redis(dsn: dsn, pool: pool, isInsecure: isInsecure)
    case "sqlite":
      guard Self.isFile(dsn), !dsn.contains("://") else {
        throw storage.invalid(
          "dsn", "\"\(MaskedDSN(dsn))\" is no file",
          hint: "write the path of a file, or another type")
      }
      self = .sqlite(path: dsn.isEmpty ? tree.stateDirectory + "/registry.db" : dsn)
    case nil:
      let isFile = !dsn.isEmpty && !dsn.contains("://")
      guard !isFile || Self.isFile(dsn) else {
        throw storage.invalid(
          "dsn", "\"\(MaskedDSN(dsn))\" is no file", hint: "write the path of a file")
      }
      self = .sqlite(path: isFile ? dsn : tree.stateDirectory + "/registry.db")
    case let other?:
      throw storage.invalid(
        "type", "no such storage: \"\(other)\"",
        hint: "sqlite, memory, fs, redis and postgres are known")
    }
  }

  /// Whether it can be the path of a file: what has a secret in it is a database's address with a mistake.
  private static func isFile(_ dsn: String) -> Bool {
    !dsn.hasPrefix(":") && !dsn.hasPrefix("file:") && MaskedDSN(dsn).description == dsn
  }

  private static func check(
    _ storage: ConfigurationSection, _ read: () throws(StoreError) -> Void
  ) throws(ConfigurationError) {
    do throws(StoreError) { try read() } catch {
      guard case .invalidDSN(let reason, let hint) = error else {
        throw storage.invalid("dsn", "\(error)")
      }
      throw storage.invalid("dsn", reason, hint: hint)
    }
  }

  private static func check(
    _ dsn: String, of storage: ConfigurationSection, schemes: [String]
  ) throws(ConfigurationError) {
    let scheme = schemes.first ?? ""
    guard !dsn.isEmpty else {
      throw storage.missing(
        "dsn", because: "type", hint: "write \(scheme)://user:password@host/database")
    }
    let given = dsn.firstRange(of: "://").map { String(dsn[..<$0.lowerBound]) }
    // libpq's other form has no scheme, but pairs.
    let isPairs = scheme == "postgres" && given == nil && dsn.contains("=")
    guard isPairs || given.map({ schemes.contains($0.lowercased()) }) == true else {
      throw storage.invalid(
        "dsn", "\"\(MaskedDSN(dsn))\" is none of \(scheme)",
        hint: "write \(scheme)://user:password@host/database")
    }
  }
}

extension ConnectionPoolConfiguration {
  /// Reads the pool's part of `storage`.
  init(_ storage: ConfigurationSection) throws(ConfigurationError) {
    let standard = ConnectionPoolConfiguration()
    let (open, idle) = (
      try storage.integer("max_open_conns", in: 0...10_000),
      try storage.integer("max_idle_conns", in: 0...10_000)
    )
    self.init(
      maxOpen: open.map { Int($0) } ?? standard.maxOpen,
      maxIdle: idle.map { Int($0) } ?? standard.maxIdle,
      maxIdleTime: try storage.duration("conn_max_idle_time", in: 0...365 * day)
        ?? standard.maxIdleTime,
      maxLifetime: try storage.duration("conn_max_lifetime", in: 0...365 * day)
        ?? standard.maxLifetime)
  }
}
