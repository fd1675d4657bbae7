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

  /// The rule for an endpoint that is looked at every `interval` milliseconds, `nil` for as often as all.
  package func spanning(_ interval: Int64?) -> ConfirmationRule {
    ConfirmationRule(looks: looks, window: max(window, 3 * (interval ?? 0) / 1000), grace: grace)
  }
}
