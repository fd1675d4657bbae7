/// When a changed key is believed, and how long an old one is kept. Times are seconds.
public struct ConfirmationRule: Sendable, Hashable {
  /// How many probes must show a changed key before it is published.
  public var probes: Int
  /// How long a key that was seen fewer times waits for the others. A key that appears once a day
  /// is never added up to a confirmation.
  public var window: Int64
  /// How long an old key is kept after it was last seen.
  public var grace: Int64

  /// A rule.
  public init(probes: Int = 3, window: Int64 = 600, grace: Int64 = 7 * 86_400) {
    self.probes = max(1, probes)
    self.window = window
    self.grace = grace
  }

  /// The rule for an endpoint that is probed every `interval` milliseconds, `nil` for as often as all.
  package func spanning(_ interval: Int64?) -> ConfirmationRule {
    ConfirmationRule(probes: probes, window: max(window, 3 * (interval ?? 0) / 1000), grace: grace)
  }
}
