import RegistryCore
import SslPinningRules

/// Hands the probes of one endpoint to the coordinator of its document.
struct CoordinatedEndpoint: ProbeReceiver {
  let coordinator: DocumentCoordinator
  let endpoint: WatchedEndpoint
  let clock: any ServerClock
  /// Has a few of the other endpoints probed.
  var probeOthers: @Sendable () async -> Void = {}

  func enter(_ probe: ProbeResult) async -> NextProbe {
    coordinator.services.metrics?.probed(
      at: endpoint, in: coordinator.file, taking: probe.duration, probe, at: clock.now())
    tellOfVantages(probe)
    let entered = await coordinator.enter(probe, of: endpoint, at: clock.now())
    if entered.concernsOthers { await probeOthers() }
    if entered.isWaiting { return .soon }
    guard probe.isAnswered else { return .failed }
    return entered.isDoubtful ? .closely : .onSchedule
  }

  private func tellOfVantages(_ probe: ProbeResult) {
    let log = coordinator.services.log
    for change in coordinator.services.metrics?.vantages.probed(probe, at: clock.now()) ?? [] {
      if let reason = change.reason {
        log.event(.warn, "vantage_silent", ["vantage": change.vantage, "reason": reason])
      } else {
        log.event(.info, "vantage_answers", ["vantage": change.vantage])
      }
    }
  }
}

extension Monitor.Target {
  /// An endpoint of a document.
  init(
    _ endpoint: WatchedEndpoint, of coordinator: DocumentCoordinator, clock: any ServerClock,
    tls: TLSConfiguration, probeOthers: @escaping @Sendable () async -> Void = {}
  ) {
    self.init(
      id: Self.id(of: endpoint.id, in: coordinator), endpoint: endpoint,
      pause: tls.pauseBetweenProbes(of: endpoint),
      decision: CoordinatedEndpoint(
        coordinator: coordinator, endpoint: endpoint, clock: clock, probeOthers: probeOthers))
  }

  /// What an endpoint of a document is called among those of all documents.
  static func id(of endpoint: String, in coordinator: DocumentCoordinator) -> String {
    "\(coordinator.file) \(endpoint)"
  }
}

extension ProbeSchedule.Settings {
  /// What a configuration amounts to.
  ///
  /// 256 probes a time: far more than those that time out in a usual installation, and half of the
  /// descriptors that a process usually may open. Four times the probes that a confirmation takes: what
  /// then still waits goes on with the next probe.
  init(_ tls: TLSConfiguration) {
    self.init(
      confirmationInterval: tls.confirmationInterval, confirmingRepeats: tls.confirmations - 1,
      quickRepeats: max(1, 4 * tls.confirmations) - 1)
  }
}

extension TLSConfiguration {
  /// ``pauseBetweenProbes`` for an endpoint, which may have an interval of its own.
  func pauseBetweenProbes(of endpoint: WatchedEndpoint) -> Int64 {
    var own = self
    own.interval = endpoint.interval ?? interval
    return own.pauseBetweenProbes
  }
}
