import SslPinningRules

extension DocumentState {
  /// Whether keys may have been decided about that the signed document does not list yet.
  var mayLackKeys: Bool {
    !document.isEmpty
      && alerts.values.joined().contains {
        [.signing, .storing].contains($0.kind) || $0.kind == .unannouncedKey && $0.since >= signed
      }
  }

  /// The published keys that the signed document does not list for all hosts of their endpoints, by the endpoints' ids.
  func unlistedKeys(of endpoints: [WatchedEndpoint]) -> [String: [KnownKey]] {
    let listed = Dictionary(grouping: DocumentEntry.listed(in: document), by: \.pattern)
      .mapValues { Set($0.map(\.pin)) }
    /// By itself or, if it is not listed, by wildcards.
    func pins(for pattern: HostPattern) -> Set<SPKIPin> {
      listed[pattern] ?? pattern.covering.reduce(into: []) { $0.formUnion(listed[$1] ?? []) }
    }
    let denied = deniedPins
    var unlisted: [String: [KnownKey]] = [:]
    for endpoint in endpoints {
      // One that no list has yet refuses nobody.
      let patterns = endpoint.patterns.map(pins).filter { !$0.isEmpty }
      let keys = (keysByEndpoint[endpoint.id]?.keys ?? []).filter { key in
        !denied.contains(key.pin) && patterns.contains { !$0.contains(key.pin) }
      }
      if !keys.isEmpty { unlisted[endpoint.id] = keys }
    }
    return unlisted
  }
}
