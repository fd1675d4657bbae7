import Testing

@testable import RegistryCore
@testable import RegistryServer

@Suite("The time that the server goes by") struct SteadyTimeTests {
  /// A stretch of time in which the machine's clock is wrong by so much.
  struct Stretch: Sendable {
    var seconds: Int64
    /// Seconds by which the clock is ahead.
    var error: Int64 = 0
    /// Seconds that it gains in a thousand, on top of that.
    var drift: Int64 = 0
    var isKept = false
    /// Seconds from one reading to the next.
    var step: Int64 = 60
  }

  struct Scenario: Sendable, CustomTestStringConvertible {
    let name: String
    let stretches: [Stretch]
    var changes: [String] = []
    /// How far the time is ahead in the end, in seconds, and how far it was off at most.
    var error: Int64 = 0
    var worst: Int64 = 0
    var testDescription: String { name }
  }

  static let day: Int64 = 86_400
  static let hour: Int64 = 3600
  private static let start: Int64 = 1_780_000_000

  static let scenarios: [Scenario] = [
    Scenario(name: "a clock that is right", stretches: [Stretch(seconds: day)]),
    Scenario(
      name: "20 days ahead for 6 seconds, and back",
      stretches: [
        Stretch(seconds: hour), Stretch(seconds: 6, error: 20 * day, step: 2),
        Stretch(seconds: day),
      ], changes: ["doubted", "returned"]),
    Scenario(
      name: "two hours ahead for good, and nobody keeps the clock",
      stretches: [Stretch(seconds: hour), Stretch(seconds: day, error: 2 * hour)],
      changes: ["doubted"]),
    Scenario(
      name: "two hours ahead for good, by the time daemon",
      stretches: [
        Stretch(seconds: hour, isKept: true), Stretch(seconds: 700, error: 2 * hour, isKept: true),
      ], changes: ["doubted", "adopted"], error: 2 * hour, worst: 2 * hour),
    Scenario(
      name: "two hours ahead by the time daemon, for less than ten minutes",
      stretches: [
        Stretch(seconds: hour, isKept: true), Stretch(seconds: 590, error: 2 * hour, isKept: true),
      ], changes: ["doubted"]),
    Scenario(
      name: "ten minutes have to agree, also under the time daemon",
      stretches: [Stretch(seconds: hour)]
        + (0..<20).map { Stretch(seconds: 300, error: (2 + $0 % 2) * hour, isKept: true) },
      changes: ["doubted"]),
    Scenario(
      name: "a day behind at first, then put right by the time daemon",
      stretches: [
        Stretch(seconds: hour, error: -day), Stretch(seconds: 1200, isKept: true),
      ], changes: ["doubted", "adopted"], error: 0, worst: day),
    Scenario(
      name: "drift of a thousandth for 90 days is followed",
      stretches: [Stretch(seconds: 90 * day, drift: 1, step: 600)], error: 7776, worst: 7776),
    Scenario(
      name: "three days asleep",
      stretches: [Stretch(seconds: hour), Stretch(seconds: 3 * day, step: 3 * day)]),
    Scenario(
      name: "an hour of daylight saving on a clock that keeps local time",
      stretches: [Stretch(seconds: hour), Stretch(seconds: day, error: hour)], error: hour,
      worst: hour),
    Scenario(
      name: "a leap second", stretches: [Stretch(seconds: hour), Stretch(seconds: day, error: -1)],
      error: -1, worst: 1),
    Scenario(
      name: "small steps that add up",
      stretches: (0..<6).map { Stretch(seconds: 120, error: $0 * 50 * 60) },
      changes: ["doubted"], error: 50 * 60, worst: 50 * 60),
    Scenario(
      name: "small steps with time between them are followed",
      stretches: (0..<6).map { Stretch(seconds: day, error: $0 * 50 * 60) },
      error: 5 * 50 * 60, worst: 5 * 50 * 60),
    Scenario(
      name: "to and fro",
      stretches: (0..<6).map { Stretch(seconds: 120, error: $0 % 2 * 400 * day) },
      changes: ["doubted", "returned", "doubted", "returned", "doubted"]),
    Scenario(
      name: "from one wrong time to another, and back",
      stretches: [0, 20 * day, -400 * day, 3 * hour, 0].map { Stretch(seconds: 120, error: $0) },
      changes: ["doubted", "returned"]),
  ]

