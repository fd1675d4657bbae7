import Foundation

/// Where the server keeps its state.
public enum StorageConfiguration: Sendable, Equatable {
  /// In memory: after a restart every endpoint's key counts as new and is published at once. For
  /// tests and trials.
  case memory
  /// In a SQLite file, created with its directory where missing.
  case sqlite(path: String)

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
