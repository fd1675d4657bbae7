import Foundation
import SslPinningPlatform
import SslPinningRules

/// Holds what the client believes, fetches newer registries, and answers the transports.
///
/// - A document replaces the believed one only by ``TrustedRegistry``'s rules; whatever else comes
///   back changes nothing that is pinned.
/// - Whoever asks while a fetch runs waits for that one, unless it hangs or may have been answered before.
/// - Verdicts come from memory: no transport ever waits for a lock that is held over I/O.
/// - Judged is by the clock and by the `issued` of the statement in force (``SslPinningRules/TrustTime``).
final class RegistryUpdater: PinEvaluating {
  struct State {
    var trusted: TrustedRegistry
    var origin: RegistryStatus.Origin
    var inForce: ActivePolicy
    var storage: RegistryStatus.Storage
    /// Whether what an earlier run stored is still unknown, as after a start while the device was locked: with
    /// every fetch, whatever that brings, the store is asked again.
    var isStoreUnread: Bool
    /// The SHA-256 of what was read of the store last, and believed, and when, in Unix seconds of the device's clock.
    var lastRead: (digest: [UInt8], at: Int64)?
    /// The tag of the document in force.
    var tag: DocumentTag?
    /// Who was found to serve whole documents only.
    var withoutParts: Set<RegistrySource.Place> = []
    /// The newest fetch under way, which others join.
    var refreshing: Flight?
    /// The mirrors that are being asked.
    var asked: [RegistrySource.Place: [MirrorAsk]] = [:]
    /// How many fetched answers are being judged, or wait for that.
    var judging = 0
    /// How many fetches began.
    var flights: UInt64 = 0
    var limiter = RefreshLimiter()
    var schedule: RefreshSchedule
    var background: Task<Void, Never>?
    var pinsChanged: (@Sendable () -> Void)?
  }

  let config: SslPinningConfig
  let source: RegistrySource
  let trust: RegistryTrust
  let store: StateStore?
  let clocks: Clocks
  let state: Locked<State>
  /// Where what is next in force is made, one after the other.
  let turns = DispatchQueue(label: "ssl-pinning.turns", qos: .userInitiated)
  /// Where the registry is stored: a disk may keep its caller waiting for ever. Of the caller's priority, since a start
  /// waits for it.
  let storage: DispatchQueue

  /// Every verdict.
  let evaluations = Broadcast<PinEvaluation>()
  /// Tells that other pins are in force.
  let changes = Broadcast<Void>()
  /// What happens; who comes late still hears how the client started.
  let events: Broadcast<PinningEvent>
  /// Who is told of failed pins.
  let reporter: FailureReporter?

  /// Begins with what is at hand, or with what the network brings.
  ///
  /// - A stored registry younger than the refresh interval serves at once.
  /// - Otherwise the network is asked. Where there is something to fall back on, for at most
  ///   ``Clocks/longestRefresh`` unless that is expired or stale; a later answer still counts when it comes.
  init(
    config: SslPinningConfig, source: RegistrySource, trust: RegistryTrust, store: StateStore?,
    handed: [UInt8]? = nil, clocks: Clocks,
    events: Broadcast<PinningEvent> = Broadcast(history: 16),
    reporter: FailureReporter? = nil
  ) async throws(SslPinningError) {
    let clock = clocks.wall()
    var schedule = RefreshSchedule(interval: config.refreshInterval, at: clocks.steady())
    let storage = DispatchQueue(label: "ssl-pinning.registry")
    self.storage = storage
    let (atHand, learned, isStoreUnread) = try await Self.startingPoint(
      config, trust, store, handed: handed, events, on: storage, at: clock)
    let (first, origin, tag) = try await Self.first(
      atHand, knowing: learned, from: source, under: trust, at: config.endpointUrl, clocks: clocks,
      store: isStoreUnread ? nil : store)
    let policy = try Self.policy(of: first, config)
    schedule.begin(age: first.stamp.age(at: clock))
    self.config = config
    self.source = source
    self.trust = trust
    self.store = store
    self.clocks = clocks
    self.events = events
    self.reporter = reporter
    state = Locked(
      State(
        trusted: first, origin: origin,
        inForce: ActivePolicy(policy, at: first.time(at: clock)),
        storage: config.storage == .none ? .off : .kept, isStoreUnread: isStoreUnread, tag: tag,
        schedule: schedule))
    reporter?.follow(self)
    tellRegistry()
    tellFork()
    guard case .live = source else { return }
    // A store that could not be read is tried again with the first fetch: if it hangs, a start must not wait for it twice.
    let isNews = !isStoreUnread && atHand?.isNews == true
    if store == nil || origin == .network || origin == .handed || isNews { await persist() }
    // Also after a first start from the network: it may go on from that list, as nothing could before.
    if let handed, origin != .handed { await acceptBriefly(handed) }
    if origin == .network {
      // It was asked just now.
    } else if let atHand, !atHand.isFresh(for: schedule, at: clock) {
      await refreshBriefly()
    } else if case .live(let fetch) = source, !policy.problems.isEmpty {
      // Stored under other settings, perhaps: a newer list may be one that these can honour.
      _ = state.withLock { flight(&$0, fetch, bypassingCaches: false) }
    }
    keepRefreshing()
  }

