import SslPinningRules

/// Keys that are not seen any more, and the CAs behind them.
extension EndpointKeys {
  /// Moves the beginning of every grace time by the time in which nobody could have seen the key.
  /// Probes an hour apart are watching, whatever the interval: a shorter gap is not worth a question.
  ///
  /// - Returns: when a probe last succeeded, as far as that is known.
  mutating func excuseUnwatchedTime(before now: Int64, _ rule: ConfirmationRule) -> Int64 {
    defer { lastSuccess = now }
    // Of another server's probes too, as far as they are known by what they saw.
    guard let last = (keys.map(\.lastSeen) + [lastSuccess].compactMap(\.self)).max() else {
      return now
    }
    let gap = now - last
    guard gap > max(rule.window, Self.watchedGap) else { return last }
    for index in keys.indices {
      keys[index].missedSince = keys[index].missedSince.map { max($0, min($0 + gap, now)) }
    }
    authorities = authorities.mapValues { max($0, min($0 + gap, now)) }
    return last
  }

  /// Enters that a probe did not show the other keys.
  ///
  /// - Parameters:
  ///   - last: when the probe before succeeded.
  ///   - isMissed: whether the probe can tell that a key is gone.
  mutating func miss(
    allBut seen: Set<SPKIPin>, at now: Int64, since last: Int64, _ rule: ConfirmationRule,
    where isMissed: (KnownKey) -> Bool
  ) -> [KeyEvent] {
    var events: [KeyEvent] = []
    for index in keys.indices where !seen.contains(keys[index].pin) && keys[index].staged == nil {
      keys[index].miss(isMissed(keys[index]), at: now, since: last)
      guard let since = keys[index].unaskedSince else { continue }
      let patience = keys[index].patience(rule)
      if now - since >= patience, last - since < patience {
        events.append(.undecided(keys[index].pin))
      }
    }
    for pin in candidates.keys where !seen.contains(pin) { candidates[pin]?.missedProbes += 1 }
    return events
  }

  /// Withdraws momentary keys, only beside a key that is shown and is older, or no momentary one itself: what
  /// is shown instead may as well be the middleman's, and the other one be away.
  mutating func withdrawPassing(beside shown: Set<SPKIPin>, _ now: Int64) -> [KeyEvent] {
    let shown = keys.filter { shown.contains($0.pin) }
    let passing = keys.filter { key in
      key.isPassing(at: now)
        && shown.contains { !$0.isShortLived || $0.firstSeen < key.firstSeen }
    }.map(\.pin)
    for pin in passing { withdraw(pin) }
    return passing.map { .withdrawn($0) }
  }

  /// Publishes keys no more that were missed for their grace time.
  mutating func retire(_ now: Int64, _ rule: ConfirmationRule) -> [KeyEvent] {
    defer { forgetAuthorities(rule) }
    let retired = keys.filter {
      $0.unaskedSince == nil && now - ($0.missedSince ?? now) > rule.grace
    }.map(\.pin)
    let left = keys.filter { !retired.contains($0.pin) && $0.staged == nil }
    guard !retired.isEmpty, !left.isEmpty else { return [] }
    keys.removeAll { retired.contains($0.pin) }
    return retired.map { .retired($0) }
  }

  /// Remembers the CAs of a published key, by the keys above it.
  mutating func learn(_ paths: some Sequence<[SPKIPin]>, _ now: Int64) {
    for pin in paths.flatMap(SeenChain.authorities) { authorities[pin] = now }
    while authorities.count > Self.maximumAuthorities,
      let oldest = authorities.min(by: { ($0.value, $0.key) < ($1.value, $1.key) })
    {
      authorities[oldest.key] = nil
    }
  }

  /// Forgets CAs that were left: those that no published key was seen under last, and under which none was
  /// seen for the grace time, while others were.
  private mutating func forgetAuthorities(_ rule: ConfirmationRule) {
    guard let newest = authorities.values.max() else { return }
    let inUse = Set(keys.flatMap(\.authorities))
    authorities = authorities.filter {
      newest - $0.value <= rule.grace || inUse.contains($0.key)
    }
  }

  /// Knows the CAs again of a key that is no longer denied: the next key under one of them must not wait until this one
  /// is seen again.
  mutating func readmit(_ pin: SPKIPin) {
    for key in keys where key.pin == pin {
      for authority in key.authorities {
        authorities[authority] = max(authorities[authority] ?? .min, key.lastSeen)
      }
    }
  }

  /// Forgets the CAs that a key which was just denied may have brought in: those that no key is under that is
  /// left. If nobody knows under which CAs those are, as of an older record, or none is left, all stay known.
  ///
  /// - Parameter denied: all denied keys, this one among them.
  mutating func disown(_ pin: SPKIPin, among denied: Set<SPKIPin>) {
    let others = keys.filter { !denied.contains($0.pin) && $0.staged == nil }
    guard keys.contains(where: { $0.pin == pin }), !others.isEmpty,
      others.allSatisfy({ !$0.authorities.isEmpty })
    else { return }
    let kept = Set(others.flatMap(\.authorities))
    authorities = authorities.filter { kept.contains($0.key) }
  }
}
