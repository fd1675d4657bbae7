import SslPinningRules

/// Announced keys that no probe has shown: a renewal that does not go on, or a key announced for the wrong endpoint.
///
/// - They stay published however long it takes: whoever announced one may still use it.
/// - After a week somebody is told, and for a week: a key that is kept in reserve is told of once, and not for ever.
extension DocumentState {
  /// From when on, and until when somebody is told, in seconds since the key was announced.
  static let unshown = 7 * ServerAlert.day..<14 * ServerAlert.day

  /// Keeps the alerts about an endpoint's announced keys in step.
  mutating func noteStagedKeys(of endpoint: String, at now: Int64) {
    let denied = deniedPins
    var told: Set<SPKIPin> = []
    for key in keysByEndpoint[endpoint]?.keys ?? [] where !denied.contains(key.pin) {
      guard let staging = key.staged, Self.unshown.contains(now - staging.at) else { continue }
      told.insert(key.pin)
      raise(
        ServerAlert(
          kind: .stagedKeyUnshown, endpoint: endpoint, pin: key.pin,
          message:
            "a key that \(staging.by) announced a week ago or more is not shown; hint: does announce --resume"
            + " run where it is to be used? else revoke it, if it is not kept in reserve",
          since: now))
    }
    settle(endpoint) {
      $0.kind == .stagedKeyUnshown && $0.pin.map { !told.contains($0) } ?? true
    }
  }

  /// What is told of an edit of the configuration that these endpoints come with.
  func notices(configuring endpoints: [WatchedEndpoint]) -> [DocumentNotice] {
    wordsLost(configuring: endpoints).map(DocumentNotice.wordsLost)
      + announcedForMore(configuring: endpoints)
  }

  /// Hosts that an endpoint gets which has announced keys that nobody has seen: they count for these, too, and whoever
  /// announced them may have been let do so for the others alone.
  private func announcedForMore(configuring endpoints: [WatchedEndpoint]) -> [DocumentNotice] {
    let known = Dictionary(
      watched.map { ($0.id, $0.patterns) }, uniquingKeysWith: { one, _ in one })
    return self.endpoints(configured: endpoints).compactMap { endpoint in
      let staged = keysByEndpoint[endpoint.id]?.keys.filter { $0.staged != nil } ?? []
      guard !staged.isEmpty, let before = known[endpoint.id] else { return nil }
      let joined = endpoint.patterns.filter { !before.contains($0) }
      guard !joined.isEmpty else { return nil }
      return .announcedForMore(endpoint.id, joined, staged.map(\.pin))
    }
  }
}
