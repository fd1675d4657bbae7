import CanonicalJSON
import RegistryCore
import RegistryStores
import SslPinningRules

/// What others see of a document's coordinator.
extension DocumentCoordinator {
  /// What the document is to say.
  func content(_ state: DocumentState, _ endpoints: [WatchedEndpoint]) -> DocumentContent {
    DocumentContent(state, endpoints: endpoints, mirrors: services.signer.mirrors(of: file))
  }

  /// The ids of endpoints that nobody probes for now.
  var pausedEndpoints: Set<String> { Set(state.overrides.filter(\.value.isPaused).keys) }

  /// Everything known, to be shown.
  var snapshot: DocumentSnapshot {
    DocumentSnapshot(
      file: file, settings: settings, state: state.markingWhoLeft(inForce), endpoints: endpoints,
      lastProbes: lastProbes, published: services.published.document(file))
  }

  /// One endpoint for each set of keys that endpoints share, picked at random among those that are not
  /// probed every few seconds anyway: that has its time.
  func representatives() -> [MassChangeDetector.Group: String] {
    var picked: [MassChangeDetector.Group: String] = [:]
    for endpoint in endpoints.shuffled() where !state.isPaused(endpoint.id) {
      guard let endpointKeys = state.keysByEndpoint[endpoint.id], !endpointKeys.keys.isEmpty,
        !endpointKeys.isWaiting
      else { continue }
      picked[endpointKeys.keys.map(\.pin)] = endpoint.id
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
    let record: StoredRecord?
    do throws(StoreError) { record = try await services.store.record(named: file) } catch {
      // Then nothing is decided for it, which is told once it is read.
      if case .seal = error { return }
      throw error
    }
    guard let record else { return }
    _ = try DocumentState(decoding: record.bytes, file: file)
  }

  /// What a decision about an endpoint takes into account.
  func context(
    of endpoint: WatchedEndpoint, _ endpointKeys: EndpointKeys, _ probe: ProbeResult
  ) -> DecisionContext {
    var context = DecisionContext()
    context.isListed = endpointKeys.isUnseen && listed.overlaps(endpoint.id, endpoint.patterns)
    if context.isListed { addListed(probe, of: endpoint, to: &context) }
    context.approval = endpoint.approval ?? settings.approval
    context.vantages = settings.vantages
    context.quorum = settings.quorum
    context.isUnion = endpoint.isUnion
    context.issuers = settings.issuers.union(endpoint.issuers.pins)
    context.denied = state.deniedPins
    context.isMassChange = settings.massChange == .hold && services.gauge.withLock(\.isMassChange)
    return context
  }

  /// What other endpoints for the same hosts have of what a probe shows.
  private func addListed(
    _ probe: ProbeResult, of endpoint: WatchedEndpoint, to context: inout DecisionContext
  ) {
    func isListed(_ has: (EndpointKeys) -> Bool) -> Bool {
      listed.overlaps(endpoint.id, endpoint.patterns) { state.keysByEndpoint[$0].map(has) ?? false }
    }
    let sightings = ObservedKey.all(in: probe)
    context.listedPins = Set(
      sightings.map(\.pin).filter { pin in isListed { $0.keys.contains { $0.pin == pin } } })
    context.listedAuthorities = Set(
      sightings.flatMap(\.chain.authorities).filter { pin in
        isListed { $0.authorities[pin] != nil }
      })
  }

  /// Whether nothing new can be signed, as far as ``checkSigning(at:)`` found out.
  var cannotSign: Bool {
    guard state.alerts[""]?.contains(where: { $0.kind == .signing }) == true else { return false }
    return services.signer.problem(of: file, after: state, at: signingChecked)?.isAhead == false
  }

  /// Publishes a finished document, and tells of it.
  func publish(_ document: PublishedDocument) {
    guard services.published.publish(document) else { return }
    services.metrics?.published(
      DocumentFacts(
        file: file, version: document.number?.version, epoch: document.number?.epoch,
        keySetEnd: document.keySetExpires,
        signed: document.signed, entries: services.published.content(file)?.entries ?? []))
    services.log.event(
      .info, "document_published",
      [
        "file": file, "keys": "\(document.keyCount)", "etag": document.entityTag,
        "signed": RFC3339.text(document.signed),
        "version": document.number.map { "\($0.epoch).\($0.version)" } ?? "",
      ])
    // The alert comes with the next check; the first document that nobody takes is told at once.
    if document.bytes.count > SigningProblem.mostBytes {
      let problem = SigningProblem.large(bytes: document.bytes.count)
      services.log.event(.error, problem.event, ["file": file, "reason": "\(problem)"])
    }
  }

  /// Tells of keys that do not fit the key sets, and of a set that ends, before the next change needs them.
  func checkSigning(at now: Int64) {
    signingChecked = now
    guard fault == nil else { return }
    if let problem = services.signer.problem(of: file, after: state, at: now) {
      services.health.report(file, "\(problem)", as: .signing)
      state.raise(ServerAlert(kind: .signing, message: "\(problem)", since: now))
      services.log.event(
        problem.isAhead ? .warn : .error, problem.event, ["file": file, "reason": "\(problem)"])
    } else if state.alerts[""]?.contains(where: { $0.kind == .signing }) == true {
      state.settle(.signing, "")
      services.health.clear(file)
    }
  }

  /// Tells why a document was not stored.
  package func note(_ failure: KeeperFailure, at now: Int64) {
    // Told where it was found out.
    if case .store(.seal) = failure { return }
    services.health.report(file, "\(failure)", as: failure.alert == .signing ? .signing : .store)
    state.raise(ServerAlert(kind: failure.alert, message: "\(failure)", since: now))
    services.log.event(.error, "document_not_stored", ["file": file, "reason": "\(failure)"])
  }

  /// What does not depend on what is signed. Not on the actor.
  static func encode(
    _ state: DocumentState, _ entries: [HistoryEntry]
  ) async -> (domains: [UInt8], history: [[UInt8]]) {
    (state.encodedDomains, entries.map { JSONValue.object($0.json).canonicalBytes })
  }

  var hasKeys: Bool { state.keysByEndpoint.values.contains { !$0.keys.isEmpty } }
}

/// All that is known of a document at one moment, to be shown.
struct DocumentSnapshot: Sendable {
  let file: String
  let settings: CoordinatorSettings
  let state: DocumentState
  /// The endpoints in force.
  let endpoints: [WatchedEndpoint]
  /// By the endpoints' ids.
  let lastProbes: [String: LastProbe]
  let published: PublishedDocument?

