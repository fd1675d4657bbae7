import PinningPlatform

/// How often each address may call.
final class CallLimits: Sendable {
  private let calls: Locked<RateLimiter>
  private let failures: Locked<RateLimiter>
  private let ticks: @Sendable () -> Int64

  /// - Parameters:
  ///   - calls: of those with a good token: a page of the console is a dozen calls, and 20 a second go
  ///     on for ever.
  ///   - failures: of the others: 10 at once and then one in 6 seconds.
  ///   - ticks: milliseconds of a clock that is never set: one that was set back would refuse
  ///     everybody until it has caught up.
  init(
    calls: RateLimiter = RateLimiter(burst: 200, interval: 50),
    failures: RateLimiter = RateLimiter(burst: 10, interval: 6000),
    ticks: @escaping @Sendable () -> Int64 = {
      let reading = MonotonicReading.now().components
      return reading.seconds * 1000 + reading.attoseconds / 1_000_000_000_000_000
    }
  ) {
    self.calls = Locked(calls)
    self.failures = Locked(failures)
    self.ticks = ticks
  }

  /// Counts a call with a good token.
  func refusalOfCall(by peer: String) -> AdministrationRefusal? {
    refusal(calls, peer, "too many calls from this address")
  }

  /// Counts a call without.
  func refusalOfFailure(by peer: String) -> AdministrationRefusal? {
    refusal(failures, peer, "too many calls without a good token from this address")
  }

  private func refusal(
    _ limiter: Locked<RateLimiter>, _ peer: String, _ message: String
  ) -> AdministrationRefusal? {
    let now = ticks()
    switch limiter.withLock({ $0.ask(peer, at: now) }) {
    case .allowed: return nil
    case .limited(let milliseconds): return .limited(message, retryAfter: milliseconds)
    }
  }
}