  deinit { state.withLock { $0.background }?.cancel() }

  /// The registry that is believed now.
  var trusted: TrustedRegistry { state.withLock { $0.trusted } }

  /// Where the registry is from and how old it is, now.
  var status: RegistryStatus {
    let (trusted, origin, storage) = state.withLock { ($0.trusted, $0.origin, $0.storage) }
    return RegistryStatus(trusted, origin: origin, storage: storage, at: clocks.wall())
  }

  /// What in the registry cannot be used, by itself or under this app's settings.
  var problems: [RegistryProblem] {
    let (trusted, policy) = state.withLock { ($0.trusted, $0.inForce.policy) }
    return trusted.registry.problems + policy.problems
  }

  /// Calls `action` whenever pins changed, from now on.
  func whenPinsChange(_ action: @escaping @Sendable () -> Void) {
    state.withLock { $0.pinsChanged = action }
  }

  /// Fetches the registry, or joins the fetch under way.
  ///
  /// - Parameter bypassingCaches: whether what the registry has *now* is wanted. A fetch that was under way
  ///   may have been answered before, so it is waited for, and is not enough.
  /// - Returns: whether the pins changed.
  func refresh(bypassingCaches: Bool) async -> Result<Bool, SslPinningError> {
    guard case .live(let fetch) = source else { return .success(false) }
    let before = state.withLock { $0.flights }
    while true {
      let running = state.withLock { flight(&$0, fetch, bypassingCaches: bypassingCaches) }
      let result = await running.task.value
      if !bypassingCaches || running.bypassesCaches && running.number > before { return result }
    }
  }

  // MARK: PinEvaluating

  func currentGeneration() -> UInt64 {
    let clock = clocks.wall()
    return state.withLock { $0.inForce.advance(to: $0.trusted.time(at: clock)) }
  }

  /// The clock, and what the registry's signer vouches for. Not the time of the last confirmation: that
  /// came from this very clock, and one that ran ahead for a while would lock everybody out until the
  /// process ends.
  var time: TrustTime? {
    let clock = clocks.wall()
    return state.withLock { $0.trusted.time(at: clock) }
  }

  func evaluate(_ evidence: ChainEvidence, host: HostName) -> PinEvaluation {
    let clock = clocks.wall()
    let (policy, now) = state.withLock { ($0.inForce.policy, $0.trusted.time(at: clock)) }
    return policy.evaluate(evidence, host: host, at: now)
  }

  func lists(_ host: HostName) -> Bool {
    state.withLock { $0.inForce.policy }.entry(for: host) != nil
  }

  func record(_ evaluation: PinEvaluation, of connection: ConnectionFacts) {
    evaluations.send(evaluation)
    reporter?.report(evaluation, of: connection)
    if case .unjudged = evaluation.outcome, evaluation.decision == .accept {
      events.send(.unjudgedReuse(evaluation))
    }
  }

