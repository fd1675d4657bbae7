import SslPinningPlatform
import Testing

@Suite("A wait over a device's sleep")
struct ContinuousWaitTests {
  /// A device whose own waits stand still while it sleeps.
  private final class Device: Sendable {
    /// What passed, in seconds: by the wall, by the steady clock, awake.
    let passed = Locked((wall: 0.0, steady: 0.0, awake: 0.0))
    let naps = Locked([Double]())

    var clocks: ContinuousWait {
      ContinuousWait(
        wall: { 1_800_000_000 + Int64(self.passed.withLock { $0.wall }) },
        steady: { 1000 + Int64(self.passed.withLock { $0.steady }) })
    }

    /// Naps, and sleeps before the nap of this number ends.
    func nap(
      _ seconds: Double, asleepIn nap: Int = .max, wall: Double = 0, steady: Double = 0
    ) {
      let isAsleep = naps.withLock { naps in
        naps.append(seconds)
        return naps.count == nap
      }
      passed.withLock {
        $0.awake += seconds
        $0.wall += seconds + (isAsleep ? wall : 0)
        $0.steady += seconds + (isAsleep ? steady : 0)
      }
    }
  }

  @Test("awake it takes as long as it should, in naps")
  func awake() async throws {
    let device = Device()
    try await device.clocks.wait(100) { device.nap($0) }
    #expect(device.passed.withLock { $0.awake } == 100)
    #expect(device.naps.withLock { $0.max() } == ContinuousWait.longestNap)
  }

  @Test(
    "a night asleep counts by whichever clock saw it: it is over with the nap that the night was in",
    arguments: [(30_000.0, 30_000.0), (30_000, 0), (0, 30_000)])
  func asleep(wall: Double, steady: Double) async throws {
    let device = Device()
    try await device.clocks.wait(3600) {
      device.nap($0, asleepIn: 3, wall: wall, steady: steady)
    }
    #expect(device.naps.withLock { $0.count } == 3)
  }

  @Test("the time of a request may be longer than a day")
  func longerThanADay() async throws {
    let device = Device()
    try await device.clocks.waitOut(200_000) { device.nap($0) }
    #expect(device.passed.withLock { $0.awake } == 200_000)
    try await device.clocks.waitOut(-1) { _ in Issue.record("waits") }
  }

  @Test("a clock that is set back makes no wait longer, and what is no number is a day")
  func odd() async throws {
    let device = Device()
    try await device.clocks.wait(100) { device.nap($0, asleepIn: 1, wall: -1e6) }
    #expect(device.passed.withLock { $0.awake } == 100)
    for seconds in [Double.nan, .infinity, 1e30] {
      let device = Device()
      try await device.clocks.wait(seconds) { device.nap($0) }
      #expect(device.passed.withLock { $0.awake } == 86_400)
    }
    for seconds in [0, -1, -Double.infinity] {
      try await device.clocks.wait(seconds) { _ in Issue.record("waits") }
    }
  }
}
