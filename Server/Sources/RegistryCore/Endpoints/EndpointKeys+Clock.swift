import SslPinningRules

extension EndpointKeys {
  /// Takes back times that are still to come: they were written by a clock that was ahead, and was put right.
  ///
  /// - Kept, they would be the newest time for as long as that clock was ahead: confirmations would be added up
  ///   over days, and no key would retire. So whatever is said to have been later was now.
  /// - Probes that were counted under the other clock confirm nothing: counting starts again. Held keys stay.
  /// - Times up to ``SteadyTime/tolerance`` ahead are another server's, whose clock differs.
  mutating func endTimesToCome(at clock: Int64) {
    let times =
      keys.flatMap { [$0.lastSeen, $0.missedSince ?? $0.lastSeen] } + authorities.values
      + candidates.values.map(\.lastSeen) + [lastSuccess].compactMap(\.self)
    guard let newest = times.max(), newest > clock + SteadyTime.tolerance else { return }
    lastSuccess = lastSuccess.map { min($0, clock) }
    authorities = authorities.mapValues { min($0, clock) }
    for index in keys.indices { keys[index].endTimesToCome(at: clock) }
    keys = Self.sorted(keys)
    candidates = held.mapValues { candidate in
      var candidate = candidate
      candidate.endTimesToCome(at: clock)
      return candidate
    }
  }
}

extension KnownKey {
  fileprivate mutating func endTimesToCome(at clock: Int64) {
    firstSeen = min(firstSeen, clock)
    lastSeen = min(lastSeen, clock)
    seenAt = seenAt.mapValues { min($0, clock) }
    missedSince = missedSince.map { min($0, clock) }
    unaskedSince = unaskedSince.map { min($0, clock) }
    if let staging = staged { staged?.at = min(staging.at, clock) }
  }
}

extension CandidateKey {
  fileprivate mutating func endTimesToCome(at clock: Int64) {
    firstSeen = min(firstSeen, clock)
    lastSeen = min(lastSeen, clock)
    witnesses = witnesses.mapValues {
      Witness(probes: $0.probes, lastSeen: min($0.lastSeen, clock))
    }
  }
}
