import Foundation
import SslPinningPlatform
import SslPinningRules

/// Fetching, judging what comes back, and putting it in force.
extension RegistryUpdater {
  typealias Fetch = RegistrySource.Fetch

  /// A fetch under way.
  struct Flight {
    let number: UInt64
    let task: Task<Result<Bool, SslPinningError>, Never>
    /// Whether it asks past caches.
    let bypassesCaches: Bool
    /// Whether "unchanged" is no answer to it.
    let isAnew: Bool
    /// When it began, by the clock that is never set.
    let begun: Int64
    /// Whether the app's own URL has answered. Mirrors may be silent for long after that.
    var isAnswered = false

    /// Whether it is worth waiting for: it hangs no longer than a mirror is waited for.
    func isPrompt(at now: Int64) -> Bool {
      !isAnswered && Double(now - begun) < RegistryRound.patience
    }
  }

  /// The fetch under way, or one that starts now.
  func flight(_ state: inout State, _ fetch: @escaping Fetch, bypassingCaches: Bool) -> Flight {
    if let running = state.refreshing, !running.isAnswered { return running }
    return begin(&state, fetch, bypassingCaches: bypassingCaches)
  }

  /// Starts a fetch; from now on others join this one.
  ///
  /// - Parameter anew: whether "unchanged" is no answer: after a refusal, since a mirror whose tag never
  ///   changes would keep a rotation away for good.
  func begin(
    _ state: inout State, _ fetch: @escaping Fetch, bypassingCaches: Bool, anew: Bool = false
  ) -> Flight {
    let clock = clocks.wall()
    let asked = state.trusted
    let isUseless = anew || asked.isExpired(at: clock)
    let visitor = RegistryVisitor(
      asked: asked, tag: isUseless ? nil : state.tag, bypassesCaches: bypassingCaches,
      time: asked.time(at: clock), fetch: fetch)
    state.flights += 1
    let number = state.flights
    let task = promptTask {
      let (result, isNews) = await self.round(visitor, anew: anew) {
        self.state.withLock {
          if $0.refreshing?.number == number { $0.refreshing?.isAnswered = true }
        }
      }
      // Before it is stored: a disk that hangs must keep nobody from the next fetch.
      self.land(number)
      if isNews || self.state.withLock({ $0.isStoreUnread }) {
        await self.persist()
      } else if case .failure = result, let store = self.store {
        // Another process of the app may have got what this one does not.
        await self.onStorage { self.read(store) }
      }
      return result
    }
    let flight = Flight(
      number: number, task: task, bypassesCaches: bypassingCaches, isAnew: anew,
      begun: clocks.steady())
    state.refreshing = flight
    return flight
  }

  /// From now on nobody joins this fetch.
  private func land(_ number: UInt64) {
    state.withLock { if $0.refreshing?.number == number { $0.refreshing = nil } }
  }

  private enum Word {
    case answered(place: Int, Visit)
    case secondPassed(place: Int)
  }

  /// Asks the app's own URL and, where that one fails or is slow, the mirrors.
  ///
  /// - Parameter ownAnswered: called when the app's own URL has answered.
  /// - Returns: whether the pins changed, or why the app's own URL brought nothing; and whether there is
  ///   something to store.
  private func round(
    _ visitor: RegistryVisitor, anew: Bool, ownAnswered: () -> Void
  ) async -> (Result<Bool, SslPinningError>, isNews: Bool) {
    let places = [.own] + visitor.asked.mirrors.map(RegistrySource.Place.mirror)
    let (words, tell) = AsyncStream.makeStream(of: Word.self)
    let clocks = clocks
    let ask = { (place: Int) -> Task<Void, Never>? in
      promptTask {
        let visit = await self.ask(places[place], by: visitor)
        // Who comes when the round is over has put in force what is newer all the same.
        if case .terminated = tell.yield(.answered(place: place, visit)), visit.isNews {
          await self.persist()
        }
      }
      guard place + 1 < places.count else { return nil }
      return promptTask {
        try? await clocks.sleep(RegistryRound.patience)
        tell.yield(.secondPassed(place: place))
      }
    }
    var round = RegistryRound(places: places.count, isAnew: anew)
    var (isNews, isChange) = (false, false)
    var failure: SslPinningError?
    var hasNewer = false
    var patience = ask(0)
    for await word in words {
      let next: Int?
      switch word {
      case .secondPassed(let place): next = round.secondPassed(for: place)
      case .answered(let place, let visit):
        isNews = isNews || visit.isNews
        if place == 0 { ownAnswered() }
        switch visit.result {
        case .success(let news):
          hasNewer = hasNewer || news.isNewer
          isChange = isChange || news.isChange
        // Of the app's own URL alone: a mirror that says nothing new must not hide that it is gone.
        case .failure(let error): if place == 0 { failure = error }
        }
        next = round.answer(visit.answer, of: place)
      }
      if round.isOver { break }
      guard let next else { continue }
      patience?.cancel()
      patience = ask(next)
    }
    patience?.cancel()
    tell.finish()
    for await case .answered(_, let visit) in words { isNews = isNews || visit.isNews }
    if let failure {
      let now = clocks.steady()
      let failures = state.withLock { state in
        state.schedule.failed(retryAfter: failure.retryAfter, at: now)
        return state.schedule.failures
      }
      events.send(.refreshFailed(failure, consecutive: failures))
      guard hasNewer else { return (.failure(failure), isNews) }
    } else {
      state.withLock { $0.schedule.succeeded(at: clocks.steady()) }
    }
    if !isChange { events.send(.registryConfirmed(status)) }
    return (.success(isChange), isNews)
  }

