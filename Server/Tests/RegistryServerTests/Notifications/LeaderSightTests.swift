import Testing

@testable import RegistryCore

@Suite("That nobody leads") struct LeaderSightTests {
  /// What each second brought: whether this server saw a leader.
  private static let spans: [(name: String, seconds: [(isSeen: Bool, count: Int)], tells: [Int])] =
    [
      ("beside a leader for a day", [(true, 86_400)], []),
      ("a fail-over of two minutes", [(true, 5), (false, 120), (true, 5)], []),
      ("a fail-over each two minutes", [(false, 120), (true, 1), (false, 120), (true, 1)], []),
      ("from the start", [(false, 300)], [120]),
      ("after a leader", [(true, 60), (false, 300)], [180]),
      ("twice", [(false, 200), (true, 1), (false, 200)], [120, 321]),
    ]

  @Test(
    "is told once nobody was seen to lead for two minutes on end, once each time, and never beside a leader",
    arguments: spans.indices)
  func told(_ index: Int) {
    let span = Self.spans[index]
    var sight = LeaderSight()
    var (second, isTold, tells): (Int, Bool, [Int]) = (0, false, [])
    for (isSeen, count) in span.seconds {
      for _ in 0..<count {
        if isSeen {
          sight.sees()
          isTold = isTold || sight.absence != nil
        } else if sight.misses("why", at: 1000 + Int64(second), elapsed: Int64(second)) {
          tells.append(second)
        }
        second += 1
      }
    }
    #expect(tells == span.tells && !isTold, "\(span.name)")
  }

  @Test(
    "says since when, and what the store says now; the machine's clock, which is set, decides nothing"
  )
  func absence() {
    var sight = LeaderSight()
    let early = [
      sight.misses("first", at: 1000, elapsed: 7),
      sight.misses("a clock that is set", at: 9_000_000, elapsed: 8),
    ]
    #expect(early == [false, false] && sight.absence == nil)
    let late = [
      sight.misses("second", at: 5, elapsed: 127), sight.misses("third", at: 6, elapsed: 128),
    ]
    #expect(late == [true, false])
    #expect(sight.absence?.since == 1000)
    #expect(sight.absence?.message.hasSuffix(": third") == true)
    #expect(sight.absence?.isOfLeader == false && sight.absence?.isRefusing == false)
  }
}
