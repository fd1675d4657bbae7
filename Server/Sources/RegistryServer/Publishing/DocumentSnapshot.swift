import SslPinningRules

/// All that is known of a document at one moment, to be shown.
struct DocumentSnapshot: Sendable {
  let file: String
  let settings: KeeperSettings
  let state: DocumentState
  /// The endpoints in force.
  let endpoints: [WatchedEndpoint]
  /// By the endpoints' ids.
  let lastLooks: [String: LastLook]
  let published: PublishedDocument?

  /// The hosts whose last validated path has this key above the leaf: denied, it would have clients refuse them all.
  /// Before the first look since the start, and where that failed, issuer and anchor are known of the one before.
  func hosts(under pin: SPKIPin) -> [String] {
    endpoints.filter { endpoint in
      let newest = state.ledgers[endpoint.id]?.authorities.values.max()
      return newest.map { state.ledgers[endpoint.id]?.authorities[pin] == $0 } ?? false
        || paths(of: endpoint.id).contains { $0.dropFirst().contains { $0.pin == pin } }
    }.flatMap { $0.patterns.map(\.description) }
  }

  /// Whether any endpoint has shown this key, as its own or above it.
  func knows(_ pin: SPKIPin) -> Bool {
    let ledgers = state.ledgers.values
    return ledgers.contains { ledger in
      ledger.keys.contains { $0.pin == pin } || ledger.candidates[pin] != nil
        || ledger.authorities[pin] != nil
    } || lastLooks.keys.contains { paths(of: $0).contains { $0.contains { $0.pin == pin } } }
  }

  private func paths(of id: String) -> [[SeenCertificate]] {
    (lastLooks[id]?.look.observations ?? []).compactMap {
      guard case .accepted(let chain) = $0.outcome else { return nil }
      return chain.path
    }
  }
}
