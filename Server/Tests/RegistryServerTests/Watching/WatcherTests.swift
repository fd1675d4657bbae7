import Foundation
import RegistryCore
import RegistryServer
import SslPinningPlatform
import SslPinningRules
import TestSupport
import Testing

/// Endpoints whose looks end when the test says so.
private final class GatedObserver: EndpointObserver {
  private struct State {
    var isOpen = true
    var looks: [String] = []
    var underWay = 0
    var most = 0
    var waiting: [CheckedContinuation<Void, Never>] = []
  }

  private let state = Locked(State())

  var looks: [String] { state.withLock { $0.looks } }
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

  func look(at endpoint: WatchedEndpoint) async -> Look {
    await withCheckedContinuation { continuation in
      let isOpen = state.withLock { state in
        state.looks.append("\(endpoint.fqdn)")
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
private final class ScriptedDecision: LookDecision {
  private let script = Locked<[NextLook]>([])
  private let entered = Locked(0)

  init(_ script: [NextLook] = []) { self.script.withLock { $0 = script } }

  var looks: Int { entered.withLock { $0 } }

  func say(_ outcomes: [NextLook]) { script.withLock { $0 = outcomes } }

  func enter(_ look: Look) async -> NextLook {
    entered.withLock { $0 += 1 }
    return script.withLock { $0.isEmpty ? .onSchedule : $0.removeFirst() }
  }
}

/// No jitter: what is random is as late as it may be.
private struct LatestRandom: RandomNumberGenerator {
  func next() -> UInt64 { .max }
}

@Suite("Endpoints are watched on time")
struct WatcherTests {
  private let observer = GatedObserver()
  private let clock = SteppedClock()
  private let first = Locked(0)
  private let watcher: Watcher

  init() {
    let first = self.first
    watcher = Watcher(
      observer: observer, clock: clock,
      settings: LookSchedule.Settings(limit: 4, lookInterval: 2000, quickRepeats: 5),
      random: LatestRandom()
    ) { first.withLock { $0 += 1 } }
  }

  private func target(
    _ name: String, pause: Int64 = 60_000, isPaused: Bool = false,
    _ decision: ScriptedDecision = ScriptedDecision()
  ) throws -> Watcher.Target {
    Watcher.Target(
      id: name, endpoint: WatchedEndpoint(fqdn: try HostName(name)), pause: pause,
      isPaused: isPaused, decision: decision)
  }

  private func running(_ body: () async throws -> Void) async throws {
    let task = Task { await watcher.run() }
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
    watcher.update(endpoints: try (0..<20).map { try target("h\($0).test") })
    observer.close()
    try await running {
      #expect(await eventually { observer.underWay == 4 })
      observer.open()
      try await clock.untilAtRest(watcher)
      #expect(Set(observer.looks).count == 20)
      #expect(observer.looks.count == 20)
      #expect(observer.most == 4)
      #expect(first.withLock { $0 } == 20)
      try await clock.advance(milliseconds: 59_000, watcher)
      #expect(observer.looks.count == 20)
      try await clock.advance(milliseconds: 1000, watcher)
      #expect(observer.looks.count == 40)
      #expect(first.withLock { $0 } == 20)
    }
  }

  @Test("a key that waits is looked at again after the look interval")
  func quickRepeats() async throws {
    let decision = ScriptedDecision([.soon, .soon, .onSchedule])
    watcher.update(endpoints: [try target("a.test", decision), try target("b.test")])
    try await running {
      try await clock.untilAtRest(watcher)
      #expect(decision.looks == 1)
      try await clock.advance(milliseconds: 1999, watcher)
      #expect(decision.looks == 1)
      try await clock.advance(milliseconds: 1, watcher)
      #expect(decision.looks == 2)
      try await clock.advance(milliseconds: 2000, watcher)
      #expect(decision.looks == 3)
      try await clock.advance(milliseconds: 50_000, watcher)
      #expect(decision.looks == 3)
      #expect(observer.looks.count { $0 == "b.test" } == 1)
    }
  }

  @Test("asking for a look returns when nothing waits any longer")
  func lookNow() async throws {
    let decision = ScriptedDecision()
    let target = try target("a.test", decision)
    watcher.update(endpoints: [target])
    try await running {
      try await clock.untilAtRest(watcher)
      decision.say([.soon, .soon, .onSchedule])
      let asked = Task { await watcher.lookNow(target) }
      #expect(await eventually { decision.looks == 2 })
      try await clock.advance(milliseconds: 2000, watcher)
      #expect(decision.looks == 3)
      try await clock.advance(milliseconds: 2000, watcher)
      await asked.value
      #expect(decision.looks == 4)
    }
  }

  @Test("hastened endpoints are looked at once at once, paused ones not at all")
  func hasten() async throws {
    let (one, two, three) = (ScriptedDecision(), ScriptedDecision(), ScriptedDecision())
    watcher.update(
      endpoints: [
        try target("a.test", one), try target("b.test", two),
        try target("c.test", isPaused: true, three),
      ])
    try await running {
      try await clock.untilAtRest(watcher)
      watcher.hasten(["a.test", "c.test", "nobody.test"])
      #expect(await eventually { one.looks == 2 })
      try await clock.untilAtRest(watcher)
      #expect((one.looks, two.looks, three.looks) == (2, 1, 0))
      watcher.hasten(host: "b.test")
      #expect(await eventually { two.looks == 2 })
      try await clock.untilAtRest(watcher)
      #expect((one.looks, two.looks, three.looks) == (2, 2, 0))
    }
  }

  @Test("whoever wakes it does so once: then it sleeps again until something is due")
  func sleepsAgain() async throws {
    // With two: while one is looked at, it sleeps until the other is due.
    let targets = try ["a.test", "b.test"].map { try target($0) }
    watcher.update(endpoints: targets)
    try await running {
      try await clock.untilAtRest(watcher)
      watcher.update(endpoints: targets)
      watcher.hasten(["a.test"])
      #expect(await eventually { observer.looks.count == 3 })
      try await clock.untilAtRest(watcher)
      let sleeps = clock.sleeps
      // One that does not sleep any more goes round thousands of times in a second.
      #expect(await !eventually(within: 1) { clock.sleeps > sleeps + 3 })
    }
  }

  @Test("a look that began before it was asked for does not count")
  func lookNowDuringLook() async throws {
    let decision = ScriptedDecision()
    let target = try target("a.test", decision)
    watcher.update(endpoints: [target])
    observer.close()
    try await running {
      #expect(await eventually { observer.underWay == 1 })
      let asked = Task { await watcher.lookNow(target) }
      // why: until the question is in, which nothing shows.
      try await Task.sleep(for: .milliseconds(20))
      observer.open()
      await asked.value
      #expect(decision.looks >= 2)
    }
  }

  @Test("where nobody watches, asking for a look makes it all the same")
  func lookNowAlone() async throws {
    let decision = ScriptedDecision([.onSchedule])
    await watcher.lookNow(try target("a.test", decision))
    #expect(decision.looks == 1)
  }

  @Test("endpoints come, go, pause and change their interval while it runs")
  func updates() async throws {
    let (one, two) = (ScriptedDecision(), ScriptedDecision())
    watcher.update(endpoints: [try target("a.test", one)])
    try await running {
      try await clock.untilAtRest(watcher)
      watcher.update(endpoints: [try target("a.test", one), try target("b.test", two)])
      #expect(await eventually { two.looks == 1 })
      try await clock.untilAtRest(watcher)
      #expect(one.looks == 1)
      watcher.update(
        endpoints: [
          try target("a.test", isPaused: true, one), try target("b.test", pause: 10_000, two),
        ])
      try await clock.advance(milliseconds: 60_000, watcher)
      #expect(one.looks == 1)
      #expect(two.looks == 7)
      watcher.update(endpoints: [try target("a.test", one)])
      #expect(await eventually { one.looks == 2 })
      try await clock.untilAtRest(watcher)
      try await clock.advance(milliseconds: 60_000, watcher)
      #expect(one.looks == 3)
      #expect(two.looks == 7)
    }
  }

  @Test("a look at an endpoint that is removed meanwhile is not entered")
  func removedMeanwhile() async throws {
    let (one, two) = (ScriptedDecision(), ScriptedDecision())
    let target = try target("a.test", one)
    watcher.update(endpoints: [target])
    observer.close()
    try await running {
      #expect(await eventually { observer.underWay == 1 })
      let asked = Task { await watcher.lookNow(target) }
      // why: until the question is in, which nothing shows.
      try await Task.sleep(for: .milliseconds(20))
      watcher.update(endpoints: [try self.target("b.test", two)])
      await asked.value
      observer.open()
      #expect(await eventually { two.looks == 1 })
      try await clock.untilAtRest(watcher)
      #expect(one.looks == 0)
    }
  }

  @Test("an endpoint that fails is looked at ever more seldom")
  func backOff() async throws {
    let decision = ScriptedDecision(Array(repeating: .failed, count: 3))
    watcher.update(endpoints: [try target("a.test", decision)])
    try await running {
      try await clock.untilAtRest(watcher)
      for (pause, looks) in [(60_000, 2), (120_000, 3), (240_000, 4), (60_000, 5)] as [(Int64, Int)]
      {
        try await clock.advance(milliseconds: pause - 1000, watcher)
        #expect(decision.looks == looks - 1)
        try await clock.advance(milliseconds: 1000, watcher)
        #expect(decision.looks == looks)
      }
    }
  }

  @Test("it can be stopped in the middle of a look, and run again")
  func again() async throws {
    let decision = ScriptedDecision()
    let target = try target("a.test", decision)
    watcher.update(endpoints: [target])
    observer.close()
    let task = Task { await watcher.run() }
    #expect(await eventually { observer.underWay == 1 })
    let asked = Task { await watcher.lookNow(target) }
    task.cancel()
    observer.open()
    await task.value
    await asked.value
    let before = decision.looks
    try await running {
      #expect(await eventually { decision.looks == before + 1 })
      try await clock.untilAtRest(watcher)
      try await clock.advance(milliseconds: 60_000, watcher)
      #expect(decision.looks == before + 2)
    }
  }
}
