import Testing

@testable import RegistryCore

@Suite("That nobody leads") struct LeaderSightTests {
  /// What each second brought: whether this server saw a leader.
  private static let spans: [(name: String, seconds: [(isSeen: Bool, count: Int)], begins: [Int])] =
    [
      ("beside a leader for a day", [(true, 86_400)], []),
      ("a fail-over of almost two minutes", [(true, 5), (false, 119), (true, 5)], []),
      ("one after the other", [(false, 120), (true, 1), (false, 119), (true, 1)], []),
      ("from the start", [(false, 300)], [120]),
      ("after a leader", [(true, 60), (false, 300)], [179]),
      ("twice", [(false, 200), (true, 1), (false, 200)], [120, 320]),
    ]

  @Test(
    "begins once nobody was seen to lead for two minutes on end, and ends with the next leader",
    arguments: spans.indices)
  func told(_ index: Int) {
    let span = Self.spans[index]
    var sight = LeaderSight(isLeading: false, at: 1000, elapsed: 0)
    var (second, isTold, begins): (Int64, Bool, [Int]) = (0, false, [])
    for (isSeen, count) in span.seconds {
      for _ in 0..<count {
        if isSeen {
          sight = LeaderSight(isLeading: false, at: 1000 + second, elapsed: second)
        } else {
          sight.reason = "why"
        }
        let isAbsent = sight.absence(elapsed: second) != nil
        if isAbsent, !isTold { begins.append(Int(second)) }
        isTold = isAbsent
        second += 1
      }
    }
    #expect(begins == span.begins && !(isTold && span.begins.isEmpty), "\(span.name)")
  }

  @Test(
    "says since when, and what the store says now; the machine's clock, which is set, decides nothing"
  )
  func absence() {
    var sight = LeaderSight(isLeading: false, at: 1000, elapsed: 7)
    #expect(sight.absence(elapsed: 126) == nil)
    let absence = sight.absence(elapsed: 127)
    #expect(absence?.since == 1000)
    #expect(absence?.message.hasSuffix(": no attempt to lead came to an end since") == true)
    #expect(absence?.isOfLeader == false && absence?.isRefusing == false)
    sight.reason = "it is away"
    #expect(sight.absence(elapsed: 128)?.message.hasSuffix(": it is away") == true)
  }

  @Test("is never said by a server that leads, however long it does not try to anew")
  func leading() {
    let sight = LeaderSight(isLeading: true, at: 1000, elapsed: 7)
    #expect(sight.absence(elapsed: 86_400) == nil)
  }
}
