import Pinning
import PinningPlatform

/// Fetching, judging what comes back, and putting it in force.
extension RegistryKeeper {
  typealias Fetch =
    @Sendable (RegistrySource.Ask) async -> Result<
      FetchedDocument, FetchError
    >

  /// The fetch under way, or one that starts now.
  ///
  /// - Parameter anew: whether "unchanged" is no answer: after a refusal, since a mirror whose tag never
  ///   changes would keep a rotation away for good.
  func flight(
    _ state: inout State, _ fetch: @escaping Fetch, bypassingCaches: Bool, anew: Bool = false
  ) -> Task<Result<Bool, SslPinningError>, Never> {
    if let running = state.refreshing { return running }
    let clock = clocks.wall()
    let isUseless = anew || state.trusted.isExpired(at: clock)
    let ask = RegistrySource.Ask(
      etag: isUseless ? nil : state.etag, bypassesCaches: bypassingCaches,
      time: state.trusted.time(at: clock))
    let started = Task {
      let fetched = await fetch(ask)
      let (result, isNews) = self.accept(fetched)
      // Before it is stored: a disk that hangs must keep nobody from the next fetch.
      self.state.withLock { $0.refreshing = nil }
      if isNews { await self.persist() }
      return result
    }
    state.refreshing = started
    return started
  }

  /// - Returns: whether the pins changed, and whether there is something to store.
  private func accept(
    _ fetched: Result<FetchedDocument, FetchError>
  ) -> (Result<Bool, SslPinningError>, isNews: Bool) {
    let old = trusted
    var isNews = false
    var isChange = false
    do throws(SslPinningError) {
      switch fetched {
      case .failure(let error): throw SslPinningError(error, url: config.endpointUrl)
      case .success(.unchanged):
        isChange = try put(old.confirmed(at: clocks.wall()), from: .network)
      case .success(.fresh(let bytes, let etag)):
        let update = old.update(with: bytes, under: trust, at: clocks.wall())
        // Newer key sets are believed even from a document that is not.
        if let refusal = update.refusal {
          state.withLock { $0.trusted = update.registry }
          isNews = true
          throw SslPinningError(refusal, url: config.endpointUrl)
        }
        isChange = try put(update.registry, from: .network)
        state.withLock { $0.etag = etag }
      }
    } catch {
      let failures = state.withLock { state in
        state.schedule.failed(retryAfter: error.retryAfter)
        return state.schedule.failures
      }
      events.send(.refreshFailed(error, consecutive: failures))
      return (.failure(error), isNews)
    }
    state.withLock { $0.schedule.succeeded(at: clocks.steady()) }
    if !isChange { events.send(.registryConfirmed(status)) }
    return (.success(isChange), true)
  }

  /// Puts a registry in force.
  ///
  /// - Returns: whether its pins are others than before.
  private func put(
    _ newer: TrustedRegistry, from origin: RegistryStatus.Origin
  ) throws(SslPinningError) -> Bool {
    let policy = try Self.policy(of: newer, config)
    let now = newer.time(at: clocks.wall())
    let (isChange, isAnswered, pinsChanged) = state.withLock { state in
      let isChange = newer.pins(differFrom: state.trusted)
      let isSameDocument = newer.isSameDocument(as: state.trusted)
      state.trusted = newer
      state.origin = origin
      if isChange || !isSameDocument {
        state.inForce.replace(with: policy, at: now)
      } else {
        // Verdicts stand, and connections need not be judged again.
        state.inForce.restamp(policy)
      }
      return (isChange, isSameDocument && !isChange, state.pinsChanged)
    }
    if isChange { tellRegistry() }
    if !isAnswered { pinsChanged?() }
    return isChange
  }

  /// Stores what is believed, on a queue of its own, and waits for it: three seconds at most. A disk that
  /// hangs takes neither the app's threads nor the next refresh with it.
  func persist() async {
    let isStored = Locked(false)
    await firstOf(
      {
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
          self.storage.async {
            self.storeNow()
            isStored.withLock { $0 = true }
            continuation.resume()
          }
        }
      }, { try? await Clocks.systemSleep(3) })
    if !isStored.withLock({ $0 }) { tellNotStored("the storage does not answer") }
  }

  /// Stores what is believed, and goes on with what another process knew beyond it.
  private func storeNow() {
    guard let store else {
      // Said once, not with every refresh.
      let isNew = state.withLock { $0.storage == .kept }
      if isNew { tellNotStored("the system names no home for this process") }
      return
    }
    let ours = trusted
    do throws(StateStoreError) {
      let merged = try store.save(ours, under: trust, at: clocks.wall())
      state.withLock { $0.storage = .kept }
      guard merged.knowsMore(than: ours) else { return }
      if merged.isSameDocument(as: ours) {
        _ = try? put(merged, from: state.withLock { $0.origin })
      } else {
        state.withLock { $0.etag = nil }
        _ = try? put(merged, from: .cache)
      }
    } catch { tellNotStored("\(error)") }
  }

  private func tellNotStored(_ reason: String) {
    state.withLock { $0.storage = .failing(reason: reason) }
    events.send(.registryNotStored(reason: reason))
  }

  func tellRegistry() {
    events.send(.registryInForce(status))
    let problems = problems
    if !problems.isEmpty { events.send(.registryProblems(problems)) }
  }
}
