import HTTPServing
import SslPinningPlatform

/// How often each address may call.
final class CallLimits: Sendable {
  private let calls: Locked<RateLimiter>
  private let failures: Locked<RateLimiter>
  private let ticks: @Sendable () -> Int64
  private let lines = Locked(Lines())

  /// What the log tells of calls without a good token: 10 lines at once for an address and then one in 6
  /// seconds, and 100 a minute for all of them.
  private struct Lines {
    var each = RateLimiter(burst: 10, interval: 6000)
    var all = RateLimiter(burst: 100, interval: 600)
    var untold = 0
  }

  /// - Parameters:
  ///   - calls: of those with a good token: a page of the console is a dozen calls, and 20 a second go
  ///     on for ever.
  ///   - failures: of the others: 10 at once and then one in 6 seconds.
  ///   - ticks: milliseconds of a clock that is never set: one that was set back would refuse
  ///     everybody until it has caught up.
  init(
    calls: RateLimiter = RateLimiter(burst: 200, interval: 50),
    failures: RateLimiter = RateLimiter(burst: 10, interval: 6000),
    ticks: @escaping @Sendable () -> Int64 = MonotonicReading.milliseconds
  ) {
    self.calls = Locked(calls)
    self.failures = Locked(failures)
    self.ticks = ticks
  }

  /// Counts a call with a good token.
  func refusalOfCall(by peer: String) -> APIError? {
    refusal(calls, peer, "too many calls from this address")
  }

  /// Counts a call without.
  func refusalOfFailure(by peer: String) -> APIError? {
    refusal(failures, peer, "too many calls without a good token from this address")
  }

  /// Whether the log tells of a call without a good token: how many it did not tell of since the last
  /// line, or `nil` where it tells nothing.
  func untoldBeforeLine(of peer: String) -> Int? {
    let now = ticks()
    return lines.withLock { lines in
      guard lines.each.ask(peer, at: now) == .allowed, lines.all.ask("", at: now) == .allowed
      else {
        lines.untold += 1
        return nil
      }
      defer { lines.untold = 0 }
      return lines.untold
    }
  }

  private func refusal(
    _ limiter: Locked<RateLimiter>, _ peer: String, _ message: String
  ) -> APIError? {
    let now = ticks()
    switch limiter.withLock({ $0.ask(peer, at: now) }) {
    case .allowed: return nil
    case .limited(let milliseconds): return .limited(message, retryAfter: milliseconds)
    }
  }
}
