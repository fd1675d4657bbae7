import Testing

@testable import RegistryCore
@testable import RegistryServer

@Suite("Which endpoint is probed next")
struct ProbeScheduleTests {
  /// 55 s: what is left of an interval of a minute.
  private static let pause: Int64 = 55_000

  private func simulation(
    _ count: Int, _ settings: ProbeSchedule.Settings = ProbeSchedule.Settings(), seed: UInt64 = 1,
    _ behaviour: @escaping ScheduleSimulation.Behaviour = { _, _ in (100, .onSchedule) }
  ) -> ScheduleSimulation {
    var simulation = ScheduleSimulation(settings, seed: seed, behaviour)
    for index in 0..<count { simulation.schedule.set("e\(index)", pause: Self.pause, at: 0) }
    return simulation
  }

  @Test("the first round begins at once, in no order of its own, as fast as the limit allows")
  func firstRound() {
    var simulation = simulation(10_000)
    simulation.run(until: 0)
    #expect(simulation.order.count == 256)
    #expect(simulation.order.map(\.id) != (0..<256).map { "e\($0)" })
    // 40 times 256 probes of 100 ms each.
    simulation.run(until: 4000)
    #expect(simulation.starts.count == 10_000)
    // Few come a second time before the last came once: those whose part of the pause is short.
    #expect(simulation.order.count < 10_500)
    #expect(simulation.mostUnderWay == 256)
  }

  @Test("from the second round on probes are spread over the pause, and none is late")
  func spread() {
    var simulation = simulation(2000, ProbeSchedule.Settings(limit: 64))
    simulation.run(until: 6 * Self.pause)
    for id in simulation.starts.keys {
      #expect((simulation.gaps(id).max() ?? .max) <= Self.pause)
      #expect((simulation.gaps(id).dropFirst().min() ?? 0) >= Self.pause * 9 / 10)
    }
    let seconds = 2 * Self.pause / 1000..<6 * Self.pause / 1000
    var perSecond = Dictionary(uniqueKeysWithValues: seconds.map { ($0, 0) })
    for (time, _) in simulation.order { perSecond[time / 1000]? += 1 }
    // 38 on average.
    #expect((perSecond.values.max() ?? .max) < 90)
    #expect((perSecond.values.min() ?? 0) > 8)
  }

  @Test("what waits for confirmation is probed again an interval later, before all others")
  func quickRepeats() {
    var settings = ProbeSchedule.Settings(limit: 4)
    settings.confirmationInterval = 2000
    var probes = 0
    var simulation = simulation(1000, settings) { id, _ in
      guard id == "e7" else { return (100, .onSchedule) }
      probes += 1
      return (100, probes < 3 ? .soon : .onSchedule)
    }
    // The first round takes 25 s: the repeats do not wait for its end.
    simulation.run(until: 2 * Self.pause)
    let gaps = simulation.gaps("e7")
    #expect(gaps[0] == 2000)
    #expect(gaps[1] == 2000)
    #expect(gaps[2] > 10_000)
  }

  @Test(
    "an endpoint that shows another key every time gets no more than its quick repeats in a row")
  func flapping() {
    var simulation = simulation(1, ProbeSchedule.Settings(quickRepeats: 11)) { _, _ in (0, .soon) }
    simulation.run(until: 10 * Self.pause)
    let gaps = simulation.gaps("e0")
    #expect(gaps.prefix(11).allSatisfy { $0 == 2000 })
    #expect(gaps[11] >= 10_000)
    #expect(gaps[12...22].allSatisfy { $0 == 2000 })
    #expect(gaps[23] >= Self.pause * 9 / 10)
  }

