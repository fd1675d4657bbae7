import RegistryCore
import TLSTools

/// What is watched, and how: the part of a configuration that a running server can exchange.
struct MonitoringPlan: Sendable {
  /// The coordinators of the documents, in the order configured.
  var coordinators: [DocumentCoordinator]
  var observer: any EndpointProber
  var tls: TLSConfiguration

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
      for (group, id) in await coordinator.representatives() {
        found[group] = Monitor.Target.id(of: id, in: coordinator)
      }
    }
    return Array(found.values.shuffled().prefix(MassChangeDetector.sample))
  }
}
