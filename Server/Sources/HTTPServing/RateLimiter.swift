/// Limits how often each address may do something: a token bucket per address.
///
/// - A value without a clock: the time comes with each question, in milliseconds of any clock that
///   only goes forward. A clock that goes back gives nobody a token.
/// - Bounded: where the table is full of addresses that are being limited, new ones share a single
///   bucket. So whoever has many addresses cannot push anybody's bucket out and start afresh.
/// - An IPv6 client has at least a /64 to itself, so that is what counts. What is no address counts
///   as it is written.
package struct RateLimiter: Sendable {
  package enum Verdict: Sendable, Equatable {
    case allowed
    /// There is a token again after so many milliseconds.
    case limited(retryAfter: Int64)
  }

  private let burst: Int64
  private let interval: Int64
  private let capacity: Int
  /// When each address's bucket is full again. One that is full says nothing and is forgotten.
  private var full: [[UInt8]: Int64] = [:]
  private var shared: Int64 = .min
  private var swept: Int64 = .min

  /// - Parameters:
  ///   - burst: how often at once, 1 at least.
  ///   - interval: milliseconds in which one token comes back, 1 at least.
  ///   - capacity: how many addresses are told apart.
  package init(burst: Int, interval: Int64, capacity: Int = 10_000) {
    self.burst = Int64(max(burst, 1))
    self.interval = max(interval, 1)
    self.capacity = max(capacity, 1)
  }

  /// Takes a token of this address, where it has one.
  package mutating func ask(_ address: String, at now: Int64) -> Verdict {
    let key = ClientAddress.bucket(address)
    if let time = full[key] {
      let (verdict, time) = take(full: time, at: now)
      full[key] = time
      return verdict
    }
    if full.count >= capacity { sweep(at: now) }
    guard full.count < capacity else {
      let (verdict, time) = take(full: shared, at: now)
      shared = time
      return verdict
    }
    let (verdict, time) = take(full: .min, at: now)
    full[key] = time
    return verdict
  }

  /// How many addresses are remembered.
  var count: Int { full.count }

  private func take(full time: Int64, at now: Int64) -> (Verdict, full: Int64) {
    let after = max(time, now) + interval
    let excess = after - now - burst * interval
    return excess <= 0 ? (.allowed, after) : (.limited(retryAfter: excess), time)
  }

  /// Forgets full buckets; once an interval at most, since it looks at all of them.
  private mutating func sweep(at now: Int64) {
    guard swept == .min || now >= swept + interval else { return }
    swept = now
    full = full.filter { $0.value > now }
  }
}
