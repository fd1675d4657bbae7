/// Looks at every endpoint on time and hands what it saw to the keeper of its document.
///
/// - Each endpoint is looked at often enough that an unannounced change is confirmed and published
///   within the interval. A look that meets a new key is repeated after the look interval until the
///   key is confirmed or refuted, at most four times the looks that it takes; what then still waits
///   goes on with the next look.
/// - No more than 256 looks are under way at a time, whatever the number of endpoints: far more than
///   those that time out in a usual installation, which would otherwise keep the others waiting.
struct Watcher: Sendable {
  let keepers: [DocumentKeeper]
  let observer: any EndpointObserver
  let clock: any ServerClock
  let tls: TLSConfiguration
  let health: ServiceHealth
  /// Below what the probe has under way at a time, and half of the descriptors that a process usually
  /// may open.
  static let lookLimit = 256
  private let gate = LookGate(limit: Self.lookLimit)

  init(
    keepers: [DocumentKeeper], observer: any EndpointObserver, clock: any ServerClock,
    tls: TLSConfiguration, health: ServiceHealth
  ) {
    self.keepers = keepers
    self.observer = observer
    self.clock = clock
    self.tls = tls
    self.health = health
  }

  /// Watches until the task is cancelled.
  func run() async {
    var pairs: [(DocumentKeeper, WatchedEndpoint)] = []
    for keeper in keepers { pairs += await keeper.endpoints.map { (keeper, $0) } }
    health.expect(firstLooks: pairs.count)
    await withTaskGroup(of: Void.self) { group in
      for (keeper, endpoint) in pairs {
        group.addTask {
          await look(at: endpoint, for: keeper)
          health.finishedFirstLook()
          while await pause(tls.pauseBetweenLooks) { await look(at: endpoint, for: keeper) }
        }
      }
      for keeper in keepers {
        group.addTask { while await pause(tls.interval) { await keeper.upkeep(at: clock.now()) } }
      }
    }
  }

  /// Looks at an endpoint, again and again while a key waits for confirmation.
  func look(at endpoint: WatchedEndpoint, for keeper: DocumentKeeper) async {
    for _ in 0..<max(1, 4 * tls.looks) {
      await gate.enter()
      let look = await observer.look(at: endpoint)
      await gate.leave()
      guard !Task.isCancelled else { return }
      guard await keeper.enter(look, of: endpoint, at: clock.now()), await pause(tls.lookInterval)
      else { return }
    }
  }

  /// Waits; false when the watching is over.
  private func pause(_ milliseconds: Int64) async -> Bool {
    do { try await clock.sleep(milliseconds: milliseconds) } catch { return false }
    return !Task.isCancelled
  }
}

/// Lets so many through at a time; the others wait in order.
private actor LookGate {
  private var free: Int
  private var waiting: [CheckedContinuation<Void, Never>] = []

  init(limit: Int) { free = limit }

  func enter() async {
    guard free == 0 else {
      free -= 1
      return
    }
    await withCheckedContinuation { waiting.append($0) }
  }

  func leave() {
    guard !waiting.isEmpty else {
      free += 1
      return
    }
    waiting.removeFirst().resume()
  }
}
