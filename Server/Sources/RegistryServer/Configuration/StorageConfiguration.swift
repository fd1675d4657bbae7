import Foundation
import RegistryStores

/// Where the server keeps its state.
public enum StorageConfiguration: Sendable, Equatable {
  /// In memory: after a restart every endpoint's key counts as new and is published at once. For
  /// tests and trials.
  case memory
  /// In a SQLite file, created with its directory where missing.
  case sqlite(path: String)
  /// In files of a directory, created where missing.
  case fileSystem(directory: String)
  /// In a PostgreSQL database: `postgres://user:password@host:port/database?sslmode=…`, or libpq's
  /// `key=value` form. The text may hold a password: it is never logged. `isInsecure`: another machine may be
  /// talked to without verified TLS.
  case postgres(dsn: String, pool: ConnectionPoolConfiguration, isInsecure: Bool = false)
  /// In Redis: `redis://user:password@host:port/number`, or `rediss`. The text may hold a password: it is never
  /// logged. `isInsecure` as above.
  case redis(dsn: String, pool: ConnectionPoolConfiguration, isInsecure: Bool = false)

  /// SQLite under ``dataDirectory(environment:)``.
  public static var standard: StorageConfiguration {
    .sqlite(path: dataDirectory() + "/registry.db")
  }

  /// `$XDG_STATE_HOME/ssl-pinning`, or `~/.local/state/ssl-pinning` (XDG Base Directory
  /// Specification 0.8: a relative value is ignored).
  public static func dataDirectory(
    environment: [String: String] = ProcessInfo.processInfo.environment
  ) -> String {
    if let state = environment["XDG_STATE_HOME"], state.hasPrefix("/") {
      return state + "/ssl-pinning"
    }
    let home = environment["HOME"] ?? NSHomeDirectory()
    return home + "/.local/state/ssl-pinning"
  }
}

extension StorageConfiguration: CustomStringConvertible, CustomDebugStringConvertible,
  CustomReflectable
{
  /// The type and its place, a password masked: a whole configuration that ends up in a message takes
  /// none with it.
  public var description: String {
    switch self {
    case .memory: "memory"
    case .sqlite(let path): "sqlite(\(path))"
    case .fileSystem(let directory): "fs(\(directory))"
    case .postgres(let dsn, _, _): "postgres(\(MaskedDSN(dsn)))"
    case .redis(let dsn, _, _): "redis(\(MaskedDSN(dsn)))"
    }
  }

  public var debugDescription: String { description }
  public var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// What is written for ``StorageConfiguration``, setting by setting; `nil` is not given, or not used.
struct StorageSettings {
  var type: String?
  var dsn: String?
  var directory: String?
  var maxOpen: Int?
  var maxIdle: Int?
  var maxIdleTime: Int64?
  var maxLifetime: Int64?
  var isInsecure: Bool?

  /// Nothing given.
  init() {}

  /// What a store goes by.
  init(_ storage: StorageConfiguration) {
    switch storage {
    case .memory: type = "memory"
    case .sqlite(let path): (type, dsn) = ("sqlite", path)
    case .fileSystem(let path): (type, directory) = ("fs", path)
    case .postgres(let url, let pool, let isInsecure), .redis(let url, let pool, let isInsecure):
      if case .redis = storage { type = "redis" } else { type = "postgres" }
      (dsn, self.isInsecure) = (url, isInsecure)
      (maxOpen, maxIdle) = (pool.maxOpen, pool.maxIdle)
      (maxIdleTime, maxLifetime) = (pool.maxIdleTime, pool.maxLifetime)
    }
  }

  /// The pool; what is not given is as shipped.
  var pool: ConnectionPoolConfiguration {
    let standard = ConnectionPoolConfiguration()
    return ConnectionPoolConfiguration(
      maxOpen: maxOpen ?? standard.maxOpen, maxIdle: maxIdle ?? standard.maxIdle,
      maxIdleTime: maxIdleTime ?? standard.maxIdleTime,
      maxLifetime: maxLifetime ?? standard.maxLifetime)
  }
}

extension StorageConfiguration {
  /// The store that settings mean.
  ///
  /// A database's address is read as its store reads it: what the store would refuse is refused here, with the line.
  ///
  /// A setting beside a type that does not use it is tolerated: the environment of a container often
  /// carries all of them. So is a URL without a type, which the reference server reads as `memory`.
  init(_ settings: StorageSettings, _ tree: ConfigurationTree) throws(ConfigurationError) {
    let storage = tree.section(of: .storageType)
    let (dsn, isInsecure) = (settings.dsn ?? "", settings.isInsecure ?? false)
    switch settings.type {
    case "memory": self = .memory
    case "fs", "filesystem":
      self = .fileSystem(directory: settings.directory ?? tree.stateDirectory + "/documents")
    case "postgres":
      try Self.check(dsn, of: storage, schemes: ["postgres", "postgresql"])
      try Self.check(storage) { () throws(StoreError) in
        _ = try PostgresDSN(dsn, isInsecure: isInsecure)
      }
      self = .postgres(dsn: dsn, pool: settings.pool, isInsecure: isInsecure)
    case "redis":
      try Self.check(dsn, of: storage, schemes: ["redis", "rediss"])
      try Self.check(storage) { () throws(StoreError) in
        _ = try RedisDSN(dsn, isInsecure: isInsecure)
      }
      self = .redis(dsn: dsn, pool: settings.pool, isInsecure: isInsecure)
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
      // Without a scheme nothing says what of it is a password.
      let shown = given == nil ? "what stands there" : "\"\(MaskedDSN(dsn))\""
      throw storage.invalid(
        "dsn", "\(shown) is none of \(scheme)",
        hint: "write \(scheme)://user:password@host/database")
    }
  }
}
