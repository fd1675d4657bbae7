import SslPinningRules

extension DocumentState {
  /// This state after another server wrote `theirs`, both on top of `base`. What people decided is as
  /// they left it, denials as in ``uniteDenials(with:)``; what probes showed is united.
  package func merging(_ theirs: DocumentState, base: DocumentState) -> DocumentState {
    var merged = theirs
    let ids = Set(keysByEndpoint.keys).union(theirs.keysByEndpoint.keys)
    for id in ids where theirs.tombstones[id] == nil {
      let common = base.keysByEndpoint[id] ?? EndpointKeys()
      switch (keysByEndpoint[id], theirs.keysByEndpoint[id]) {
      case (let own?, let other?): merged.keysByEndpoint[id] = own.merging(other, base: common)
      // Theirs has lost it, or was never told of it.
      case (let own?, nil): merged.keysByEndpoint[id] = common.hasKept ? nil : own
      default: break
      }
    }
    for id in Set(alerts.keys).union(base.alerts.keys) where theirs.tombstones[id] == nil {
      merged.mergeAlerts(of: id, alerts[id] ?? [], base: base.alerts[id] ?? [])
    }
    merged.uniteDenials(with: self)
    return merged
  }

  /// Those that began here come, those that ended here go.
  private mutating func mergeAlerts(of id: String, _ own: [ServerAlert], base: [ServerAlert]) {
    func has(_ alerts: [ServerAlert], _ alert: ServerAlert) -> Bool {
      alerts.contains { $0.kind == alert.kind && $0.pin == alert.pin }
    }
    settle(id) { has(base, $0) && !has(own, $0) }
    // With those of a moment that began anew.
    for alert in own where !base.contains(where: { $0.identity == alert.identity }) { raise(alert) }
  }

  /// What is said where a store went back.
  package static let wentBackMessage =
    "the store has an older record than it had; what probes showed and what was denied is written again; "
    + "hint: endpoints that people added, paused, changed or took out since must be so again"

  /// This state on top of an older record, which is in force again: what people decided is as it was then,
  /// but for denials, and what probes showed is as it is known here. What is written next is newer than
  /// everything up to `newest`.
  package func goingOn(from theirs: DocumentState, after newest: RecordAge) -> DocumentState {
    var merged = merging(theirs, base: theirs)
    merged.returns = newest.nextReturns
    return merged
  }

  /// Denies what other documents deny, unless it was allowed again here: a document that was not kept, or whose
  /// record was not believed, while somebody denied a key.
  ///
  /// - Returns: entries for the history.
  package mutating func takeOver(_ denials: [Denial], at now: Int64) -> [HistoryEntry] {
    var entries: [HistoryEntry] = []
    for denial in denials
    where denial.at > allowed[denial.pin] ?? .min && !deniedPins.contains(denial.pin) {
      allowed[denial.pin] = nil
      denied.append(denial)
      forgetCandidate(denial.pin)
      entries.append(
        HistoryEntry(
          time: now, event: "key_denied", pin: denial.pin, why: denial.why, who: denial.by))
    }
    return entries
  }

  /// Ends what concerns endpoints that are not in force, and what says that hosts in force may be
  /// forgotten: somebody configured them again.
  ///
  /// - Returns: whether something of the record or of the document changed.
  package mutating func forgetLeftovers(_ inForce: [WatchedEndpoint]) -> Bool {
    let ids = Set(inForce.map(\.id))
    var isChanged = false
    for id in Array(alerts.keys) where !id.isEmpty && !ids.contains(id) {
      alerts[id] = nil
      isChanged = true
    }
    guard !removed.isEmpty else { return isChanged }
    let patterns = Set(inForce.flatMap(\.patterns))
    let left = removed.filter { !patterns.contains($0) }
    guard left.count < removed.count else { return isChanged }
    removed = left
    return true
  }

  /// A key that is denied waits for nothing any more, nor does a key under it, and its CA is no longer known for it.
  mutating func forgetCandidate(_ pin: SPKIPin) {
    let denied = deniedPins
    for id in Array(keysByEndpoint.keys) {
      let waiting = keysByEndpoint[id]?.candidates.filter {
        $0.key == pin || $0.value.chain.above.contains(pin)
      }
      for key in waiting?.keys.map({ $0 }) ?? [] {
        keysByEndpoint[id]?.candidates[key] = nil
        settle(.keyHeld, id, pin: key)
      }
      keysByEndpoint[id]?.disown(pin, among: denied)
    }
  }
}
