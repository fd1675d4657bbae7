import RegistryCore
import SslPinningPlatform

/// Probes every endpoint on time and hands what it saw to whoever decides about it.
///
/// - When which endpoint is probed is up to ``ProbeSchedule``; here are the tasks, the clock and the
///   observer. No endpoint has a task or a timer of its own: only probes under way do.
/// - Endpoints come and go while it runs.
package final class Monitor: Sendable {
  /// An endpoint to watch.
  package struct Target: Sendable {
    /// Tells it apart from all others of this server.
    package let id: String
    package let endpoint: WatchedEndpoint
    /// Milliseconds from the beginning of one probe to the next.
    package let pause: Int64
    /// Probed only when somebody asks.
    package var isPaused: Bool
    package let decision: any ProbeReceiver

    package init(
      id: String, endpoint: WatchedEndpoint, pause: Int64, isPaused: Bool = false,
      decision: any ProbeReceiver
    ) {
      self.id = id
      self.endpoint = endpoint
      self.pause = pause
      self.isPaused = isPaused
      self.decision = decision
    }
  }

  private struct Waiter {
    let id: String
    /// A probe that began before does not count.
    let after: UInt64
    let continuation: CheckedContinuation<Bool, Never>
  }

  private struct State {
    var schedule: ProbeSchedule
    var targets: [String: Target] = [:]
    var waiters: [Waiter] = []
    var unseen: Set<String> = []
    /// Until when the dispatcher sleeps; nil: until it is woken.
    var sleepsUntil: Int64?
    /// Whether it sleeps, and nobody has rung.
    var isAsleep = false
    var isRunning = false
    /// Since when it runs; of one that is about to end, which begins no probe any more, too.
    var running: Int64 = 0
    var isEnding = false
    var began: Int64?
    /// When each of the probes began that have not come back, by the number of its turn.
    var asking: [UInt64: Int64] = [:]
  }

  private let observer: any EndpointProber
  private let clock: any ServerClock
  private let settings: ProbeSchedule.Settings
  private let firstProbe: @Sendable () -> Void
  private let state: Locked<State>
  private let bell = AsyncSignal()

  /// A monitor of nothing yet.
  ///
  /// - Parameter firstProbe: is called after the first probe of each endpoint.
  package init(
    observer: any EndpointProber, clock: any ServerClock, settings: ProbeSchedule.Settings,
    random: any RandomNumberGenerator & Sendable = SystemRandomNumberGenerator(),
    firstProbe: @escaping @Sendable () -> Void = {}
  ) {
    self.observer = observer
    self.clock = clock
    self.settings = settings
    self.firstProbe = firstProbe
    state = Locked(State(schedule: ProbeSchedule(settings, random: random)))
  }

  /// Watches exactly these from now on. Those that stay keep their place; new ones are due at once.
  ///
  /// - Returns: how many of them were never probed.
  @discardableResult
  package func update(endpoints targets: [Target]) -> Int {
    let now = clock.uptime()
    let unseen = state.withLock { state in
      let wanted = Set(targets.map(\.id))
      for id in state.schedule.ids where !wanted.contains(id) {
        state.schedule.remove(id)
        state.targets[id] = nil
        state.unseen.remove(id)
      }
      for target in targets {
        if state.targets[target.id] == nil { state.unseen.insert(target.id) }
        state.targets[target.id] = target
        state.schedule.set(target.id, pause: target.pause, isPaused: target.isPaused, at: now)
      }
      state.isAsleep = false
      return state.unseen.count
    }
    // Whoever waits for an endpoint that is gone waits in vain.
    release { waiter, state in state.targets[waiter.id] == nil }
    bell.ring()
    return unseen
  }

  /// Probes an endpoint at once, whether paused or not, and again while something waits for
  /// confirmation. Returns when nothing does, or the watching is over.
  ///
  /// Where this is not running the probes are made by the way, of no concern to the schedule.
  package func probeNow(_ target: Target) async {
    let now = clock.uptime()
    let isWatched = await withCheckedContinuation { continuation in
      let isQueued = state.withLock { state in
        guard state.isRunning, state.targets[target.id] != nil else { return false }
        state.waiters.append(
          Waiter(id: target.id, after: state.schedule.lastTurn, continuation: continuation))
        state.schedule.probeNow(target.id, at: now)
        state.isAsleep = false
        return true
      }
      if isQueued { bell.ring() } else { continuation.resume(returning: false) }
    }
    guard !isWatched else { return }
    for _ in 0...settings.quickRepeats {
      let probe = await observer.probe(target.endpoint, for: target.id)
      guard !Task.isCancelled, await target.decision.enter(probe) == .soon,
        (try? await clock.sleep(milliseconds: settings.confirmationInterval)) != nil
      else { return }
    }
  }

  /// Has the endpoints of a name probed before all others: it can be resolved by now.
  package func hasten(host: String) {
    hasten(
      state.withLock { state in
        state.targets.values.filter { $0.endpoint.fqdn.description == host }.map(\.id)
      })
  }

  /// Has these probed before all others; nobody waits for it.
  package func hasten(_ ids: [String]) {
    let now = clock.uptime()
    state.withLock { state in
      for id in ids where state.targets[id]?.isPaused == false {
        state.schedule.probeNow(id, at: now)
      }
      state.isAsleep = false
    }
    bell.ring()
  }

  /// Whether no probe is under way or due: until the clock moves on, nothing happens by itself.
  package var isAtRest: Bool {
    let now = clock.uptime()
    return state.withLock { state in
      state.isAsleep && state.schedule.underWay == 0
        && (state.schedule.nextDue() ?? .max) > now
    }
  }

  /// How far it is.
  package var progress: MonitorProgress {
    state.withLock { state in
      MonitorProgress(
        running: state.running, began: state.began,
        due: state.isEnding ? nil : state.schedule.nextDue(), oldest: state.asking.values.min())
    }
  }

  /// Watches until the task is cancelled. It may run again later, but not twice at a time.
  package func run() async {
    let start = clock.uptime()
    state.withLock { state in
      (state.isRunning, state.isEnding) = (true, false)
      (state.running, state.began) = (start, nil)
    }
    await withDiscardingTaskGroup { group in
      while !Task.isCancelled {
        while let (turn, target) = takeTurn() {
          group.addTask { await self.work(turn, target) }
        }
        await sleep()
      }
      // What is under way may wait for a store that does not answer.
      state.withLock { $0.isEnding = true }
    }
    let now = clock.uptime()
    state.withLock { state in
      state.isRunning = false
      state.schedule.abandon(at: now)
    }
    release { _, _ in true }
  }

  /// Probes, and goes on with whatever is due next: while there is a backlog, nobody has to be woken.
  private func work(_ turn: ProbeSchedule.Turn, _ target: Target) async {
    var next: (ProbeSchedule.Turn, Target)? = (turn, target)
    while let (turn, target) = next, !Task.isCancelled {
      let start = clock.uptime()
      state.withLock { $0.asking[turn.number] = start }
      let probe = await observer.probe(target.endpoint, for: target.id)
      state.withLock { $0.asking[turn.number] = nil }
      guard !Task.isCancelled else { return }
      if isWatched(turn) { finish(turn, await target.decision.enter(probe)) }
      next = takeTurn()
    }
  }

  private func takeTurn() -> (ProbeSchedule.Turn, Target)? {
    let now = clock.uptime()
    return state.withLock { state in
      while let turn = state.schedule.next(at: now) {
        if let target = state.targets[turn.id] {
          state.began = now
          return (turn, target)
        }
        state.schedule.remove(turn.id)
      }
      return nil
    }
  }

  private func isWatched(_ turn: ProbeSchedule.Turn) -> Bool {
    state.withLock { $0.schedule.isUnderWay(turn) }
  }

  private func finish(_ turn: ProbeSchedule.Turn, _ outcome: NextProbe) {
    let now = clock.uptime()
    let (isSettled, isFirst, mustWake) = state.withLock { state in
      let isSettled = state.schedule.finish(turn, outcome, at: now)
      if outcome == .never { state.targets[turn.id] = nil }
      let due = state.schedule.nextDue()
      let mustWake = state.isAsleep && (due ?? .max) < (state.sleepsUntil ?? .max)
      if mustWake { state.isAsleep = false }
      return (isSettled, state.unseen.remove(turn.id) != nil, mustWake)
    }
    if isFirst { firstProbe() }
    if isSettled { release { waiter, _ in waiter.id == turn.id && waiter.after < turn.number } }
    if mustWake { bell.ring() }
  }

  private func release(_ isServed: (Waiter, State) -> Bool) {
    let served = state.withLock { state in
      guard !state.waiters.isEmpty else { return [Waiter]() }
      let waiters = state.waiters
      state.waiters = waiters.filter { !isServed($0, state) }
      return waiters.filter { isServed($0, state) }
    }
    for waiter in served { waiter.continuation.resume(returning: true) }
  }

  /// Sleeps until something is due or somebody rings.
  private func sleep() async {
    let now = clock.uptime()
    let due = state.withLock { state -> Int64? in
      state.sleepsUntil = state.schedule.nextDue()
      state.isAsleep = true
      return state.sleepsUntil
    }
    if let due {
      if due > now {
        await withDiscardingTaskGroup { group in
          group.addTask { [self] in
            // Not where it was cancelled: that ring would be the next sleep's, and end it at once, for ever.
            guard (try? await clock.sleep(milliseconds: due - now)) != nil else { return }
            bell.ring()
          }
          await bell.wait()
          group.cancelAll()
        }
      }
    } else {
      await bell.wait()
    }
    state.withLock { $0.isAsleep = false }
  }
}

