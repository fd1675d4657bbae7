import Testing

@testable import HTTPServing
@testable import RegistryServer

@Suite("A rate limit per address") struct RateLimiterTests {
  /// What so many questions of one address get, all at the same time.
  private static func ask(
    _ limiter: inout RateLimiter, _ address: String, _ times: Int, at now: Int64
  ) -> [RateLimiter.Verdict] { (0..<times).map { _ in limiter.ask(address, at: now) } }

  @Test("gives a burst at once, then one token an interval")
  func burst() {
    var limiter = RateLimiter(burst: 3, interval: 100)
    #expect(
      Self.ask(&limiter, "a", 5, at: 1000) == [
        .allowed, .allowed, .allowed, .limited(retryAfter: 100), .limited(retryAfter: 100),
      ])
    #expect(limiter.ask("a", at: 1099) == .limited(retryAfter: 1))
    #expect(limiter.ask("a", at: 1100) == .allowed)
    #expect(limiter.ask("a", at: 1100) == .limited(retryAfter: 100))
    #expect(
      Self.ask(&limiter, "a", 3, at: 1300) == [.allowed, .allowed, .limited(retryAfter: 100)])
  }

  @Test("never holds more than the burst, however long nobody asks")
  func refill() {
    var limiter = RateLimiter(burst: 2, interval: 10)
    #expect(Self.ask(&limiter, "a", 2, at: 0) == [.allowed, .allowed])
    #expect(
      Self.ask(&limiter, "a", 3, at: .max / 4) == [
        .allowed, .allowed, .limited(retryAfter: 10),
      ])
  }

  @Test("a refusal costs nothing, so who waits as told is served")
  func refusal() {
    var limiter = RateLimiter(burst: 1, interval: 50)
    #expect(limiter.ask("a", at: 0) == .allowed)
    for now in 1..<50 {
      #expect(limiter.ask("a", at: Int64(now)) == .limited(retryAfter: 50 - Int64(now)))
    }
    #expect(limiter.ask("a", at: 50) == .allowed)
  }

  @Test("a clock that goes back gives nobody a token")
  func clock() {
    var limiter = RateLimiter(burst: 1, interval: 50)
    #expect(limiter.ask("a", at: 1000) == .allowed)
    #expect(limiter.ask("a", at: 0) == .limited(retryAfter: 1050))
    #expect(limiter.ask("a", at: 1050) == .allowed)
  }

  @Test(
    "addresses are told apart as networks hand them out",
    arguments: [
      ("192.0.2.1", "192.0.2.2", false), ("192.0.2.1", "192.0.2.1", true),
      ("2001:db8::1", "2001:db8::2", true), ("2001:db8::1", "2001:db8:0:0:ffff::1", true),
      ("2001:db8::1", "2001:db8:0:1::1", false), ("2001:DB8::1", "2001:db8::1", true),
      ("192.0.2.1", "2001:db8::1", false), ("::ffff:192.0.2.1", "192.0.2.1", true),
      ("::ffff:192.0.2.1", "::ffff:192.0.2.2", false), ("", "192.0.2.1", false), ("x", "x", true),
      ("x", "y", false),
    ])
  func addresses(_ one: String, _ other: String, _ isSame: Bool) {
    var limiter = RateLimiter(burst: 1, interval: 50)
    #expect(limiter.ask(one, at: 0) == .allowed)
    #expect(limiter.ask(other, at: 0) == (isSame ? .limited(retryAfter: 50) : .allowed))
  }

  @Test("many addresses neither fill the memory nor push anybody's bucket out")
  func bounded() {
    var limiter = RateLimiter(burst: 2, interval: 1000, capacity: 100)
    #expect(Self.ask(&limiter, "victim", 2, at: 0) == [.allowed, .allowed])
    var allowed = 0
    for number in 0..<10_000
    where limiter.ask("10.0.\(number / 250).\(number % 250)", at: 0) == .allowed { allowed += 1 }
    #expect(limiter.count == 100)
    // 99 with a bucket of their own, and two tokens for all the others.
    #expect(allowed == 101)
    #expect(limiter.ask("victim", at: 0) == .limited(retryAfter: 1000))
    #expect(limiter.ask("10.99.0.1", at: 0) == .limited(retryAfter: 1000))
  }

  @Test("full buckets make room again")
  func forgets() {
    var limiter = RateLimiter(burst: 1, interval: 1000, capacity: 10)
    for number in 0..<10 { #expect(limiter.ask("192.0.2.\(number)", at: 0) == .allowed) }
    #expect(limiter.ask("198.51.100.1", at: 1) == .allowed)
    #expect(limiter.ask("198.51.100.2", at: 1) == .limited(retryAfter: 1000))
    #expect(limiter.ask("198.51.100.2", at: 1001) == .allowed)
    #expect(limiter.count == 1)
    #expect(limiter.ask("192.0.2.0", at: 1001) == .allowed)
  }

  @Test("settings below one are one")
  func settings() {
    var limiter = RateLimiter(burst: 0, interval: 0, capacity: 0)
    #expect(limiter.ask("a", at: 0) == .allowed)
    #expect(limiter.ask("a", at: 0) == .limited(retryAfter: 1))
    #expect(limiter.ask("a", at: 1) == .allowed)
  }
}
