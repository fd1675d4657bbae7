import Foundation
import SslPinningPlatform
import SslPinningRules

/// The first registry, and the refreshes that nobody asks for.
extension RegistryUpdater {
  /// - Parameter handed: a document that came by another road; here only where there is nothing else.
  /// - Returns: what to begin with, what is known of key sets, and whether the store holds a file that could not
  ///   be read.
  static func startingPoint(
    _ config: SslPinningConfig, _ trust: RegistryTrust, _ store: StateStore?, handed: [UInt8]?,
    _ events: Broadcast<PinningEvent>, on queue: DispatchQueue, at clock: Int64
  ) async throws(SslPinningError) -> (InitialRegistry?, LearnedKeySets, isStoreUnread: Bool) {
    var stored = StateStore.Stored()
    var isStoreUnread = false
    switch await load(store, trust, on: queue, at: clock) {
    case .success(let read)?: stored = read
    case .failure(let error)?:
      switch error {
      case .file: isStoreUnread = true
      case .refused(_, let proved): stored.learned = proved
      }
      events.send(.storedRegistryRefused(reason: "\(error)"))
    case nil:
      isStoreUnread = true
      events.send(.storedRegistryRefused(reason: "the storage does not answer"))
    }
    var bundled: TrustedRegistry?
    if let bytes = config.bundledRegistry {
      do throws(RegistryError) {
        bundled = try TrustedRegistry(bundled: [UInt8](bytes), under: trust, at: clock)
      } catch { throw .badBundledRegistry(error) }
    }
    if let start = InitialRegistry(stored: stored, bundled: bundled, at: clock) {
      return (start, stored.learned, isStoreUnread)
    }
    guard let handed else { return (nil, stored.learned, isStoreUnread) }
    switch TrustedRegistry.first(
      handed, under: trust, knowing: stored.learned, at: clock, by: .hand)
    {
    case .believed(let registry):
      return (InitialRegistry(handed: registry), stored.learned, isStoreUnread)
    case .refused(_, let learned):
      // Not told yet: it is tried again once the network brought a list.
      if learned.epoch > stored.learned.epoch, !isStoreUnread {
        try? store?.save(learned, under: trust, at: clock)
      }
      return (nil, learned, isStoreUnread)
    }
  }

  /// What is stored; `nil` if the storage hangs. It is read on a queue of its own: a disk that does not answer must not
  /// keep a thread that other clients need. Only that is limited: a long list on a slow device takes its time to verify.
  private static func load(
    _ store: StateStore?, _ trust: RegistryTrust, on queue: DispatchQueue, at clock: Int64
  ) async -> Result<StateStore.Stored, StateStoreError>? {
    guard let store else { return .success(StateStore.Stored()) }
    let found = Locked<Result<[UInt8]?, StateStoreError>?>(nil)
    await firstOf(
      {
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
          queue.async {
            let read = Result { () throws(StateStoreError) in try store.read() }
            found.withLock { $0 = read }
            continuation.resume()
          }
        }
      }, { try? await Clocks.systemSleep(3) })
    return found.withLock { $0 }?.flatMap { bytes in
      Result { () throws(StateStoreError) in
        try store.stored(in: bytes, under: trust, at: clock)
      }
    }
  }

  static func first(
    _ atHand: InitialRegistry?, knowing learned: LearnedKeySets, from source: RegistrySource,
    under trust: RegistryTrust, at url: String, clocks: Clocks, store: StateStore?
  ) async throws(SslPinningError) -> (TrustedRegistry, RegistryStatus.Origin, DocumentTag?) {
    let bytes: [UInt8]
    let origin: RegistryStatus.Origin
    var etag: String?
    switch source {
    case .document(let document): (bytes, origin) = (document, .bundle)
    case .live(let fetch):
      if let atHand { return (atHand.registry, atHand.origin, atHand.tag) }
      let ask = RegistrySource.Ask(
        etag: nil, bypassesCaches: false, time: TrustTime(clock: clocks.wall()))
      switch await fetch(ask) {
      case .success(.fresh(let document, let tag)):
        (bytes, origin, etag) = (document, .network, tag)
      case .success(.unchanged): throw SslPinningError(.status(304), url: url)
      case .failure(let error): throw SslPinningError(error, url: url)
      }
    }
    let clock = clocks.wall()
    switch TrustedRegistry.first(bytes, under: trust, knowing: learned, at: clock) {
    case .believed(let registry): return (registry, origin, etag.flatMap { DocumentTag($0) })
    case .refused(let error, let now):
      if now.epoch > learned.epoch { try? store?.save(now, under: trust, at: clock) }
      throw SslPinningError(error, url: url)
    }
  }

  static func policy(
    of trusted: TrustedRegistry, _ config: SslPinningConfig
  ) throws(SslPinningError) -> PinningPolicy {
    do throws(PolicyError) {
      return try trusted.policy(
        trust: config.trust, unlistedHosts: config.unlistedHosts,
        enforcement: config.enforcement, whenExpired: config.whenExpired)
    } catch { throw .badConfiguration(error) }
  }

  /// Refreshes at the start, and returns after ``Clocks/longestRefresh`` at the latest; the fetch goes on.
  ///
  /// What is expired, or was confirmed too long ago, is not hurried back to: a program that runs for seconds
  /// behind a slow registry would otherwise never finish a fetch.
  func refreshBriefly() async {
    let (trusted, origin) = state.withLock { ($0.trusted, $0.origin) }
    let clock = self.clocks.wall()
    guard !trusted.isExpired(at: clock), origin != .cache || !trusted.stamp.isStale(at: clock)
    else {
      _ = await refresh(bypassingCaches: false)
      return
    }
    let (clocks, keeper) = (clocks, self)
    await firstOf(
      { _ = await keeper.refresh(bypassingCaches: false) },
      { try? await clocks.sleep(clocks.longestRefresh) })
  }

  /// Believes a document that was handed over at the start. One that needs its payload fetched is waited for
  /// like a refresh.
  func acceptBriefly(_ handed: [UInt8]) async {
    let (clocks, keeper) = (clocks, self)
    await firstOf(
      {
        do throws(SslPinningError) { _ = try await keeper.accept(handed: handed) } catch {
          keeper.events.send(.handedRegistryRefused(error))
        }
      },
      { try? await clocks.sleep(clocks.longestRefresh) })
  }

  /// Refreshes by schedule for as long as the keeper lives.
  func keepRefreshing() {
    let clocks = clocks
    let background = promptTask { [weak self] in
      while let delay = self?.secondsToNextRefresh(), !Task.isCancelled {
        do { try await clocks.sleep(delay) } catch { return }
        // Somebody else may have refreshed meanwhile.
        guard let keeper = self else { return }
        if keeper.isRefreshDue { _ = await keeper.refresh(bypassingCaches: false) }
      }
    }
    state.withLock { $0.background = background }
  }

  private func secondsToNextRefresh() -> Double {
    let now = clocks.steady()
    return state.withLock { $0.schedule.delay(at: now, random: clocks.random()) }
  }

  /// By either clock: one may have stood still, as in a virtual machine that was paused.
  private var isRefreshDue: Bool {
    let (now, clock) = (clocks.steady(), clocks.wall())
    return state.withLock {
      $0.schedule.isDue(at: now, age: $0.trusted.stamp.age(at: clock))
    }
  }
}
