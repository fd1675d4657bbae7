import Testing

@testable import RegistryServer

@Suite("The errors of a document count up while it fails and end with their cause")
struct FailureStreakTests {
  private enum Step {
    case fails(String)
    case works(String)
    /// Seconds pass, and the value is then this.
    case after(Int64, UInt64)
  }

  private func run(_ steps: [Step]) {
    var streak = FailureStreak()
    var now: Int64 = 1_780_000_000
    for (index, step) in steps.enumerated() {
      switch step {
      case .fails(let endpoint): streak.failed(endpoint, at: now)
      case .works(let endpoint): streak.succeeded(endpoint)
      case .after(let seconds, let value):
        now += seconds
        #expect(streak.value(at: now) == value, "step \(index)")
      }
    }
  }

  @Test("nothing failed: 0")
  func quiet() { run([.after(0, 0), .works("a"), .after(0, 0), .after(1_000_000, 0)]) }

  @Test("one failed probe is told for two minutes, so that no scraper misses it, and then no more")
  func blip() {
    run([.fails("a"), .works("a"), .after(0, 1), .after(119, 1), .after(1, 0), .after(600, 0)])
  }

  @Test("an endpoint that stays down is told for as long as it is, however rarely it is probed")
  func down() {
    run([.fails("a"), .after(86_400, 1), .fails("a"), .after(1, 2), .works("a"), .after(0, 2)])
    run([.fails("a"), .after(86_400, 1), .works("a"), .after(0, 0)])
  }

  @Test("of two endpoints both must be well again")
  func two() {
    run([.fails("a"), .fails("b"), .after(200, 2), .works("b"), .after(1, 2), .works("a")])
    run([.fails("a"), .fails("b"), .works("b"), .after(200, 2), .works("a"), .after(0, 0)])
  }

  @Test("after an end it begins again at 1, as a counter does that was restarted")
  func again() {
    run([
      .fails("a"), .fails("a"), .fails("a"), .works("a"), .after(120, 0), .fails("a"), .after(0, 1),
    ])
  }

  @Test("failures within two minutes of the last go on counting")
  func flapping() {
    run([.fails("a"), .works("a"), .after(60, 1), .fails("a"), .works("a"), .after(60, 2)])
  }

  @Test("it never falls while anything fails, whatever the clock does")
  func clock() {
    run([.fails("a"), .after(-5000, 1), .fails("a"), .after(0, 2), .after(9000, 2)])
  }

  @Test("an endpoint that is watched no more fails no more")
  func removed() {
    var streak = FailureStreak()
    streak.failed("a", at: 1000)
    streak.keep(only: ["b"])
    #expect(streak.value(at: 1119) == 1)
    #expect(streak.value(at: 1120) == 0)
  }
}
