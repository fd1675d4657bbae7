import Foundation
import RegistryCore
import RegistryServer
import SslPinningPlatform
import SslPinningRules
import TestSupport
import Testing

/// Endpoints whose probes end when the test says so.
private final class GatedObserver: EndpointProber {
  private struct State {
    var isOpen = true
    var probes: [String] = []
    var underWay = 0
    var most = 0
    var waiting: [CheckedContinuation<Void, Never>] = []
  }

  private let state = Locked(State())

  var probes: [String] { state.withLock { $0.probes } }
  var underWay: Int { state.withLock { $0.underWay } }
  var most: Int { state.withLock { $0.most } }

  func close() { state.withLock { $0.isOpen = false } }

  func open() {
    let waiting = state.withLock { state in
      state.isOpen = true
      defer { state.waiting = [] }
      return state.waiting
    }
    for continuation in waiting { continuation.resume() }
  }

  func probe(_ endpoint: WatchedEndpoint) async -> ProbeResult {
    await withCheckedContinuation { continuation in
      let isOpen = state.withLock { state in
        state.probes.append("\(endpoint.fqdn)")
        state.underWay += 1
        state.most = max(state.most, state.underWay)
        if !state.isOpen { state.waiting.append(continuation) }
        return state.isOpen
      }
      if isOpen { continuation.resume() }
    }
    state.withLock { $0.underWay -= 1 }
    return .unreachable(reason: "nothing to see")
  }
}

/// Decides as the test says.
private final class ScriptedDecision: ProbeReceiver {
  private let script = Locked<[NextProbe]>([])
  private let entered = Locked(0)

  init(_ script: [NextProbe] = []) { self.script.withLock { $0 = script } }

  var probes: Int { entered.withLock { $0 } }

  func say(_ outcomes: [NextProbe]) { script.withLock { $0 = outcomes } }

  func enter(_ probe: ProbeResult) async -> NextProbe {
    entered.withLock { $0 += 1 }
    return script.withLock { $0.isEmpty ? .onSchedule : $0.removeFirst() }
  }
}

/// No jitter: what is random is as late as it may be.
private struct LatestRandom: RandomNumberGenerator {
  func next() -> UInt64 { .max }
}

@Suite("Endpoints are watched on time")
struct MonitorTests {
  private let observer = GatedObserver()
  private let clock = SteppedClock()
  private let first = Locked(0)
  private let monitor: Monitor

  init() {
    let first = self.first
    monitor = Monitor(
      observer: observer, clock: clock,
      settings: ProbeSchedule.Settings(limit: 4, confirmationInterval: 2000, quickRepeats: 5),
      random: LatestRandom()
    ) { first.withLock { $0 += 1 } }
  }

  private func target(
    _ name: String, pause: Int64 = 60_000, isPaused: Bool = false,
    _ decision: ScriptedDecision = ScriptedDecision()
  ) throws -> Monitor.Target {
    Monitor.Target(
      id: name, endpoint: WatchedEndpoint(fqdn: try HostName(name)), pause: pause,
      isPaused: isPaused, decision: decision)
  }

  private func running(_ body: () async throws -> Void) async throws {
    let task = Task { await monitor.run() }
    do {
      try await body()
      observer.open()
      task.cancel()
      await task.value
    } catch {
      observer.open()
      task.cancel()
      await task.value
      throw error
    }
  }

  @Test("all at once, but no more than the limit at a time; then each after its pause")
  func rounds() async throws {
    monitor.update(endpoints: try (0..<20).map { try target("h\($0).test") })
    observer.close()
    try await running {
      #expect(await eventually { observer.underWay == 4 })
      observer.open()
      try await clock.untilAtRest(monitor)
      #expect(Set(observer.probes).count == 20)
      #expect(observer.probes.count == 20)
      #expect(observer.most == 4)
      #expect(first.withLock { $0 } == 20)
      try await clock.advance(milliseconds: 59_000, monitor)
      #expect(observer.probes.count == 20)
      try await clock.advance(milliseconds: 1000, monitor)
      #expect(observer.probes.count == 40)
      #expect(first.withLock { $0 } == 20)
    }
  }

  @Test("a key that waits is probed again after the probe interval")
  func quickRepeats() async throws {
    let decision = ScriptedDecision([.soon, .soon, .onSchedule])
    monitor.update(endpoints: [try target("a.test", decision), try target("b.test")])
    try await running {
      try await clock.untilAtRest(monitor)
      #expect(decision.probes == 1)
      try await clock.advance(milliseconds: 1999, monitor)
      #expect(decision.probes == 1)
      try await clock.advance(milliseconds: 1, monitor)
      #expect(decision.probes == 2)
      try await clock.advance(milliseconds: 2000, monitor)
      #expect(decision.probes == 3)
      try await clock.advance(milliseconds: 50_000, monitor)
      #expect(decision.probes == 3)
      #expect(observer.probes.count { $0 == "b.test" } == 1)
    }
  }

  @Test("asking for a probe returns when nothing waits any longer")
  func probeNow() async throws {
    let decision = ScriptedDecision()
    let target = try target("a.test", decision)
    monitor.update(endpoints: [target])
    try await running {
      try await clock.untilAtRest(monitor)
      decision.say([.soon, .soon, .onSchedule])
      let asked = Task { await monitor.probeNow(target) }
      #expect(await eventually { decision.probes == 2 })
      try await clock.advance(milliseconds: 2000, monitor)
      #expect(decision.probes == 3)
      try await clock.advance(milliseconds: 2000, monitor)
      await asked.value
      #expect(decision.probes == 4)
    }
  }

