import Testing

@testable import SslPinning

@Suite("When a registry is fetched without anybody asking")
struct RefreshScheduleTests {
  private func schedule(_ interval: Double = 3600, failures: Int = 0, retryAfter: Double? = nil)
    -> RefreshSchedule
  {
    var schedule = RefreshSchedule(interval: interval, at: 1000)
    for _ in 0..<failures { schedule.failed(retryAfter: retryAfter, at: 1000) }
    return schedule
  }

  @Test(
    "once per interval, a tenth earlier or later",
    arguments: [(0.0, 3240.0), (0.5, 3600.0), (1.0, 3960.0)])
  func jitter(random: Double, expected: Double) {
    #expect(abs(schedule().delay(at: 1000, random: random) - expected) < 0.001)
    #expect(abs(schedule().delay(at: 1600, random: random) - (expected - 600)) < 0.001)
  }

  @Test("the age of a registry that was at hand counts, however old it is")
  func age() {
    var young = schedule()
    young.begin(age: 600)
    #expect(young.delay(at: 1000, random: 0.5) == 3000)
    #expect(!young.isDue(at: 1000))
    var old = schedule()
    old.begin(age: .max)
    #expect(old.delay(at: 1000, random: 0.5) == 1)
    #expect(old.isDue(at: 1000))
  }

  @Test(
    "after failures later and later, up to the interval or an hour",
    arguments: [(1, 30.0), (2, 60), (3, 120), (7, 1920), (8, 3600), (60, 3600), (1000, 3600)])
  func backOff(failures: Int, longest: Double) {
    let schedule = schedule(120, failures: failures)
    #expect(schedule.delay(at: 5000, random: 0) == longest / 2)
    #expect(schedule.delay(at: 5000, random: 1) == longest)
    #expect(schedule.isDue(at: 1000))
    #expect(self.schedule(7200, failures: 1000).delay(at: 0, random: 1) == 7200)
  }

  @Test(
    "a time that the server names is kept, up to the interval or an hour",
    arguments: [
      (nil, 30.0), (0, 30), (-5, 30), (600, 600), (86_400, 3600), (1e300, 3600), (.nan, 30),
    ]
      as [(Double?, Double)])
  func retryAfter(asked: Double?, expected: Double) {
    #expect(schedule(failures: 1, retryAfter: asked).delay(at: 1000, random: 1) == expected)
    let rare = schedule(7200, failures: 1, retryAfter: asked)
    #expect(rare.delay(at: 1000, random: 1) == (expected == 3600 ? 7200 : expected))
    let weekly = schedule(7 * 86_400, failures: 1, retryAfter: asked)
    #expect(weekly.delay(at: 1000, random: 1) == (expected == 3600 ? 86_400 : expected))
  }

  @Test("a time that the server names is kept, whatever was waited for, and however others fail")
  func retryAfterMeanwhile() {
    var schedule = schedule(failures: 1)
    #expect(schedule.isDue(at: 1030))
    // A refused connection asks, and is told to come back in ten minutes; the next one finds no network.
    schedule.failed(retryAfter: 600, at: 1020)
    schedule.failed(at: 1025)
    #expect(!schedule.isDue(at: 1030) && !schedule.isDue(at: 1030, age: 86400))
    #expect(schedule.delay(at: 1030, random: 0) == 590)
    #expect(!schedule.isDue(at: 1619) && schedule.isDue(at: 1620))
    schedule.failed(retryAfter: 600, at: 1700)
    schedule.succeeded(at: 1710)
    #expect(!schedule.isDue(at: 1710) && schedule.isDue(at: 1710, age: 3600))
  }

  @Test("a success ends the back-off")
  func success() {
    var schedule = schedule(failures: 9, retryAfter: 7000)
    schedule.succeeded(at: 9000)
    #expect(schedule.delay(at: 9000, random: 0.5) == 3600)
    #expect(!schedule.isDue(at: 9000))
    #expect(schedule.isDue(at: 9000 + 3600))
  }

  @Test(
    "no interval is too short or too long to live with",
    arguments: [(0.0, 60.0), (-1, 60), (.nan, 60), (59, 60), (61, 61), (.infinity, 30 * 86400)])
  func bounds(interval: Double, expected: Double) {
    #expect(schedule(interval).delay(at: 1000, random: 0.5) == expected)
  }
}
