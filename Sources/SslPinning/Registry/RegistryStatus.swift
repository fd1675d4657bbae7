import Pinning

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
  }

  /// Where the registry came from.
  public let origin: Origin
  /// Which one it is, and when its server last confirmed it.
  public let stamp: RegistryStamp
  /// Seconds since that confirmation, never negative.
  public let age: Int64
  /// Whether it was confirmed too long ago: more than ``Pinning/RegistryStamp/staleAfter``,
  /// 7 days.
  public let isStale: Bool
  /// Unix time in seconds from which on it no longer counts; `nil` in format 1, where nothing
  /// vouches for the list as a whole.
  public let expires: Int64?

  init(_ trusted: TrustedRegistry, origin: Origin, at clock: Int64) {
    let now = trusted.time(at: clock)
    self.origin = origin
    stamp = trusted.stamp
    age = stamp.age(at: now)
    isStale = stamp.isStale(at: now)
    expires = trusted.expires
  }
}
