import Pinning

/// A key that an endpoint proved to have, and that is published for it.
public struct KnownKey: Sendable, Hashable {
  /// The SHA-256 of its SubjectPublicKeyInfo.
  public let pin: SPKIPin
  /// When it was first seen, in Unix seconds; published as `date`.
  public let firstSeen: Int64
  /// When it was last seen, in Unix seconds.
  public var lastSeen: Int64
  /// Since when looks succeed without showing it, in Unix seconds; its grace time counts from here.
  ///
  /// Not from ``lastSeen``: while nobody looked (this server was down, or the endpoint was) a key
  /// was not missed, and retiring it on the first look afterwards could cut off half of a fleet.
  public var missedSince: Int64?

  /// A key.
  public init(pin: SPKIPin, firstSeen: Int64, lastSeen: Int64, missedSince: Int64? = nil) {
    self.pin = pin
    self.firstSeen = firstSeen
    self.lastSeen = lastSeen
    self.missedSince = missedSince
  }
}