  /// The denied keys that stand above the keys of an endpoint.
  func deniedAbove(_ id: String, at now: Int64) -> [SPKIPin] {
    let paths = state.keysByEndpoint[id]?.pathsInUse(at: now) ?? []
    return state.deniedPins.intersection(paths.joined()).sorted()
  }

  /// Whether any endpoint has shown this key, as its own or above it.
  func knows(_ pin: SPKIPin) -> Bool {
    let keysByEndpoint = state.keysByEndpoint.values
    return keysByEndpoint.contains { endpointKeys in
      endpointKeys.keys.contains { $0.pin == pin || $0.paths.values.contains { $0.contains(pin) } }
        || endpointKeys.candidates.values.contains { $0.chain.path.contains { $0.pin == pin } }
        || endpointKeys.authorities[pin] != nil
    } || lastProbes.keys.contains { paths(of: $0).contains { $0.contains { $0.pin == pin } } }
  }

  private func paths(of id: String) -> [[SeenCertificate]] {
    (lastProbes[id]?.probe.observations ?? []).compactMap {
      guard case .accepted(let chain) = $0.outcome else { return nil }
      return chain.path
    }
  }
}

/// What a coordinator does while the store is not believed.
///
/// - It decides and signs nothing, and writes nothing.
/// - What is published stays published. At a start that is the last document there is: the record's, or the copy
///   in `publish.dir`, whichever is newer; the signatures on it are what it is worth.
/// - It reads again whenever others do. A store that was restored, or a record that was reset, ends it.
extension DocumentCoordinator {
  /// Stops deciding.
  func hold(_ fault: SealFault, at now: Int64) async {
    if self.fault != fault {
      settleSeal()
      services.log.event(
        .error, fault.isOtherKey ? "other_signing_key" : "seal_broken",
        ["file": file, "reason": "\(fault)"])
    }
    self.fault = fault
    services.health.report(file, "\(fault)", as: fault.healthKind)
    state.raise(ServerAlert(kind: fault.alert, message: "\(fault)", since: now))
    guard services.published.document(file) == nil,
      let document = await services.copies?.servable(file, isOtherKey: fault.isOtherKey),
      self.fault == fault, services.published.document(file) == nil
    else { return }
    publish(document)
  }

  /// Goes on deciding: what was read now is believed.
  func release() {
    guard fault != nil else { return }
    fault = nil
    settleSeal()
    services.health.clear(file)
    services.log.event(
      .info, "store_believed", ["file": file, "message": "what the store has is believed again"])
  }

  private func settleSeal() {
    for kind in [ServerAlert.Kind.otherSigningKey, .sealBroken] { state.settle(kind, "") }
  }

  /// The newest document that was published, the copy in `publish.dir` or what is served, if it is newer than the
  /// record's: the store was lost, or went back, or keeps nothing over a restart.
  func documentAhead(of record: DocumentState) -> PublishedDocument? {
    let served = services.published.document(file).flatMap {
      $0.bytes == record.document ? nil : $0
    }
    guard let newest = services.copies?.newest(file, beside: served) else { return nil }
    let own = services.signer.recognise(record.document, file: file, signed: record.signed)
    return own.map(newest.isNewer) ?? true ? newest : nil
  }

  /// Publishes a copy that the store is behind, and tells of it.
  func tell(of copy: PublishedDocument, version: Int64) {
    if version > 0 {
      services.log.event(
        .error, "store_went_back",
        ["file": file, "version": "\(version)", "message": DocumentState.behindCopyMessage])
    } else {
      services.log.event(
        .warn, "last_copy_taken", ["file": file, "message": DocumentState.lastCopyMessage])
    }
    publish(copy)
  }
}
