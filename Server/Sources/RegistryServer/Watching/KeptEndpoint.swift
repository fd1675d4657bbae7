import RegistryCore
/// Hands the looks at one endpoint to the keeper of its document.
struct KeptEndpoint: LookDecision {
  let keeper: DocumentKeeper
  let endpoint: WatchedEndpoint
  let clock: any ServerClock
  /// Has a few of the other endpoints looked at.
  var lookAtOthers: @Sendable () async -> Void = {}

  func enter(_ look: Look) async -> NextLook {
    keeper.services.metrics?.looked(
      at: endpoint, in: keeper.file, taking: look.duration, look, at: clock.now())
    tellOfVantages(look)
    let entered = await keeper.enter(look, of: endpoint, at: clock.now())
    if entered.concernsOthers { await lookAtOthers() }
    if entered.isWaiting { return .soon }
    guard look.isAnswered else { return .failed }
    return entered.isDoubtful ? .closely : .onSchedule
  }

  private func tellOfVantages(_ look: Look) {
    let log = keeper.services.log
    for change in keeper.services.metrics?.vantages.looked(look) ?? [] {
      if let reason = change.reason {
        log.event(.warn, "vantage_silent", ["vantage": change.vantage, "reason": reason])
      } else {
        log.event(.info, "vantage_answers", ["vantage": change.vantage])
      }
    }
  }
}

extension Watcher.Target {
  /// An endpoint of a document.
  init(
    _ endpoint: WatchedEndpoint, of keeper: DocumentKeeper, clock: any ServerClock,
    tls: TLSConfiguration, lookAtOthers: @escaping @Sendable () async -> Void = {}
  ) {
    self.init(
      id: Self.id(of: endpoint.id, in: keeper), endpoint: endpoint,
      pause: tls.pauseBetweenLooks(of: endpoint),
      decision: KeptEndpoint(
        keeper: keeper, endpoint: endpoint, clock: clock, lookAtOthers: lookAtOthers))
  }

  /// What an endpoint of a document is called among those of all documents.
  static func id(of endpoint: String, in keeper: DocumentKeeper) -> String {
    "\(keeper.file) \(endpoint)"
  }
}

extension LookSchedule.Settings {
  /// What a configuration amounts to.
  ///
  /// 256 looks at a time: far more than those that time out in a usual installation, and half of the
  /// descriptors that a process usually may open. Four times the looks that a confirmation takes: what
  /// then still waits goes on with the next look.
  init(_ tls: TLSConfiguration) {
    self.init(lookInterval: tls.lookInterval, quickRepeats: max(1, 4 * tls.looks) - 1)
  }
}

extension TLSConfiguration {
  /// ``pauseBetweenLooks`` for an endpoint, which may have an interval of its own.
  func pauseBetweenLooks(of endpoint: WatchedEndpoint) -> Int64 {
    var own = self
    own.interval = endpoint.interval ?? interval
    return own.pauseBetweenLooks
  }
}