/// Wakes one task that waits, now or the next time that it does.
final class AsyncSignal: Sendable {
  private struct State {
    var isRung = false
    var waiting: CheckedContinuation<Void, Never>?
  }

  private let state = Locked(State())

  func ring() {
    let waiting = state.withLock { state in
      state.isRung = state.waiting == nil
      return state.waiting.take()
    }
    waiting?.resume()
  }

  /// Waits for a ring; also ends when the task is cancelled.
  func wait() async {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let mustWait = state.withLock { state in
          guard !state.isRung, !Task.isCancelled else {
            state.isRung = false
            return false
          }
          state.waiting = continuation
          return true
        }
        if !mustWait { continuation.resume() }
      }
    } onCancel: {
      state.withLock { $0.waiting.take() }?.resume()
    }
  }
}

/// Which vantage points were silent when they last had all the time that a probe gives them.
///
/// - For a minute they are not waited for as long as the others, but for twice what their last answer took, and a second at
///   least; then one probe finds out whether they are back, so a point that is merely slow is never shut out for good. One
///   that is far away must not be silent for a minute because its endpoint was for a moment.
/// - A tunnel that carries nothing may be the endpoint's fault. If others were heard through the point within that
///   minute, it is hurried for that endpoint alone: one that swallows TLS must not take the point's voice for all.
///
/// Pure: times are milliseconds of a clock that is never set.
struct SilentRoutes: Sendable {
  /// What a probe through a point came to.
  enum Answer: Sendable {
    /// The point works.
    case heard
    /// The point itself did not answer.
    case silent
    /// The point opened a tunnel, and nothing came through it.
    case empty
  }

