import SslPinningRules

extension DocumentState {
  /// Puts back an endpoint that a request took out, since what its hosts were left to is gone by now. What was decided about it since
  /// stays.
  ///
  /// - Parameter before: what was known when it was taken out.
  package mutating func takeBackRemoval(
    of id: String, by request: Request, from before: DocumentState,
    because objection: AdministrationError, at now: Int64
  ) -> [HistoryEntry] {
    guard let tombstone = tombstones[id], tombstone.by == request.who, tombstone.at == request.at
    else { return [] }
    tombstones[id] = nil
    added += before.added.filter { $0.id == id }
    overrides[id] = before.overrides[id]
    keysByEndpoint[id] = before.keysByEndpoint[id]
    alerts[id] = before.alerts[id]
    let kept = Set(before.removed)
    removed.removeAll { pattern in
      !kept.contains(pattern)
        && before.watched.contains { $0.id == id && $0.patterns.contains(pattern) }
    }
    return [
      HistoryEntry(
        time: now, event: "endpoint_added", endpoint: id,
        why: "the removal is taken back: \(objection)", who: request.who)
    ]
  }
}
