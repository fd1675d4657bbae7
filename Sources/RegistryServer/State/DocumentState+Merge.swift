extension DocumentState {
  /// This state after another server wrote `theirs`, both on top of `base`. What people decided is as
  /// they left it; what looks showed is united.
  func merging(_ theirs: DocumentState, base: DocumentState) -> DocumentState {
    var merged = theirs
    let ids = Set(ledgers.keys).union(theirs.ledgers.keys)
    for id in ids where theirs.tombstones[id] == nil {
      let common = base.ledgers[id] ?? DomainLedger()
      switch (ledgers[id], theirs.ledgers[id]) {
      case (let own?, let other?): merged.ledgers[id] = own.merging(other, base: common)
      // Theirs has lost it, or was never told of it.
      case (let own?, nil): merged.ledgers[id] = common.hasKept ? nil : own
      default: break
      }
    }
    for (id, own) in alerts where own != base.alerts[id] { merged.alerts[id] = own }
    for id in base.alerts.keys where alerts[id] == nil { merged.alerts[id] = nil }
    return merged
  }
}