  /// What is to be in force next.
  struct Change {
    var registry: TrustedRegistry
    /// `nil`: as before, or the cache if it is another document.
    var origin: RegistryStatus.Origin?
    /// The tag of its document, where it has come with one.
    var tag: DocumentTag?
  }

  /// Puts in force what `make` makes of the registry in force, and waits for its turn.
  ///
  /// It is made without holding the lock that verdicts take. But one is made at a time, in the order in which they come: a fetch,
  /// and what another process had stored, may end at one time, and neither takes the other back. If it were made again after
  /// each other change, a list that takes long to judge would never be in force beside a server that answers often.
  ///
  /// - Important: blocks. All clients of a process share the threads of ``promptTask(_:)``, so there it is ``put(_:)``.
  /// - Returns: whether its pins are others than before.
  @discardableResult
  func putNow(_ make: (TrustedRegistry) -> Change?) throws(SslPinningError) -> Bool {
    let exchanged = turns.sync {
      Result { () throws(SslPinningError) in try exchange(trusted, by: make) }
    }
    return try tell(exchanged.get())
  }

  /// The same, without a thread that waits.
  ///
  /// - Parameter make: what is to be in force next, and what is to be told of that.
  func put<Told: Sendable>(
    _ make: @escaping @Sendable (TrustedRegistry) -> (Change?, Told)
  ) async throws(SslPinningError) -> (isChange: Bool, told: Told) {
    let result: Result<(Exchange?, Told), SslPinningError> = await withCheckedContinuation {
      waiting in
      turns.async {
        let base = self.trusted
        let (change, told) = make(base)
        let exchanged = Result { () throws(SslPinningError) in
          (try self.exchange(base) { _ in change }, told)
        }
        waiting.resume(returning: exchanged)
      }
    }
    let (exchanged, told) = try result.get()
    return (tell(exchanged), told)
  }

  /// Tells of a change, outside of its turn.
  private func tell(_ exchanged: Exchange?) -> Bool {
    guard let exchanged else { return false }
    if exchanged.hasFork { tellFork() }
    if exchanged.isChange { tellRegistry() }
    if exchanged.isChange || !exchanged.isSameDocument {
      exchanged.pinsChanged?()
      changes.send(())
    }
    return exchanged.isChange
  }

  private struct Exchange {
    /// Whether pins are others.
    var isChange: Bool
    var isSameDocument: Bool
    var hasFork: Bool
    var pinsChanged: (@Sendable () -> Void)?
  }

