import SslPinningRules
import Testing

@testable import SslPinning

@Suite("How often mismatches may ask for newer pins")
struct RefreshLimiterTests {
  /// A refusal of a host whose leaf has this key, at this second.
  private struct Ask {
    var host = "a.example"
    var key: UInt8 = 1
    let second: Int64
  }

  /// What one limiter answers to these, one after another.
  private func answers(to asks: [Ask]) throws -> [Bool] {
    var limiter = RefreshLimiter()
    return try asks.map { ask in
      let leaf = try #require(SPKIPin(digest: [UInt8](repeating: ask.key, count: 32)))
      let refusal = PinEvaluation(
        host: ask.host, outcome: .mismatch(.leaf), decision: .refuse, presented: [leaf])
      return limiter.tryAcquire(for: refusal, at: ask.second)
    }
  }

  @Test("once per host and leaf key in ten seconds, and what is turned away puts nothing off")
  func interval() throws {
    let asks = [100, 100, 109, 110, 119, 120].map { Ask(second: $0) }
    #expect(try answers(to: asks) == [true, false, false, true, false, true])
  }

  @Test("an attack on one host starves neither another's rotation nor the host's own")
  func others() throws {
    let attacked = [Ask(second: 100), Ask(second: 101)]
    // The same key elsewhere, and the key that the attacked host's server itself has changed to.
    let rotated = [Ask(host: "b.example", second: 101), Ask(key: 2, second: 101)]
    #expect(try answers(to: attacked + rotated) == [true, false, true, true])
  }

  @Test("forgets what is over, and nothing of the last ten seconds, however many hosts there are")
  func bounded() throws {
    func all(at second: Int64) -> [Ask] {
      (0..<2000).map { Ask(host: "h\($0).example", second: second) }
    }
    let answers = try answers(to: all(at: 100) + all(at: 109) + all(at: 110))
    #expect(answers[..<2000].allSatisfy { $0 })
    #expect(answers[2000..<4000].allSatisfy { !$0 })
    #expect(answers[4000...].allSatisfy { $0 })
  }
}