  /// The longest time from a change right after a probe began to the end of the third probe that shows it.
  ///
  /// - Parameter quiet: how many probes show nothing new before each change.
  private func longestChange(
    after quiet: Int = 1, _ taking: @escaping (_ now: Int64) -> Int64
  ) -> Int64 {
    var (change, shown, longest): (Int64?, Int, Int64) = (nil, 0, 0)
    var unchanged = 0
    var simulation = simulation(1) { _, now in
      let duration = taking(now)
      guard let since = change else {
        unchanged += 1
        if unchanged % quiet == 0 { change = now }
        return (duration, .onSchedule)
      }
      shown += 1
      guard shown == 3 else { return (duration, .soon) }
      longest = max(longest, now + duration - since)
      (change, shown) = (nil, 0)
      return (duration, .onSchedule)
    }
    simulation.run(until: 1000 * Self.pause)
    return longest
  }

  @Test(
    "a change is confirmed within the interval where an address does not answer, too",
    arguments: [100, 1000, 1500, 3000, 5000])
  func slowPlaces(_ taking: Int64) {
    #expect((57_000...60_000).contains(longestChange { _ in taking }))
  }

  @Test("and where a vantage point does not, which is waited for once a minute", arguments: 1...3)
  func silentPoint(_ quiet: Int) {
    var last: Int64 = -60_000
    let longest = longestChange(after: quiet) { now in
      guard now - last >= 60_000 else { return 1000 }
      last = now
      return 5000
    }
    #expect(longest <= 60_000)
  }

  @Test(
    "endpoints that keep their interval leave half of the places free, and those that cannot use them all",
    arguments: [
      (1000, 100, false), (10_000, 100, false), (1000, 5000, false), (5000, 5000, true),
    ] as [(Int, Int64, Bool)])
  func slowPoint(count: Int, taking: Int64, isLate: Bool) {
    var simulation = simulation(count) { _, _ in (taking, .onSchedule) }
    simulation.run(until: 8 * 60_000)
    let begun = simulation.order.filter { $0.time >= 4 * 60_000 }.count
    // What `SslPinningProbesLate` goes by: the seconds that probes take in a second.
    let underWay = Int64(begun) * taking / (4 * 60_000)
    let longest = simulation.starts.keys.flatMap { simulation.gaps($0).dropFirst() }.max() ?? 0
    #expect((underWay > 128) == isLate)
    #expect((longest > Self.pause) == isLate)
    #expect(longest <= 105_000)
  }

  @Test("however long its probes take, an endpoint is probed at most twice as often")
  func slowest() {
    var simulation = simulation(1) { _, _ in (20_000, .onSchedule) }
    simulation.run(until: 20 * Self.pause)
    #expect(simulation.gaps("e0").dropFirst().allSatisfy { $0 >= Self.pause / 2 * 9 / 10 })
  }

  @Test("an endpoint that fails keeps its pause: it may come back with another key")
  func failing() {
    let recovery: Int64 = 40 * 60_000
    var simulation = simulation(1) { _, now in
      now < recovery ? (5000, .failed) : (100, .onSchedule)
    }
    simulation.run(until: 80 * 60_000)
    #expect(simulation.gaps("e0").allSatisfy { (Self.pause * 9 / 10...Self.pause).contains($0) })
  }

  @Test("and if its probes took long, the shorter one: they will when it is back")
  func failingAfterSlow() {
    var simulation = simulation(1) { _, now in
      now < 10 * 60_000 ? (5000, .onSchedule) : (100, .failed)
    }
    simulation.run(until: 30 * 60_000)
    #expect(simulation.gaps("e0").suffix(9).allSatisfy { $0 < Self.pause * 9 / 10 })
  }

  @Test("a thousand endpoints that time out keep nobody waiting who answers", arguments: 1...2)
  func starvation(seed: UInt64) {
    // Each takes all its time, every time.
    func isDead(_ id: String) -> Bool { (Int(id.dropFirst()) ?? 0) < 1000 }
    var simulation = simulation(2000, seed: seed) { id, _ in
      isDead(id) ? (5000, .failed) : (100, .onSchedule)
    }
    simulation.run(until: 21 * 60_000)
    var latest: Int64 = 0
    for (id, starts) in simulation.starts where !isDead(id) {
      latest = max(latest, starts.first ?? .max)
      #expect((simulation.gaps(id).max() ?? .max) <= Self.pause + 1000)
    }
    // A thousand times five seconds on 256 places, and nobody before them on purpose.
    #expect(latest <= 25_000)
    // And those that fail are not forgotten.
    for index in 0..<1000 {
      // A thousand times five seconds on a quarter of the places.
      #expect((simulation.gaps("e\(index)").max() ?? .max) <= 120_000)
      #expect((simulation.starts["e\(index)"]?.count ?? 0) >= 12)
    }
  }

