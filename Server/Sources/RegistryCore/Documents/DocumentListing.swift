import SslPinningRules

/// Which keys a document lists for which hosts.
///
/// Other documents go by it at first sight. What waits for a person in one of them is not published by
/// having its host in another one, be it moved there or new.
package struct DocumentListing: Sendable {
  private var index: PatternIndex
  private var keys: [String: EndpointKeys]
  /// Whom it does not speak of.
  private var excepted = ""

  init(index: PatternIndex, keys: [String: EndpointKeys], excepted: String) {
    (self.index, self.keys, self.excepted) = (index, keys, excepted)
  }

  /// What a document lists, or listed when it left the configuration.
  package init(_ state: DocumentState) {
    (index, keys) = (PatternIndex(), state.keysByEndpoint)
    for endpoint in state.watched + state.orphans where keys[endpoint.id]?.keys.isEmpty == false {
      index.insert(endpoint.id, endpoint.patterns)
    }
  }

  /// Whether an endpoint for one of these hosts has keys of which something is so.
  func lists(
    _ patterns: [HostPattern], where has: (EndpointKeys) -> Bool = { _ in true }
  ) -> Bool {
    index.overlaps(excepted, patterns) { keys[$0].map(has) ?? false }
  }

  /// The same of what is left of an endpoint that spoke for one of these hosts.
  func left(_ patterns: [HostPattern], where has: (EndpointKeys) -> Bool) -> Bool {
    index.overlaps(excepted, patterns) {
      WatchedEndpoint.isOrphan($0) && keys[$0].map(has) ?? false
    }
  }

  /// The hosts of these patterns that it lists.
  func hosts(of patterns: [HostPattern]) -> Set<HostPattern> {
    index.hosts(of: patterns, but: excepted)
  }

  /// Whether an endpoint that speaks of all of this host has keys of which something is so.
  func speaks(of host: HostPattern, where has: (EndpointKeys) -> Bool) -> Bool {
    index.ids(covering: host).contains { $0 != excepted && keys[$0].map(has) ?? false }
  }
}
