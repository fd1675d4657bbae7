import TLSTools

/// What is watched, and how: the part of a configuration that a running server can exchange.
struct WatchPlan: Sendable {
  /// The keepers of the documents, in the order configured.
  var keepers: [DocumentKeeper]
  var observer: any EndpointObserver
  var tls: TLSConfiguration

  /// A watcher for it, of nothing yet.
  func watcher(clock: any ServerClock, health: ServiceHealth) -> Watcher {
    Watcher(observer: observer, clock: clock, settings: LookSchedule.Settings(tls)) {
      health.finishedFirstLook()
    }
  }

  /// The endpoints in force.
  func targets(clock: any ServerClock) async -> [Watcher.Target] {
    var targets: [Watcher.Target] = []
    for keeper in keepers {
      let paused = await keeper.pausedEndpoints
      targets += await keeper.endpoints.map { endpoint in
        var target = Watcher.Target(endpoint, of: keeper, clock: clock, tls: tls)
        target.isPaused = paused.contains(endpoint.id)
        return target
      }
    }
    return targets
  }
}
