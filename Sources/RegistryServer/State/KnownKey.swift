import Pinning

/// A key that is published for an endpoint. Times are Unix seconds.
public struct KnownKey: Sendable, Hashable {
  /// A key that was announced before any look showed it.
  public struct Staging: Sendable, Hashable {
    /// When it was announced.
    public var at: Int64
    /// Who announced it.
    public var by: String
    /// Why, in their words.
    public var note: String

    /// An announcement.
    public init(at: Int64, by: String, note: String = "") {
      (self.at, self.by, self.note) = (at, by, note)
    }
  }

  /// The SHA-256 of its SubjectPublicKeyInfo.
  public let pin: SPKIPin
  /// When it was first seen, or announced; published as `date`.
  public internal(set) var firstSeen: Int64
  /// When it was last seen; for a staged key, when it was announced.
  public var lastSeen: Int64
  /// Since when looks succeed without showing it; its grace time counts from here.
  ///
  /// Not from ``lastSeen``: while nobody looked (this server was down, or the endpoint was) a key
  /// was not missed, and retiring it on the first look afterwards could cut off half of a fleet.
  public var missedSince: Int64?
  /// Until when the certificate that last showed it is valid; `nil` where it was never seen.
  public var certificateExpires: Int64?
  /// Set while the key was announced and never seen.
  public var staged: Staging?
  /// Whether looks alone spoke for it, beside keys that were published before: nobody announced it, and
  /// nobody approved it.
  public var isUnannounced: Bool
  /// How many looks at every address succeeded without showing it since it was last seen.
  public var missedLooks: Int
  /// The most looks in a row that missed it and were followed by one that saw it.
  public var longestGap: Int

  /// A key.
  public init(
    pin: SPKIPin, firstSeen: Int64, lastSeen: Int64, missedSince: Int64? = nil,
    certificateExpires: Int64? = nil, staged: Staging? = nil, isUnannounced: Bool = false,
    missedLooks: Int = 0, longestGap: Int = 0
  ) {
    self.pin = pin
    self.firstSeen = firstSeen
    self.lastSeen = lastSeen
    self.missedSince = missedSince
    self.certificateExpires = certificateExpires
    self.staged = staged
    self.isUnannounced = isUnannounced
    self.missedLooks = missedLooks
    self.longestGap = longestGap
  }

  /// Where the key stands.
  public var state: KeyState {
    if staged != nil { return .staged }
    return missedSince == nil ? .active : .retiring
  }
}

extension KnownKey {
  /// For how many seconds a key is short-lived that nobody announced. What lasts longer is no middleman's
  /// moment, and leaves by its grace time.
  static let shortLife: Int64 = 3600
  /// How many looks at every address must miss it before it is withdrawn, at least.
  static let leastLooksToWithdraw = 30
  /// For how many seconds, at least.
  static let timeToWithdraw: Int64 = 600
  /// For how many times as long as it was there, and for how many times as many looks as ever missed it while it
  /// was. A server behind a balancer that keeps us at one server for a while, and one that takes every twentieth
  /// connection, come and go at a pace that they have shown: seven times that is missed once in a thousand
  /// times (e^-7).
  static let spansToWithdraw: Int64 = 7

  /// Whether nobody announced it, and it has been there for less than an hour in all.
  var isShortLived: Bool { isUnannounced && lastSeen - firstSeen < Self.shortLife }

  /// How many looks must miss it before it is withdrawn.
  var looksToWithdraw: Int {
    max(Self.leastLooksToWithdraw, Int(Self.spansToWithdraw) * (longestGap + 1))
  }

  /// Whether it was there for a moment and is gone: published by looks alone, seen for less than an hour, and then
  /// missed for ten minutes, for seven times as long as it was there, and by ``looksToWithdraw``.
  ///
  /// - Parameter now: Unix time in seconds.
  func isPassing(at now: Int64) -> Bool {
    guard isShortLived, missedLooks >= looksToWithdraw, let missedSince else { return false }
    return now - missedSince
      >= max(Self.timeToWithdraw, Self.spansToWithdraw * (lastSeen - firstSeen))
  }
}

/// Where a key of an endpoint stands. *Observed*, *held*, *published* as one of three, *gone*: a key that
/// is gone stands in the history alone.
public enum KeyState: String, Sendable, Hashable, CaseIterable {
  /// Seen, not often enough yet.
  case observed
  /// Confirmed by looks, and waiting for a person or for another vantage point.
  case held
  /// Published ahead of its use.
  case staged
  /// Published, and seen by the last look that could tell.
  case active
  /// Published, and missed by looks that succeeded; its grace time runs.
  case retiring
}