  func requestRefresh(after refusal: PinEvaluation) -> Bool {
    guard refusal.couldChangeAfterRefresh, case .live(let fetch) = source else { return false }
    let now = clocks.steady()
    return state.withLock { state in
      // A refresh under way may bring the key; joining it costs no request.
      if state.refreshing?.isPrompt(at: now) == true { return true }
      guard state.limiter.tryAcquire(for: refusal, at: now) else { return state.refreshing != nil }
      // Begun here, not once somebody waits for it: of the parallel requests that meet a new key,
      // those that the limiter turns away must find a fetch to join.
      _ = begin(&state, fetch, bypassingCaches: true, anew: true)
      return true
    }
  }

  /// Waits for the fetch that ``requestRefresh(after:)`` began or found, until the registry has the key. One
  /// that was found may hang, or may have been answered before the server's new key was published: then
  /// the refusal is owed a fetch of its own, which counts against the limit like any other.
  func refresh(after refusal: PinEvaluation) async {
    guard case .live(let fetch) = source else { return }
    let joined = state.withLock { $0.refreshing }
    if let joined {
      switch await end(of: joined, for: refusal, within: RegistryRound.patience) {
      case .turned: return
      case .over where joined.isAnew && isAnother(than: refusal): return
      case .over, .late: break
      }
    }
    let own = state.withLock { state -> Flight? in
      let now = clocks.steady()
      // One that began since asks after this refusal, too: of many hosts that are refused at one time, each
      // would take a thread for as long as the registry hangs.
      if let newer = state.refreshing, newer.number > joined?.number ?? .max, newer.isAnew,
        newer.isPrompt(at: now)
      {
        return newer
      }
      return state.limiter.tryAcquire(for: refusal, at: now)
        ? begin(&state, fetch, bypassingCaches: true, anew: true) : state.refreshing ?? joined
    }
    if let own { _ = await end(of: own, for: refusal) }
    // One that asks for less took its place, and may be over before it.
    if let own, let joined, !own.isAnew, joined.isAnew { _ = await end(of: joined, for: refusal) }
  }

  /// Whether what refused the host is not in force any more.
  private func isAnother(than refusal: PinEvaluation) -> Bool {
    let policy = state.withLock { $0.inForce.policy }
    guard let host = try? HostName(refusal.host), let entry = policy.entry(for: host) else {
      return false
    }
    return switch refusal.outcome {
    case .registryExpired(let end): policy.expires != end
    case .clientTooOld(let names): entry.unknownDemands != names
    case .mismatch(.ca), .mismatch(.certificate), .noLivePin, .uncheckable:
      entry.leaf.pins != refusal.expectedLeaf || entry.ca.pins != refusal.expectedCA
        || entry.certificates.sorted() != refusal.expectedCertificates
    default: false
    }
  }

  private enum End {
    case turned
    case over
    case late
  }

  /// Waits until the registry has what was refused, the fetch is over, or so many seconds have passed.
  private func end(
    of flight: Flight, for refusal: PinEvaluation, within seconds: Double? = nil
  ) async -> End {
    let (ends, tell) = AsyncStream.makeStream(of: End.self)
    let changes = changes.stream
    if turns(refusal) { return .turned }
    promptTask {
      _ = await flight.task.value
      tell.yield(.over)
    }
    let change = promptTask {
      for await _ in changes where self.turns(refusal) { tell.yield(.turned) }
    }
    let clock = seconds.map { [clocks] seconds in
      promptTask {
        try? await clocks.sleep(seconds)
        tell.yield(.late)
      }
    }
    defer {
      change.cancel()
      clock?.cancel()
    }
    for await end in ends { return end }
    return .late
  }

  /// Whether the registry in force has the leaf pin that was missing. Whether that is enough, the next verdict
  /// says. Of other refusals nobody knows what cures them before the whole fetch is over: the leaf of a missing
  /// CA pin, or of a pin that expired, may have been listed all the time.
  private func turns(_ refusal: PinEvaluation) -> Bool {
    let clock = clocks.wall()
    let (policy, now) = state.withLock { ($0.inForce.policy, $0.trusted.time(at: clock)) }
    guard let host = try? HostName(refusal.host), let entry = policy.entry(for: host) else {
      return false
    }
    let hasLeaf = refusal.presented.first.map { entry.leaf.contains($0, at: now.later) }
    return switch refusal.outcome {
    case .unlisted: entry.leaf.pins.isEmpty || hasLeaf ?? true
    case .mismatch(.leaf): hasLeaf ?? false
    default: false
    }
  }
}
