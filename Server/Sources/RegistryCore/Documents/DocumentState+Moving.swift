import SslPinningRules

/// What people decided about hosts of which another document is to speak.
///
/// - Within a document it goes along with a host (see `Succession`). Each document has its own record, so to another one nothing
///   goes: what waits for a person would be a first sight there, a host that people took out would be watched again, and
///   `approval: manual`, terms and announced keys would be gone.
/// - So an edit that does this is refused, or told: people are to say it again where the host is then.
/// - A key that waits is at stake also if the host stays here. What else was said counts for this document alone.
extension DocumentState {
  /// The endpoints of a configuration that speak for something of which this document does not speak yet, with that alone.
  package func newcomers(among configured: [WatchedEndpoint]) -> [WatchedEndpoint] {
    let known = Set((watched + orphans).flatMap(\.patterns))
    return configured.compactMap { endpoint in
      var endpoint = endpoint
      endpoint.patterns.removeAll(where: known.contains)
      return endpoint.patterns.isEmpty ? nil : endpoint
    }
  }

  /// What would not go along, for each endpoint.
  ///
  /// - Parameters:
  ///   - newcomers: the endpoints of the other document that begin to speak for a host.
  ///   - configured: this document's own, after the same edit.
  package func wordsLeft(
    by newcomers: [WatchedEndpoint], keeping configured: [WatchedEndpoint]
  ) -> [String] {
    let kept = Set(endpoints(configured: configured).flatMap(\.patterns))
    let sources = (watched + orphans).filter { source in
      let keys = keysByEndpoint[source.id]
      return overrides[source.id]?.inherited != nil || keys?.held.isEmpty == false
        || keys?.keys.contains { $0.staged != nil } == true
    }
    var left = sources.flatMap { source in
      newcomers.flatMap { newcomer in
        let shared = source.patterns.filter { pattern in
          newcomer.patterns.contains { $0.overlaps(pattern) }
        }
        guard !shared.isEmpty else { return [String]() }
        return words(about: source, missing: newcomer, isMoved: !kept.isSuperset(of: shared))
      }
    }
    let ids = Set(configured.map(\.id))
    left += newcomers.filter { tombstones[$0.id] != nil && !ids.contains($0.id) }.map {
      "\($0.id) was taken out, and would be watched again"
    }
    return Set(left).sorted()
  }

  private func words(
    about source: WatchedEndpoint, missing newcomer: WatchedEndpoint, isMoved: Bool
  ) -> [String] {
    let keys = keysByEndpoint[source.id]
    var words: [String] = []
    if keys?.held.isEmpty == false {
      words.append("a key of \(source.id) waits for a person, and would be a first sight")
    }
    guard isMoved else { return words }
    if overrides[source.id]?.approval == .manual, newcomer.approval != .manual {
      words.append("the keys of \(source.id) wait for a person, and would not any more")
    }
    if let terms = overrides[source.id]?.terms, !newcomer.terms.isSame(as: terms) {
      words.append("\(source.id) is asked for \(terms), and would be for \(newcomer.terms)")
    }
    let denied = deniedPins
    if keys?.keys.contains(where: { $0.staged != nil && !denied.contains($0.pin) }) == true {
      words.append("a key of \(source.id) is announced, and would not be any more")
    }
    return words
  }
}