  /// Where nothing was heard.
  private struct Place: Hashable {
    let route: Int
    /// `nil`: of whatever endpoint.
    var endpoint: String?
  }

  /// For how long a route is hurried.
  static let pause: Int64 = 60_000
  /// The least that one is waited for.
  private static let leastPatience: Int64 = 1000

  private var since: [Place: Int64] = [:]
  private var heard: [Int: Int64] = [:]
  /// What the last answer took.
  private var took: [Place: Int64] = [:]

  /// The routes that are not to be waited for as long as usual when this endpoint is probed, and how many milliseconds each
  /// has.
  func routes(to endpoint: String, of all: Range<Int>, at now: Int64) -> [Int: Int64] {
    all.reduce(into: [:]) { hurried, route in
      let places = [Place(route: route, endpoint: endpoint), Place(route: route)]
      guard places.contains(where: { since[$0].map { now - $0 < Self.pause } ?? false }) else {
        return
      }
      let last = places.compactMap { took[$0] }.first ?? 0
      hurried[route] = max(Self.leastPatience, 2 * last)
    }
  }

  /// Enters what a probe of an endpoint through a route came to.
  ///
  /// - Parameters:
  ///   - duration: what an answer took, in milliseconds.
  ///   - wasHurried: whether it had less than its time: its silence says nothing new.
  ///   - now: when the probe began.
  mutating func note(
    _ route: Int, to endpoint: String, _ answer: Answer, in duration: Int64 = 0, wasHurried: Bool,
    at now: Int64
  ) {
    let place = Place(route: route, endpoint: endpoint)
    switch answer {
    case .heard:
      heard[route] = now
      since[place] = nil
      since[Place(route: route)] = nil
      guard duration > 0 else { return }
      took[place] = duration
      took[Place(route: route)] = duration
    case .silent, .empty:
      guard !wasHurried else { return }
      let isOthersFault = answer == .empty && heard[route].map { now - $0 < Self.pause } ?? false
      since[isOthersFault ? place : Place(route: route)] = now
    }
  }
}