  private func exchange(
    _ base: TrustedRegistry, by make: (TrustedRegistry) -> Change?
  ) throws(SslPinningError) -> Exchange? {
    guard let change = make(base) else { return nil }
    let newer = change.registry
    let policy = try Self.policy(of: newer, config)
    let now = newer.time(at: clocks.wall())
    var exchange = Exchange(
      isChange: newer.pins(differFrom: base), isSameDocument: newer.isSameDocument(as: base),
      hasFork: newer.stamp.fork != base.stamp.fork)
    state.withLock { state in
      state.trusted = newer
      state.origin = change.origin ?? (exchange.isSameDocument ? state.origin : .cache)
      // A tag names one document.
      if !exchange.isSameDocument || change.tag != nil { state.tag = change.tag }
      if exchange.isChange || !exchange.isSameDocument {
        state.inForce.replace(with: policy, at: now)
      } else {
        // Verdicts stand, and connections need not be judged again.
        state.inForce.restamp(policy)
      }
      exchange.pinsChanged = state.pinsChanged
    }
    return exchange
  }

  /// Stores what is believed, on a queue of its own, and waits for it: three seconds at most. A disk that
  /// hangs takes neither the app's threads nor the next refresh with it.
  func persist() async {
    guard await !onStorage({ self.storeNow() }) else { return }
    tellNotStored("the storage does not answer")
  }

  /// - Returns: whether it was done in time.
  @discardableResult
  private func onStorage(_ work: @escaping @Sendable () -> Void) async -> Bool {
    let isDone = Locked(false)
    await firstOf(
      {
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
          self.storage.async {
            work()
            isDone.withLock { $0 = true }
            continuation.resume()
          }
        }
      }, { try? await Clocks.systemSleep(3) })
    return isDone.withLock { $0 }
  }

  /// Stores what is believed, and goes on with what another process knew beyond it.
  private func storeNow() {
    guard let store else {
      // Said once, not with every refresh.
      let isNew = state.withLock { $0.storage == .kept }
      if isNew { tellNotStored(config.storage.whyNowhere) }
      return
    }
    let (ours, tag) = state.withLock { ($0.trusted, $0.tag) }
    do throws(StateStoreError) {
      let stored = try store.save(ours, tag: tag, under: trust, at: clocks.wall())
      state.withLock { ($0.storage, $0.isStoreUnread) = (.kept, false) }
      if stored.knowsMore(than: ours) { goOn(from: .init(registry: stored)) }
    } catch {
      tellNotStored("\(error)")
      read(store)
    }
  }

  /// Reads what an earlier run stored, or another process, though nothing can be stored now, as on a full disk.
  ///
  /// Whoever shows a new key with each connection has this asked for with each: the same bytes are not verified again within a
  /// minute. By then the clock may be another one, and what it decided another thing.
  private func read(_ store: StateStore) {
    var stored = StateStore.Stored()
    do throws(StateStoreError) {
      let bytes = try store.read()
      let digest = bytes.map(Digest.sha256)
      let now = clocks.wall()
      if let digest, let last = state.withLock(\.lastRead), last.digest == digest,
        (0..<60).contains(now - last.at)
      {
        return
      }
      stored = try store.stored(in: bytes, under: trust, at: now)
      state.withLock { $0.lastRead = digest.map { ($0, now) } }
    } catch {
      guard case .refused(_, let proved) = error else { return }
      stored.learned = proved
    }
    state.withLock { $0.isStoreUnread = false }
    goOn(from: stored)
  }

  private func goOn(from stored: StateStore.Stored) {
    let clock = clocks.wall()
    _ = try? putNow { now in
      let known = now.knowing(stored.learned)
      let both = stored.registry.map { known.merged(withStored: $0, at: clock) } ?? known
      return both.knowsMore(than: now) ? Change(registry: both) : nil
    }
  }

  private func tellNotStored(_ reason: String) {
    state.withLock { $0.storage = .failing(reason: reason) }
    events.send(.registryNotStored(reason: reason))
  }

  func tellFork() {
    if let fork = trusted.stamp.fork { events.send(.registryForked(fork)) }
  }

  /// - Parameter mayResume: whether TLS sessions of this client's own fetches may turn up on a pinned session.
  func tellRegistry(mayResume: Bool = PinnedTransport.mayResumeOthers) {
    events.send(.registryInForce(status))
    let problems = problems
    if !problems.isEmpty { events.send(.registryProblems(problems)) }
    guard mayResume, case .live = source else { return }
    let own = [config.endpointUrl] + trusted.mirrors.map(\.description)
    let hosts = UnpinnedHosts.listed(among: own + (config.reporting?.urls ?? []), by: lists)
    if !hosts.isEmpty { events.send(.listedHostsAskedUnpinned(hosts.map(\.description))) }
  }
}
