import SslPinningRules

extension HistoryEntry {
  /// Whether the monitor of another server has told the same: what this entry says happened came to
  /// be between `base` and `theirs`.
  package func isTold(by theirs: DocumentState, since base: DocumentState) -> Bool {
    guard who == HistoryEntry.monitor, let pin else { return false }
    let (before, after) = (base.key(pin, of: endpoint), theirs.key(pin, of: endpoint))
    switch event {
    case KeyEvent.published(pin, isFirst: false).name,
      KeyEvent.waiting(pin, probes: 1, needed: 1).name:
      return before == nil && after != nil
    case KeyEvent.held(pin, []).name:
      return before == nil && (after != nil || theirs.isHeld(pin, at: endpoint))
        && !base.isHeld(pin, at: endpoint)
    case KeyEvent.activated(pin).name:
      return before?.staged != nil && after != nil && after?.staged == nil
    case KeyEvent.retired(pin).name, KeyEvent.withdrawn(pin).name:
      return before != nil && after == nil
    default: return false
    }
  }
}

extension DocumentState {
  fileprivate func key(_ pin: SPKIPin, of endpoint: String) -> KnownKey? {
    keysByEndpoint[endpoint]?.keys.first { $0.pin == pin }
  }

  fileprivate func isHeld(_ pin: SPKIPin, at endpoint: String) -> Bool {
    keysByEndpoint[endpoint]?.held[pin] != nil
  }
}
