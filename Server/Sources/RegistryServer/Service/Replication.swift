import RegistryCore
import RegistryStores
import SslPinningPlatform
import TLSTools

/// Watches while this server leads, and follows what other servers store all the while.
final class Replication: Sendable {
  private struct State {
    var plan: MonitoringPlan
    var monitor: Monitor
    /// The watching under way; `nil` while another server leads.
    var run: Task<Void, Never>?
    /// The monitor of that, which may be the one before the last change of the plan.
    var running: Monitor?
    var isLeading = false
    /// Whether another server is known to lead.
    var isFollowing = false
    /// The last change of what is watched; the next one begins after it.
    var updating: Task<Void, Never>?
  }

  private let store: any RegistryStore
  private let clock: any ServerClock
  private let health: ServiceHealth
  private let log: ServerLog
  private let metrics: ServerMetrics
  private let believesStore: @Sendable () async -> Bool
  private let whenTakingOver: @Sendable () async -> Void
  private let state: Locked<State>
  /// Rings if the leadership is to be given back.
  private let givingBack = AsyncSignal()

  /// How often, in milliseconds, a store is asked for changes that it should have told.
  private static let refreshInterval: Int64 = 60_000

  /// Of this plan.
  ///
  /// - Parameters:
  ///   - believesStore: looks after the store as a whole, and says whether it is believed.
  ///   - whenTakingOver: called before anything is written: the store has the documents as the server that led before left them.
  init(
    _ plan: MonitoringPlan, store: any RegistryStore, clock: any ServerClock, health: ServiceHealth,
    log: ServerLog, metrics: ServerMetrics,
    believesStore: @escaping @Sendable () async -> Bool = { true },
    whenTakingOver: @escaping @Sendable () async -> Void = {}
  ) {
    self.metrics = metrics
    self.believesStore = believesStore
    self.whenTakingOver = whenTakingOver
    self.store = store
    self.clock = clock
    self.health = health
    self.log = log
    state = Locked(
      State(plan: plan, monitor: plan.monitor(clock: clock, health: health)))
  }

  /// The coordinators of the documents in force, in the order configured.
  var coordinators: [DocumentCoordinator] { state.withLock(\.plan.coordinators) }

  /// Whether this server watches.
  var isLeading: Bool { state.withLock(\.isLeading) }

  /// Whether no probe is under way or due.
  var isAtRest: Bool { state.withLock(\.monitor).isAtRest }

  /// How far the watching is; `nil` while this server does not watch.
  var progress: MonitorProgress? { state.withLock(\.running)?.progress }

  /// Leads no more, for another server to take over: the watching is stuck here. This one tries to lead again once that has ended.
  func giveBack() {
    let isLeading = state.withLock { state in
      // What the other one decides counts from now on.
      if state.isLeading { state.isFollowing = true }
      return state.isLeading
    }
    if isLeading { givingBack.ring() }
  }

  /// Probes an endpoint now, whoever leads, until nothing waits for another probe.
  func probe(_ endpoint: WatchedEndpoint, of coordinator: DocumentCoordinator) async {
    let (monitor, tls) = state.withLock { ($0.monitor, $0.plan.tls) }
    await monitor.probeNow(Monitor.Target(endpoint, of: coordinator, clock: clock, tls: tls))
  }

  /// Watches by another plan from now on: the configuration was read again.
  func replace(_ plan: MonitoringPlan) async {
    let monitor = plan.monitor(clock: clock, health: health)
    let run = state.withLock { state in
      (state.plan, state.monitor) = (plan, monitor)
      return state.run
    }
    run?.cancel()
    await begin()
  }

  /// Watches the endpoints as their documents have them now. Those that stay keep their place.
  func update() async { await retarget { _ in } }

  /// Watches the endpoints with a monitor that has seen none of them yet, or those of an earlier time as
  /// leader.
  private func begin() async {
    await retarget { [health] unseen in health.expect(firstProbes: unseen) }
  }

  /// Has the monitor watch what the documents have. One after another: asking them all takes a while, and
  /// the older list must not come last.
  private func retarget(_ tell: @escaping @Sendable (_ unseen: Int) -> Void) async {
    let task = state.withLock { state in
      let last = state.updating
      let task = Task { [self] in
        await last?.value
        let (plan, monitor) = self.state.withLock { ($0.plan, $0.monitor) }
        let targets = await plan.targets(of: monitor, clock: clock)
        let watched = targets.filter { !$0.isPaused }
        metrics.watches(
          Self.ids(of: watched), paused: Self.ids(of: targets.filter(\.isPaused)),
          from: plan.tls.vantagePoints.map(\.name), interval: watched.map(\.pause).max() ?? 0)
        tell(monitor.update(endpoints: targets))
      }
      state.updating = task
      return task
    }
    await task.value
  }

