import RegistryCore
import TLSTools

/// What is watched, and how: the part of a configuration that a running server can exchange.
struct WatchPlan: Sendable {
  /// The keepers of the documents, in the order configured.
  var keepers: [DocumentKeeper]
  var observer: any EndpointObserver
  var tls: TLSConfiguration

  /// A watcher for it, of nothing yet.
  func watcher(clock: any ServerClock, health: ServiceHealth) -> Watcher {
    let watcher = Watcher(
      observer: observer, clock: clock, settings: LookSchedule.Settings(tls)
    ) {
      health.finishedFirstLook()
    }
    (observer as? any ResolvingObserver)?.whenFoundLate { [weak watcher] in
      watcher?.hasten(host: $0)
    }
    return watcher
  }

  /// The endpoints in force, as this watcher is to watch them.
  func targets(of watcher: Watcher, clock: any ServerClock) async -> [Watcher.Target] {
    let lookAtOthers: @Sendable () async -> Void = { [weak watcher, keepers] in
      watcher?.hasten(await Self.sample(of: keepers))
    }
    var targets: [Watcher.Target] = []
    for keeper in keepers {
      let paused = await keeper.pausedEndpoints
      targets += await keeper.endpoints.map { endpoint in
        var target = Watcher.Target(
          endpoint, of: keeper, clock: clock, tls: tls, lookAtOthers: lookAtOthers)
        target.isPaused = paused.contains(endpoint.id)
        return target
      }
    }
    return targets
  }

  /// A few endpoints, no two of which share their keys.
  private static func sample(of keepers: [DocumentKeeper]) async -> [String] {
    var found: [ChangeGauge.Group: String] = [:]
    for keeper in keepers {
      for (group, id) in await keeper.representatives() {
        found[group] = Watcher.Target.id(of: id, in: keeper)
      }
    }
    return Array(found.values.shuffled().prefix(ChangeGauge.sample))
  }
}