  @Test("endpoints that fail take no more than their part of the places")
  func failingLimit() {
    let settings = ProbeSchedule.Settings(limit: 8, failingLimit: 2)
    var simulation = ScheduleSimulation(settings) { id, _ in
      id.hasPrefix("dead") ? (60_000, .failed) : (10, .onSchedule)
    }
    for index in 0..<100 { simulation.schedule.set("dead\(index)", pause: 1000, at: 0) }
    simulation.run(until: 13 * 60_000)
    simulation.schedule.set("live", pause: 1000, at: simulation.now)
    simulation.run(until: 30 * 60_000)
    #expect(simulation.gaps("live").allSatisfy { $0 <= 1000 })
    #expect((simulation.starts["live"]?.count ?? 0) > 900)
    // Two at a time for 17 minutes.
    let late = simulation.order.filter { $0.time > 13 * 60_000 && $0.id != "live" }
    #expect((20...50).contains(late.count))
  }

  @Test("who waited longest comes first, where there is more to do than can be done")
  func fairness() {
    // 100 endpoints of which 10 a second are wanted, and 2 a second can be made.
    var simulation = ScheduleSimulation(ProbeSchedule.Settings(limit: 1)) { _, _ in
      (500, .onSchedule)
    }
    for index in 0..<100 { simulation.schedule.set("e\(index)", pause: 10_000, at: 0) }
    simulation.run(until: 1_000_000)
    let counts = simulation.starts.values.map(\.count)
    #expect(simulation.starts.count == 100)
    #expect((counts.max() ?? 0) - (counts.min() ?? 0) <= 2)
  }

  @Test("what somebody asks for comes at once; while a probe is under way, after it")
  func askedFor() {
    var simulation = simulation(1000, ProbeSchedule.Settings(limit: 1)) { _, _ in
      (1000, .onSchedule)
    }
    simulation.run(until: 10_500)
    let running = simulation.order.last?.id ?? ""
    let other = (0..<1000).map { "e\($0)" }.first { simulation.starts[$0] == nil } ?? ""
    simulation.schedule.probeNow(other, at: simulation.now)
    simulation.schedule.probeNow(running, at: simulation.now)
    simulation.run(until: 12_500)
    #expect(simulation.order.suffix(2).map(\.id).sorted() == [other, running].sorted())
    #expect(simulation.starts[running]?.count == 2)
    simulation.schedule.probeNow("nobody", at: simulation.now)
  }

  @Test("an endpoint that is removed is probed no more, and its place is free")
  func removal() {
    var simulation = simulation(2, ProbeSchedule.Settings(limit: 1)) { _, _ in (1000, .onSchedule) }
    simulation.run(until: 500)
    let running = simulation.order.last?.id ?? ""
    simulation.schedule.remove(running)
    #expect(simulation.schedule.underWay == 0)
    simulation.run(until: 10 * Self.pause)
    #expect(simulation.starts[running]?.count == 1)
    #expect(simulation.schedule.underWay == 0)
    #expect(simulation.schedule.ids == [running == "e0" ? "e1" : "e0"])
  }

