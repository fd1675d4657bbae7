/// A pin with the time after which it no longer counts.
public struct Pin: Hashable, Sendable {
  /// The key's hash.
  public let spki: SPKIPin
  /// Unix time in seconds after which the pin counts as expired; `nil` means never.
  package let expires: Int64?

  /// A pin; without a time it never expires.
  package init(_ spki: SPKIPin, expires: Int64? = nil) {
    self.spki = spki
    self.expires = expires
  }
}
