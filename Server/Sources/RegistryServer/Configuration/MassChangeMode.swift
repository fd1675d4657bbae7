/// What it leads to that most endpoints, and at least three, show a new key at once.
public enum MassChangeMode: String, Sendable, Hashable, CaseIterable {
  /// One alert that lists them; the keys are published like others.
  case alert
  /// They are held for a person as well, unless a quorum of vantage points vouches for them. It costs what
  /// it says: certificates that one cron job renews with new keys lock users out until a person acts.
  case hold
}
