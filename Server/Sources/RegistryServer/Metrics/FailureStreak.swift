/// Failed probes of one document's endpoints since they were last all well: the value of
/// `ssl_pinning_errors`.
///
/// - It counts up with every failed probe while any endpoint fails, so that `rate()` over it is the rate
///   of failures.
/// - It is back at 0 once every endpoint's newest probe has succeeded and the last failure is
///   ``holdSeconds`` ago, so that an alert `> 0` ends with its cause. `rate()` takes the fall for the
///   restart of a counter and adds nothing.
/// - A scrape changes nothing: two servers that scrape see the same.
struct FailureStreak: Sendable, Equatable {
  /// For how many seconds a failure that is over is still told: twice the longest usual scrape
  /// interval, so that no scraper misses it.
  static let holdSeconds: Int64 = 120

  private var count: UInt64 = 0
  private var lastFailure: Int64 = 0
  private var failing: Set<String> = []

  /// Enters a failed probe an endpoint.
  mutating func failed(_ endpoint: String, at now: Int64) {
    count = value(at: now) + 1
    lastFailure = now
    failing.insert(endpoint)
  }

  /// Enters a probe that succeeded.
  mutating func succeeded(_ endpoint: String) { failing.remove(endpoint) }

  /// Forgets endpoints that are watched no more.
  mutating func keep(only endpoints: Set<String>) { failing.formIntersection(endpoints) }

  /// The value to tell.
  func value(at now: Int64) -> UInt64 {
    // A last failure in the future was entered under a clock that has been set back since.
    let isRecent = lastFailure <= now && now - lastFailure < Self.holdSeconds
    return failing.isEmpty && !isRecent ? 0 : count
  }
}
