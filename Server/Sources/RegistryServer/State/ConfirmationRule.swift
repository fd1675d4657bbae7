/// When a changed key is believed, and how long an old one is kept. Times are seconds.
public struct ConfirmationRule: Sendable, Hashable {
  /// How many looks must show a changed key before it is published.
  public var looks: Int
  /// How long a key that was seen fewer times waits for the others. A key that appears once a day
  /// is never added up to a confirmation.
  public var window: Int64
  /// How long an old key is kept after it was last seen.
  public var grace: Int64

  /// A rule.
  public init(looks: Int = 3, window: Int64 = 600, grace: Int64 = 7 * 86_400) {
    self.looks = max(1, looks)
    self.window = window
    self.grace = grace
  }

  /// The rule that a configuration amounts to. The window spans three scans at least, so that a
  /// fleet in which few servers have the new key yet gets its chance.
  public init(_ tls: TLSConfiguration) {
    let window = max(600_000, 3 * tls.interval, 10 * Int64(tls.looks) * tls.lookInterval)
    self.init(looks: tls.looks, window: window / 1000, grace: tls.grace / 1000)
  }

  /// The rule for an endpoint that is looked at every `interval` milliseconds, `nil` for as often as all.
  func spanning(_ interval: Int64?) -> ConfirmationRule {
    ConfirmationRule(looks: looks, window: max(window, 3 * (interval ?? 0) / 1000), grace: grace)
  }
}
