import Foundation
import SslPinningRules

/// Which registry is in force, where it came from, and how old it is.
public struct RegistryStatus: Hashable, Sendable {
  /// Where a registry came from.
  public enum Origin: String, Hashable, Sendable {
    /// Its server, during this run.
    case network
    /// What an earlier run, or another process of the app, had fetched.
    case cache
    /// The app itself.
    case bundle
    /// A mirror that the statement in force names, during this run.
    case mirror
    /// A document that the app handed over, during this run.
    case handed
  }

  /// Whether the last good registry is kept for the next start.
  public enum Storage: Hashable, Sendable {
    /// The registry in force is stored. A bundled one without a version is stored once the registry has answered.
    case kept
    /// The app chose ``RegistryStorage/none``.
    case off
    /// It is not, for this reason: no home directory, no right to write, a full disk. The next start is
    /// a first start, which can be fed an old registry.
    case failing(reason: String)
  }

  /// Where the registry came from.
  public let origin: Origin
  /// Whether it is kept for the next start.
  public let storage: Storage
  /// Which one it is, and when its server last confirmed it.
  public let stamp: RegistryStamp
  /// Seconds since that confirmation, never negative.
  public let age: TimeInterval
  /// Whether it was confirmed too long ago: more than 7 days.
  public let isStale: Bool
  /// When it ceases to count; `nil` in format 1, where nothing vouches for the list as a whole.
  public let expires: Date?

  init(_ trusted: TrustedRegistry, origin: Origin, storage: Storage, at clock: Int64) {
    self.origin = origin
    self.storage = storage
    stamp = trusted.stamp
    age = TimeInterval(stamp.age(at: clock))
    isStale = stamp.isStale(at: clock)
    expires = trusted.expires.map { Date(unixSeconds: $0) }
  }
}

extension RegistryStatus: CustomStringConvertible {
  /// One line: where it came from, which one it is, until when it counts.
  public var description: String {
    "registry \(origin == .handed ? "handed over" : "from \(origin.rawValue)"), \(stamp)"
      + (isStale ? " (stale)" : "")
      + (expires.map { ", expires \(RFC3339.text($0.unixSeconds))" } ?? "")
  }
}