  /// The ids of their endpoints, by file.
  private static func ids(of targets: [Monitor.Target]) -> [String: Set<String>] {
    targets.reduce(into: [:]) { ids, target in
      guard let kept = target.decision as? CoordinatedEndpoint else { return }
      ids[kept.coordinator.file, default: []].insert(target.endpoint.id)
    }
  }

  /// Watches while this server leads, and tries to lead while another does, until cancelled.
  func lead() async {
    health.seesLeader(isHere: false, by: clock)
    while !Task.isCancelled {
      let followed = state.withLock(\.isFollowing)
      var leadership: (any StoreLeadership)?
      // What was known stays, if the store does not say.
      var isFollowing = followed
      do throws(StoreError) {
        leadership = try await store.lead()
        isFollowing = leadership == nil
        // Nobody leads on a store that is not believed, either: that is told by itself.
        if isFollowing { health.seesLeader(isHere: false, by: clock) }
      } catch {
        health.missesLeader("\(error)")
        log.event(.warn, "leadership_unknown", ["reason": "\(error)"])
      }
      state.withLock { [isFollowing] in $0.isFollowing = isFollowing }
      // What was seen here is for the other one to know from now on.
      if isFollowing, !followed { await refresh(coordinators) }
      if let leadership {
        await watch(under: leadership, isTakenOver: followed)
      } else {
        // A leader that dies is followed within 10 seconds, the store's own time to notice included.
        // Not by the clock: nothing is decided by it, and a clock that is set changes nothing.
        try? await Task.sleep(for: .seconds(1))
      }
    }
  }

  /// Takes over what other servers store, as the store tells of it and once in a while regardless,
  /// until cancelled.
  func follow() async {
    await withTaskGroup(of: Void.self) { group in
      group.addTask { [self] in
        for await name in store.changes() {
          guard name.isEmpty || name == StoreIdentity.recordName else {
            await refresh(coordinators.filter { $0.file == name })
            continue
          }
          // What was not believed may be now, and the other way round.
          let isBelieved = await believesStore()
          await refresh(name.isEmpty || !isBelieved ? coordinators : held)
        }
      }
      group.addTask { [self] in
        while !Task.isCancelled {
          do { try await clock.sleep(milliseconds: Self.refreshInterval) } catch { return }
          _ = await believesStore()
          await refresh(coordinators)
        }
      }
    }
  }

  /// The coordinators of documents that decide nothing because the store is not believed.
  private var held: [DocumentCoordinator] {
    get async {
      var held: [DocumentCoordinator] = []
      for coordinator in coordinators where await coordinator.fault != nil {
        held.append(coordinator)
      }
      return held
    }
  }

  /// Takes over what other servers stored, and watches what people added, paused or took out there.
  private func refresh(_ coordinators: [DocumentCoordinator]) async {
    var hasNewEndpoints = false
    for coordinator in coordinators {
      await coordinator.refresh(at: clock.now(), isFollowing: state.withLock(\.isFollowing))
      if await coordinator.takeNewEndpoints() { hasNewEndpoints = true }
    }
    if hasNewEndpoints { await update() }
  }

  private func watch(under leadership: any StoreLeadership, isTakenOver: Bool) async {
    state.withLock { $0.isLeading = true }
    health.seesLeader(isHere: true, by: clock)
    metrics.leads(true)
    log.event(.info, "leading")
    await withTaskGroup(of: Void.self) { group in
      group.addTask { [self] in
        if isTakenOver { await whenTakingOver() }
        // What the one before stored last.
        for coordinator in coordinators where !Task.isCancelled {
          await coordinator.lead(at: clock.now())
        }
        guard !Task.isCancelled else { return }
        await begin()
        while !Task.isCancelled { await runOnce() }
      }
      group.addTask { await leadership.ended() }
      group.addTask { [givingBack] in await givingBack.wait() }
      await withTaskCancellationHandler {
        _ = await group.next()
      } onCancel: {
        stepDown()
        Task { await leadership.resign() }
      }
      // Now: what is under way may wait for a store that does not answer, and another server will lead
      // by then.
      stepDown()
      group.cancelAll()
      await leadership.resign()
    }
  }

  /// Says that this server leads no more.
  private func stepDown() {
    let wasLeading = state.withLock { state in
      defer { state.isLeading = false }
      return state.isLeading
    }
    guard wasLeading else { return }
    health.seesLeader(isHere: false, by: clock)
    metrics.leads(false)
    log.event(.info, "not_leading")
  }

