import SslPinningRules

/// How often mismatches may ask for a newer registry: once per host and leaf key in 10 seconds.
///
/// - Only the attacked host is limited: a man in the middle who keeps refusing one host's
///   connections does not starve another host's rotation.
/// - Unlisted hosts count as one: an app may meet any number of them. They share nothing with listed
///   ones, so they starve no rotation.
/// - Bounded: of more than 1 024 pairs, those of the past 10 seconds are kept.
struct RefreshLimiter: Sendable {
  /// Seconds between two refreshes for one host and leaf key.
  static let interval: Int64 = 10

  private struct Cause: Hashable {
    /// `nil` for whatever is not listed.
    let host: String?
    let leaf: SPKIPin?
  }

  private var lastAsked: [Cause: Int64] = [:]

  /// Whether this refusal may ask now (`now` in seconds of a clock that never goes back); a yes
  /// counts.
  mutating func allows(_ refusal: PinEvaluation, at now: Int64) -> Bool {
    let cause =
      refusal.outcome == .unlisted
      ? Cause(host: nil, leaf: nil)
      : Cause(host: refusal.host, leaf: refusal.presented.first)
    if let last = lastAsked[cause], now - last < Self.interval { return false }
    if lastAsked.count > 1024 { lastAsked = lastAsked.filter { now - $0.value < Self.interval } }
    lastAsked[cause] = now
    return true
  }
}
