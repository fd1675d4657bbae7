import Testing

@testable import ssl_pinning_lab

@Suite("Who led when")
struct LeaderTimelineTests {
  private let start = ContinuousClock.now

  private func timeline(_ events: [(LeaderTimeline.Event, Int, Int)]) -> LeaderTimeline {
    var timeline = LeaderTimeline()
    for (event, replica, time) in events {
      timeline.enter(event, of: replica, at: start + .seconds(time))
    }
    return timeline
  }

  @Test("shows one after the other")
  func inTurn() {
    let timeline = timeline([(.began, 0, 1), (.ended, 0, 5), (.began, 1, 5)])
    #expect(timeline.overlaps.isEmpty && timeline.leader == 1)
    #expect(timeline.beginning(after: start + .seconds(1))?.replica == 1)
    #expect(timeline.beginning(after: start + .seconds(5)) == nil)
    #expect(timeline.ends.map(\.replica) == [0])
    #expect(timeline.led(since: start + .seconds(4)) == [0, 1])
    #expect(timeline.led(since: start + .seconds(5)) == [1])
  }

  @Test("shows for how long two led at once")
  func atOnce() {
    let timeline = timeline([(.began, 0, 1), (.began, 1, 4), (.ended, 0, 6), (.ended, 1, 9)])
    #expect(timeline.overlaps == [.seconds(2)] && timeline.leaders.isEmpty)
  }

  @Test("ignores the end of what never began, such as a follower that was killed")
  func follower() {
    let timeline = timeline([(.began, 0, 1), (.ended, 1, 2)])
    #expect(timeline.overlaps.isEmpty && timeline.leader == 0 && timeline.ends.isEmpty)
  }

  @Test("has no leader where there are two")
  func two() {
    let timeline = timeline([(.began, 0, 1), (.began, 1, 2)])
    #expect(timeline.leader == nil && timeline.leaders == [0, 1])
  }
}
