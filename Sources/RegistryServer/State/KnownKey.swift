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
  public let firstSeen: Int64
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

  /// A key.
  public init(
    pin: SPKIPin, firstSeen: Int64, lastSeen: Int64, missedSince: Int64? = nil,
    certificateExpires: Int64? = nil, staged: Staging? = nil
  ) {
    self.pin = pin
    self.firstSeen = firstSeen
    self.lastSeen = lastSeen
    self.missedSince = missedSince
    self.certificateExpires = certificateExpires
    self.staged = staged
  }

  /// Where the key stands.
  public var state: KeyState {
    if staged != nil { return .staged }
    return missedSince == nil ? .active : .retiring
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
