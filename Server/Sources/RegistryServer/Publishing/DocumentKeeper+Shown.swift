/// What others see of a document's keeper.
extension DocumentKeeper {
  /// What the document is to say.
  func content(_ state: DocumentState, _ endpoints: [WatchedEndpoint]) -> DocumentContent {
    DocumentContent(state, endpoints: endpoints, mirrors: services.signer.mirrors(of: file))
  }

  /// The ids of endpoints that nobody looks at for now.
  var pausedEndpoints: Set<String> { Set(state.overrides.filter(\.value.isPaused).keys) }

  /// Everything known, to be shown.
  var snapshot: DocumentSnapshot {
    DocumentSnapshot(
      file: file, settings: settings, state: state.markingWhoLeft(inForce), endpoints: endpoints,
      lastLooks: lastLooks, published: services.published.document(file))
  }

  /// One endpoint for each set of keys that endpoints share, picked at random among those that are not
  /// looked at every few seconds anyway: that has its time.
  func representatives() -> [ChangeGauge.Group: String] {
    var picked: [ChangeGauge.Group: String] = [:]
    for endpoint in endpoints.shuffled() where !state.isPaused(endpoint.id) {
      guard let ledger = state.ledgers[endpoint.id], !ledger.keys.isEmpty,
        !ledger.isWaiting
      else { continue }
      picked[ledger.keys.map(\.pin)] = endpoint.id
    }
    return picked
  }

  /// The kinds of alerts of the whole document that are over once it is stored. That a newer key set cannot be
  /// used lasts although the document is signed: under the set before.
  func alertsThatEnd(
    signing: Bool, after state: DocumentState, at now: Int64
  ) -> [ServerAlert.Kind] {
    signing && services.signer.problem(of: file, after: state, at: now) == nil
      ? [.storing, .signing] : [.storing]
  }

  /// Whether what the store has of this document can be read. Nothing of it is taken over.
  func check() async throws(StoreError) {
    guard let record = try await services.store.record(named: file) else { return }
    _ = try DocumentState(decoding: record.bytes, file: file)
  }

  /// What a decision about an endpoint takes into account.
  func context(
    of endpoint: WatchedEndpoint, _ ledger: DomainLedger, _ look: Look
  ) -> DecisionContext {
    var context = DecisionContext()
    context.isListed = ledger.keys.isEmpty && listed.overlaps(endpoint.id, endpoint.patterns)
    if context.isListed { addListed(look, of: endpoint, to: &context) }
    context.approval = endpoint.approval ?? settings.approval
    context.vantages = settings.vantages
    context.quorum = settings.quorum
    context.isUnion = endpoint.isUnion
    context.issuers = settings.issuers.union(endpoint.issuers.pins)
    context.denied = state.deniedPins
    context.isSudden = settings.massChange == .hold && services.gauge.withLock(\.isSudden)
    return context
  }

  /// What other endpoints for the same hosts have of what a look shows.
  private func addListed(
    _ look: Look, of endpoint: WatchedEndpoint, to context: inout DecisionContext
  ) {
    func isListed(_ has: (DomainLedger) -> Bool) -> Bool {
      listed.overlaps(endpoint.id, endpoint.patterns) { state.ledgers[$0].map(has) ?? false }
    }
    let sightings = Sighting.all(in: look)
    context.listedPins = Set(
      sightings.map(\.pin).filter { pin in isListed { $0.keys.contains { $0.pin == pin } } })
    context.listedAuthorities = Set(
      sightings.flatMap(\.chain.authorities).filter { pin in
        isListed { $0.authorities[pin] != nil }
      })
  }

  var hasKeys: Bool { state.ledgers.values.contains { !$0.keys.isEmpty } }
}