  @Test("follows a clock and not its jumps", arguments: scenarios)
  func follows(_ scenario: Scenario) throws {
    let first = try #require(scenario.stretches.first)
    var (passed, drifted): (Int64, Int64) = (0, 0)
    func reading(_ stretch: Stretch) -> ClockReading {
      ClockReading(
        wall: Self.start + passed + drifted / 1000 + stretch.error, elapsed: 77 + passed,
        isSynchronized: stretch.isKept)
    }
    var time = SteadyTime(reading(first))
    var (changes, error, worst): ([String], Int64, Int64) = ([], 0, 0)
    for stretch in scenario.stretches {
      for _ in 0..<(stretch.seconds / stretch.step) {
        passed += stretch.step
        drifted += stretch.step * stretch.drift
        let reading = reading(stretch)
        if let change = time.enter(reading) { changes.append(Self.name(change)) }
        error = time.time(at: reading) - Self.start - passed
        worst = max(worst, abs(error))
      }
    }
    #expect(changes == scenario.changes)
    #expect((error, worst) == (scenario.error, scenario.worst))
    #expect(time.isBelieved == (changes.last != "doubted"))
  }

  private static func name(_ change: SteadyTime.Change) -> String {
    switch change {
    case .doubted: "doubted"
    case .returned: "returned"
    case .adopted: "adopted"
    }
  }

  @Test("readings that arrive out of order change nothing")
  func order() {
    var time = SteadyTime(ClockReading(wall: Self.start, elapsed: 0, isSynchronized: false))
    for elapsed: Int64 in [100, 40, 101, 3, 100] {
      let reading = ClockReading(
        wall: Self.start + elapsed, elapsed: elapsed, isSynchronized: false)
      #expect(time.enter(reading) == nil)
      #expect(time.time(at: reading) == Self.start + elapsed)
    }
    // Nor while the clock is doubted: an older reading is answered with an older time.
    for elapsed: Int64 in [200, 110, 201] {
      let reading = ClockReading(
        wall: Self.start + elapsed + Self.day, elapsed: elapsed, isSynchronized: true)
      _ = time.enter(reading)
      #expect(time.time(at: reading) == Self.start + elapsed && !time.isBelieved)
    }
  }

  @Test("a person adopts what is doubted, until it jumps again")
  func person() {
    func at(_ elapsed: Int64, ahead: Int64) -> ClockReading {
      ClockReading(
        wall: Self.start + elapsed + ahead, elapsed: elapsed, isSynchronized: false)
    }
    var time = SteadyTime(at(0, ahead: 0))
    #expect(time.adopt(at(1, ahead: 0)) == nil)
    _ = time.enter(at(2, ahead: Self.day))
    #expect(!time.isConfirmed(at: at(2, ahead: Self.day)))
    #expect(
      time.adopt(at(3, ahead: Self.day))
        == .adopted(time: Self.start + 3 + Self.day, before: Self.start + 3))
    #expect(time.enter(at(4, ahead: Self.day)) == nil)
    #expect(time.isConfirmed(at: at(4, ahead: Self.day)))
    _ = time.enter(at(5, ahead: 0))
    _ = time.enter(at(6, ahead: Self.day))
    #expect(time.isBelieved && !time.isConfirmed(at: at(6, ahead: Self.day)))
  }

  @Test("a clock is confirmed once the kernel has called it synchronised for ten minutes")
  func confirmed() {
    func at(_ elapsed: Int64, _ isKept: Bool = true) -> ClockReading {
      ClockReading(wall: Self.start + elapsed, elapsed: elapsed, isSynchronized: isKept)
    }
    let time = SteadyTime(at(0))
    #expect(!time.isConfirmed(at: at(599)))
    #expect(time.isConfirmed(at: at(600)))
    #expect(!time.isConfirmed(at: at(600, false)))
  }

  @Test(
    "at the start a clock is measured by the newest statement",
    arguments: [
      // Seconds from the newest statement to the clock; whether the kernel vouches; whether it is believed.
      (0, false, true), (-3600, false, true), (-3601, false, false), (-400 * day, false, false),
      (-400 * day, true, true), (30 * day, false, true), (90 * day, false, true),
      (90 * day + 1, false, false), (400 * day, true, true),
    ] as [(Int64, Bool, Bool)])
  func start(_ ahead: Int64, _ isKept: Bool, _ isBelieved: Bool) {
    let reading = ClockReading(
      wall: Self.start + ahead, elapsed: 9, isSynchronized: isKept)
    var time = SteadyTime(reading)
    let change = time.begin(after: Self.start, life: 90 * Self.day, at: reading)
    #expect((change == nil) == isBelieved && time.isBelieved == isBelieved)
    #expect(time.time(at: reading) == Self.start + (isBelieved ? ahead : 0))
    var fresh = SteadyTime(reading)
    #expect(fresh.begin(after: nil, life: 90 * Self.day, at: reading) == nil)
  }
}