  /// Runs by one plan, until it is replaced or the leadership ends.
  private func runOnce() async {
    let run = state.withLock { state in
      let (monitor, plan) = (state.monitor, state.plan)
      let upkeep = DocumentUpkeep(
        coordinators: plan.coordinators, clock: clock, interval: plan.tls.interval,
        retention: HistoryRetention(limits: plan.history, store: store))
      let run = Task {
        await withTaskGroup(of: Void.self) { group in
          group.addTask { await monitor.run() }
          group.addTask { await upkeep.run() }
        }
      }
      (state.run, state.running) = (run, monitor)
      return run
    }
    await withTaskCancellationHandler {
      await run.value
    } onCancel: {
      run.cancel()
    }
    state.withLock { ($0.run, $0.running) = (nil, nil) }
  }
}

/// What is watched, and how: the part of a configuration that a running server can exchange.
struct MonitoringPlan: Sendable {
  /// The coordinators of the documents, in the order configured.
  var coordinators: [DocumentCoordinator]
  var observer: any EndpointProber
  var tls: TLSConfiguration
  var history = HistoryConfiguration()

  init(coordinators: [DocumentCoordinator], observer: any EndpointProber, tls: TLSConfiguration) {
    (self.coordinators, self.observer, self.tls) = (coordinators, observer, tls)
  }

  /// What a configuration says of these.
  init(
    _ coordinators: [DocumentCoordinator], _ observer: any EndpointProber,
    _ configuration: ServerConfiguration
  ) {
    self.init(coordinators: coordinators, observer: observer, tls: configuration.tls)
    history = configuration.history
  }

  /// A monitor for it, of nothing yet.
  func monitor(clock: any ServerClock, health: ServiceHealth) -> Monitor {
    let monitor = Monitor(
      observer: observer, clock: clock, settings: ProbeSchedule.Settings(tls)
    ) {
      health.finishedFirstProbe()
    }
    (observer as? any ResolvingProber)?.whenFoundLate { [weak monitor] in
      monitor?.hasten(host: $0)
    }
    return monitor
  }

  /// The endpoints in force, as this monitor is to watch them.
  func targets(of monitor: Monitor, clock: any ServerClock) async -> [Monitor.Target] {
    let probeOthers: @Sendable () async -> Void = { [weak monitor, coordinators] in
      monitor?.hasten(await Self.sample(of: coordinators))
    }
    var targets: [Monitor.Target] = []
    for coordinator in coordinators {
      let paused = await coordinator.pausedEndpoints
      targets += await coordinator.endpoints.map { endpoint in
        var target = Monitor.Target(
          endpoint, of: coordinator, clock: clock, tls: tls, probeOthers: probeOthers)
        target.isPaused = paused.contains(endpoint.id)
        return target
      }
    }
    return targets
  }

  /// A few endpoints, no two of which share their keys.
  private static func sample(of coordinators: [DocumentCoordinator]) async -> [String] {
    var found: [MassChangeDetector.Group: String] = [:]
    for coordinator in coordinators {
      for (group, id) in await coordinator.snapshot.representatives() {
        found[group] = Monitor.Target.id(of: id, in: coordinator)
      }
    }
    return Array(found.values.shuffled().prefix(MassChangeDetector.sample))
  }
}

/// Does what is due for documents without a probe, once an interval, for one after the other.
struct DocumentUpkeep: Sendable {
  let coordinators: [DocumentCoordinator]
  let clock: any ServerClock
  /// Milliseconds.
  let interval: Int64
  let retention: HistoryRetention

  /// Goes on until the task is cancelled.
  func run() async {
    var tidied: Int64?
    while (try? await clock.sleep(milliseconds: interval)) != nil, !Task.isCancelled {
      let isTidyDue = tidied.map { clock.now() - $0 >= HistoryRetention.interval } ?? true
      if isTidyDue { tidied = clock.now() }
      for coordinator in coordinators {
        guard !Task.isCancelled else { return }
        await coordinator.upkeep(at: clock.now())
        // What fails is tried again in an hour; that the store fails is told elsewhere.
        if isTidyDue { try? await retention.tidy(coordinator.file, at: clock.now()) }
      }
    }
  }
}

extension RegistryService {
  /// What probes, with the answers that are remembered over a new configuration.
  static func observing(
    _ given: (any EndpointProber)?, _ tls: TLSConfiguration, _ clock: SteadyClock,
    _ answered: AnsweredQuestions
  ) throws(RegistryServiceError) -> any EndpointProber {
    if let given { return MeasuredProber(base: given) }
    do throws(AnchorsError) {
      return MeasuredProber(
        base: try TLSEndpointProber(tls, answered: answered, judgingAt: { clock.standing.times }))
    } catch { throw .anchors(error) }
  }
}