  @Test("a probe that began before its endpoint was removed and added again ends nothing")
  func comeback() {
    var schedule = ProbeSchedule(ProbeSchedule.Settings(), random: SeededRandom(1))
    schedule.set("a", pause: 1000, at: 0)
    guard let old = schedule.next(at: 0) else {
      Issue.record("nothing is due")
      return
    }
    schedule.remove("a")
    schedule.set("a", pause: 1000, at: 10)
    let new = schedule.next(at: 10)
    schedule.finish(old, .never, at: 20)
    #expect(schedule.underWay == 1)
    #expect(schedule.ids == ["a"])
    if let new { schedule.finish(new, .onSchedule, at: 30) }
    #expect(schedule.underWay == 0)
    #expect(schedule.nextDue() != nil)
  }

  @Test("an endpoint whose decision says never is gone")
  func never() {
    var simulation = simulation(1) { _, now in (0, now > 100_000 ? .never : .onSchedule) }
    simulation.run(until: 10 * Self.pause)
    #expect(simulation.schedule.ids.isEmpty)
    #expect(simulation.schedule.nextDue() == nil)
    #expect((simulation.starts["e0"]?.count ?? 0) <= 5)
  }

  @Test("a paused endpoint is probed only where somebody asks, and goes on where it is resumed")
  func paused() {
    var simulation = simulation(1)
    simulation.run(until: 1000)
    simulation.schedule.set("e0", pause: Self.pause, isPaused: true, at: 1000)
    simulation.run(until: 10 * Self.pause)
    #expect(simulation.starts["e0"] == [0])
    simulation.schedule.probeNow("e0", at: simulation.now)
    simulation.run(until: 20 * Self.pause)
    #expect(simulation.starts["e0"] == [0, 10 * Self.pause])
    simulation.schedule.set("e0", pause: Self.pause, isPaused: false, at: simulation.now)
    simulation.run(until: 25 * Self.pause)
    #expect(simulation.starts["e0"]?[2] == 20 * Self.pause)
    #expect((simulation.starts["e0"]?.count ?? 0) >= 7)
  }

  @Test("pausing an endpoint while it is probed counts from the end of that probe")
  func pausedUnderWay() {
    var simulation = simulation(1)
    simulation.run(until: 0)
    simulation.schedule.set("e0", pause: Self.pause, isPaused: true, at: 0)
    simulation.run(until: 10 * Self.pause)
    #expect(simulation.starts["e0"] == [0])
  }

  @Test("another interval counts from the last probe")
  func otherInterval() {
    var simulation = simulation(1)
    simulation.run(until: 3 * Self.pause)
    let last = simulation.starts["e0"]?.last ?? 0
    simulation.schedule.set("e0", pause: 600_000, at: simulation.now)
    simulation.run(until: last + 1_000_000)
    #expect((540_000...600_000).contains(simulation.gaps("e0").last ?? 0))
    simulation.schedule.set("e0", pause: 10_000, at: simulation.now)
    let now = simulation.now
    simulation.run(until: now + 100_000)
    #expect(simulation.starts["e0"]?.contains(now) == true)
    #expect((simulation.gaps("e0").last ?? .max) <= 10_000)
  }

  @Test("probes that are given up make no endpoint wait for its pause")
  func abandoned() {
    var simulation = simulation(100, ProbeSchedule.Settings(limit: 10)) { _, _ in
      (1_000_000, .onSchedule)
    }
    simulation.run(until: 100)
    #expect(simulation.schedule.underWay == 10)
    simulation.schedule.abandon(at: 100)
    #expect(simulation.schedule.underWay == 0)
    #expect(simulation.schedule.nextDue() ?? .max <= 100)
    simulation.run(until: 200)
    #expect(simulation.schedule.underWay == 10)
  }

  @Test("what is planned again and again fills no memory")
  func bounded() {
    var schedule = ProbeSchedule(ProbeSchedule.Settings(limit: 1), random: SeededRandom(1))
    for index in 0..<10 { schedule.set("e\(index)", pause: 1000, at: 0) }
    for round in 0..<10_000 as Range<Int64> {
      schedule.set("e\(round % 10)", pause: 1000 + round, at: 0)
      schedule.probeNow("e\(round % 10)", at: 0)
    }
    #expect(schedule.places < 1000)
  }
}
