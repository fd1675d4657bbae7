import SslPinningRules

/// When the registry is fetched next without anybody asking for it. Seconds throughout, of a clock
/// that never goes back.
///
/// - A registry is fetched anew once per interval, a tenth earlier or later, so that the copies of an
///   app do not all ask at once.
/// - After a failure the next try comes sooner, then later and later: half a minute, doubled each
///   time, up to the interval or an hour, whichever is longer; spread over its upper half.
/// - A server that names a time (`Retry-After`, RFC 9110 §10.2.3) is not asked before, up to that longest pause and
///   a day at most: whoever stood before it for a moment must not hold a denial back for long.
/// - Mismatches do not wait for any of this (``RefreshLimiter``).
struct RefreshSchedule: Sendable {
  static let shortestInterval: Double = 60
  static let firstRetry: Double = 30

  private let interval: Double
  /// When the registry was last confirmed.
  private var confirmed: Int64
  /// Failures since then.
  private(set) var failures = 0
  /// Until when the server does not want to be asked, whoever asked it last.
  private var notBefore = Int64.min

  /// A schedule that begins at `now`. An interval that is no number counts as the shortest.
  init(interval: Double, at now: Int64) {
    self.interval =
      interval > Self.shortestInterval ? min(interval, 30 * 86400) : Self.shortestInterval
    confirmed = now
  }

  /// The longest pause after a failure.
  private var longest: Double { max(interval, 3600) }

  /// Begins with a registry of this age.
  mutating func begin(age: Int64) { confirmed -= min(max(0, age), Int64(interval)) }

  mutating func succeeded(at now: Int64) {
    confirmed = now
    failures = 0
    notBefore = .min
  }

  /// - Parameter retryAfter: what the server asked for, if it did.
  mutating func failed(retryAfter: Double? = nil, at now: Int64) {
    failures = min(failures + 1, 64)
    guard let retryAfter else { return }
    let wait = min(max(0, retryAfter), longest, 86_400).rounded(.up)
    notBefore = max(notBefore, now + Int64(wait))
  }

  /// Seconds to wait from `now` on.
  ///
  /// - Parameter random: in 0..<1.
  func delay(at now: Int64, random: Double) -> Double {
    guard failures > 0 else {
      return max(1, interval * (0.9 + 0.2 * random) - Double(now - confirmed))
    }
    var wait = Self.firstRetry
    for _ in 1..<failures where wait < longest { wait *= 2 }
    let left = notBefore > now ? Double(notBefore - now) : 0
    return max(min(wait, longest) * (0.5 + 0.5 * random), left)
  }

  /// Whether the registry is to be asked now that a wait is over: meanwhile somebody else may have refreshed, or a
  /// mismatch have been told when to come back.
  ///
  /// - Parameter age: of the registry by the device's clock, in seconds; the steady one may have stood still.
  func isDue(at now: Int64, age: Int64 = 0) -> Bool {
    now >= notBefore
      && (failures > 0 || Double(now - confirmed) >= interval * 0.9 - 1 || !isFresh(age: age))
  }

  /// Whether a registry of this age serves without asking the network first.
  func isFresh(age: Int64) -> Bool { Double(age) < interval }
}

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

  /// Takes the leave to ask for a refusal, if there is one at `now` (seconds of a clock that never goes back).
  ///
  /// - Returns: whether it was there; it is used up then.
  mutating func tryAcquire(for refusal: PinEvaluation, at now: Int64) -> Bool {
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
