import SslPinningRules

extension HistoryEntry {
  /// Whether the watcher of another server has told the same: what this entry says happened came to
  /// be between `base` and `theirs`.
  package func isTold(by theirs: DocumentState, since base: DocumentState) -> Bool {
    guard who == HistoryEntry.watcher, let pin else { return false }
    let (before, after) = (base.key(pin, of: endpoint), theirs.key(pin, of: endpoint))
    switch event {
    case LedgerEvent.published(pin, isFirst: false).name,
      LedgerEvent.waiting(pin, looks: 1, needed: 1).name:
      return before == nil && after != nil
    case LedgerEvent.held(pin, []).name:
      return before == nil && (after != nil || theirs.isHeld(pin, at: endpoint))
        && !base.isHeld(pin, at: endpoint)
    case LedgerEvent.activated(pin).name:
      return before?.staged != nil && after != nil && after?.staged == nil
    case LedgerEvent.retired(pin).name, LedgerEvent.withdrawn(pin).name:
      return before != nil && after == nil
    default: return false
    }
  }
}

extension DocumentState {
  fileprivate func key(_ pin: SPKIPin, of endpoint: String) -> KnownKey? {
    ledgers[endpoint]?.keys.first { $0.pin == pin }
  }

  fileprivate func isHeld(_ pin: SPKIPin, at endpoint: String) -> Bool {
    ledgers[endpoint]?.held[pin] != nil
  }
}
