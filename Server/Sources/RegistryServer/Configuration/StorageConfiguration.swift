import Foundation

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