  @Test("hastened endpoints are probed once at once, paused ones not at all")
  func hasten() async throws {
    let (one, two, three) = (ScriptedDecision(), ScriptedDecision(), ScriptedDecision())
    monitor.update(
      endpoints: [
        try target("a.test", one), try target("b.test", two),
        try target("c.test", isPaused: true, three),
      ])
    try await running {
      try await clock.untilAtRest(monitor)
      monitor.hasten(["a.test", "c.test", "nobody.test"])
      #expect(await eventually { one.probes == 2 })
      try await clock.untilAtRest(monitor)
      #expect((one.probes, two.probes, three.probes) == (2, 1, 0))
      monitor.hasten(host: "b.test")
      #expect(await eventually { two.probes == 2 })
      try await clock.untilAtRest(monitor)
      #expect((one.probes, two.probes, three.probes) == (2, 2, 0))
    }
  }

  @Test("whoever wakes it does so once: then it sleeps again until something is due")
  func sleepsAgain() async throws {
    // With two: while one is probed, it sleeps until the other is due.
    let targets = try ["a.test", "b.test"].map { try target($0) }
    monitor.update(endpoints: targets)
    try await running {
      try await clock.untilAtRest(monitor)
      monitor.update(endpoints: targets)
      monitor.hasten(["a.test"])
      #expect(await eventually { observer.probes.count == 3 })
      try await clock.untilAtRest(monitor)
      let sleeps = clock.sleeps
      // One that does not sleep any more goes round thousands of times in a second.
      #expect(await !eventually(within: 1) { clock.sleeps > sleeps + 3 })
    }
  }

  @Test("a probe that began before it was asked for does not count")
  func probeNowDuringProbe() async throws {
    let decision = ScriptedDecision()
    let target = try target("a.test", decision)
    monitor.update(endpoints: [target])
    observer.close()
    try await running {
      #expect(await eventually { observer.underWay == 1 })
      let asked = Task { await monitor.probeNow(target) }
      // why: until the question is in, which nothing shows.
      try await Task.sleep(for: .milliseconds(20))
      observer.open()
      await asked.value
      #expect(decision.probes >= 2)
    }
  }

  @Test("where nobody watches, asking for a probe makes it all the same")
  func probeNowAlone() async throws {
    let decision = ScriptedDecision([.onSchedule])
    await monitor.probeNow(try target("a.test", decision))
    #expect(decision.probes == 1)
  }

  @Test("endpoints come, go, pause and change their interval while it runs")
  func updates() async throws {
    let (one, two) = (ScriptedDecision(), ScriptedDecision())
    monitor.update(endpoints: [try target("a.test", one)])
    try await running {
      try await clock.untilAtRest(monitor)
      monitor.update(endpoints: [try target("a.test", one), try target("b.test", two)])
      #expect(await eventually { two.probes == 1 })
      try await clock.untilAtRest(monitor)
      #expect(one.probes == 1)
      monitor.update(
        endpoints: [
          try target("a.test", isPaused: true, one), try target("b.test", pause: 10_000, two),
        ])
      try await clock.advance(milliseconds: 60_000, monitor)
      #expect(one.probes == 1)
      #expect(two.probes == 7)
      monitor.update(endpoints: [try target("a.test", one)])
      #expect(await eventually { one.probes == 2 })
      try await clock.untilAtRest(monitor)
      try await clock.advance(milliseconds: 60_000, monitor)
      #expect(one.probes == 3)
      #expect(two.probes == 7)
    }
  }

  @Test("a probe an endpoint that is removed meanwhile is not entered")
  func removedMeanwhile() async throws {
    let (one, two) = (ScriptedDecision(), ScriptedDecision())
    let target = try target("a.test", one)
    monitor.update(endpoints: [target])
    observer.close()
    try await running {
      #expect(await eventually { observer.underWay == 1 })
      let asked = Task { await monitor.probeNow(target) }
      // why: until the question is in, which nothing shows.
      try await Task.sleep(for: .milliseconds(20))
      monitor.update(endpoints: [try self.target("b.test", two)])
      await asked.value
      observer.open()
      #expect(await eventually { two.probes == 1 })
      try await clock.untilAtRest(monitor)
      #expect(one.probes == 0)
    }
  }

  @Test("an endpoint that fails is probed as often as before")
  func failing() async throws {
    let decision = ScriptedDecision(Array(repeating: .failed, count: 3))
    monitor.update(endpoints: [try target("a.test", decision)])
    try await running {
      try await clock.untilAtRest(monitor)
      for probes in 2...5 {
        try await clock.advance(milliseconds: 59_000, monitor)
        #expect(decision.probes == probes - 1)
        try await clock.advance(milliseconds: 1000, monitor)
        #expect(decision.probes == probes)
      }
    }
  }

  @Test("it can be stopped in the middle of a probe, and run again")
  func again() async throws {
    let decision = ScriptedDecision()
    let target = try target("a.test", decision)
    monitor.update(endpoints: [target])
    observer.close()
    let task = Task { await monitor.run() }
    #expect(await eventually { observer.underWay == 1 })
    let asked = Task { await monitor.probeNow(target) }
    task.cancel()
    observer.open()
    await task.value
    await asked.value
    let before = decision.probes
    try await running {
      #expect(await eventually { decision.probes == before + 1 })
      try await clock.untilAtRest(monitor)
      try await clock.advance(milliseconds: 60_000, monitor)
      #expect(decision.probes == before + 2)
    }
  }
}
