import CanonicalJSON
import Pinning
import TLSTools

/// Keeps one document true: enters looks into its state, signs what changed, stores it, and only then
/// publishes it.
///
/// - Stored before published: what a client has seen survives any crash of this server.
/// - Signed once per change, and once a day without one so that its expiry moves on.
/// - The first document waits until every endpoint was looked at once: one that lists half of them
///   would have clients refuse the other half.
/// - Several servers may share the store. Whoever loses the race reads what the other wrote, unites
///   what looks showed with what people decided, and tries again.
/// - A store that fails leaves the published document as it is. What was learnt meanwhile is kept in
///   memory and stored with the next attempt.
actor DocumentKeeper {
  nonisolated let file: String
  nonisolated let services: KeeperServices

  private(set) var settings: KeeperSettings
  /// The endpoints in force.
  private(set) var endpoints: [WatchedEndpoint] = []

  private var state = DocumentState()
  private var stored = DocumentState()
  private var version: Int64 = 0
  private var history: [HistoryEntry] = []
  private var lastLooks: [String: LastLook] = [:]
  /// The endpoints in force that were not looked at since the start, and are to be.
  private var awaited: Set<String> = []
  private var inForce: Set<String> = []
  private var listed = ListedPatterns()
  private var isDirty = false
  private var mustSign = true
  private var writing: Task<Void, Never>?

  init(_ settings: KeeperSettings, services: KeeperServices) {
    file = settings.configuration.file
    self.settings = settings
    self.services = services
    endpoints = settings.configuration.endpoints
    inForce = Set(endpoints.map(\.id))
    awaited = inForce
  }

  /// Reads what the store has and publishes it.
  ///
  /// - Throws: ``StoreError``: a server that cannot read its past must not begin a new one.
  func open() async throws(StoreError) { try await reload() }

  /// Takes over another configuration.
  func reconfigure(_ settings: KeeperSettings) {
    self.settings = settings
    refreshEndpoints()
    mustSign = true
  }

  /// The ids of endpoints that nobody looks at for now.
  var pausedEndpoints: Set<String> { Set(state.overrides.filter(\.value.isPaused).keys) }

  /// Everything known, to be shown.
  var snapshot: DocumentSnapshot {
    DocumentSnapshot(
      file: file, settings: settings, state: state, endpoints: endpoints, lastLooks: lastLooks,
      published: services.published.document(file))
  }

  /// Enters a look.
  ///
  /// - Returns: whether a key waits for more looks. By then everything that the look changed is
  ///   stored and published, unless the store failed.
  func enter(_ look: Look, of endpoint: WatchedEndpoint, at now: Int64) async -> Bool {
    let id = endpoint.id
    guard inForce.contains(id) else { return false }
    var ledger = state.ledgers[id] ?? DomainLedger()
    let group = ledger.keys.map(\.pin)
    let context = context(of: endpoint, ledger)
    let events = ledger.enter(look, at: now, rule: settings.rule, context: context)
    state.ledgers[id] = ledger
    if !ledger.keys.isEmpty { listed.insert(id, endpoint.patterns) }
    note(events, look, id, group: group, now)
    if isNotable(events, ledger, id, now) { isDirty = true }
    await settle(at: now)
    return ledger.isWaiting
  }

  /// Makes a change that somebody asked for. On return it is stored and published.
  ///
  /// - Throws: ``AdministrationError``; nothing was changed then, but for
  ///   ``AdministrationError/notStored(_:)``, which leaves that open.
  @discardableResult
  func perform(
    at now: Int64,
    _ change:
      @Sendable (inout DocumentState, [WatchedEndpoint]) throws(AdministrationError)
      -> [HistoryEntry]
  ) async throws(AdministrationError) -> [HistoryEntry] {
    while let running = writing { await running.value }
    // Looks that come in meanwhile are written afterwards.
    let (ended, end) = AsyncStream<Never>.makeStream()
    writing = Task { for await _ in ended {} }
    defer {
      writing = nil
      end.finish()
    }
    for _ in 0..<8 {
      let (before, waiting) = (state, history)
      var next = state
      let entries = try change(&next, settings.configuration.endpoints)
      guard !entries.isEmpty else { return [] }
      do throws(KeeperFailure) {
        if try await write(next, waiting + entries, signing: true, at: now) {
          history.removeFirst(waiting.count)
          // What looks showed while it was written.
          state = before == state ? stored : state.merging(stored, base: before)
          refreshEndpoints()
          return entries
        }
        try await reloading()
      } catch { throw .notStored("\(error)") }
    }
    throw .notStored("others keep changing the document")
  }

  /// What is due without a look: takes over what another server stored, and signs again when the
  /// document is a day old.
  func upkeep(at now: Int64) async {
    await refresh()
    await settle(at: now)
  }

  /// Takes over what another server stored, if it did.
  func refresh() async {
    while let running = writing { await running.value }
    do throws(StoreError) { try await reload() } catch { note(.store(error)) }
  }

  /// Stores all that is known, down to the times of the last looks.
  func close(at now: Int64) async {
    if state.ledgers.mapValues(\.kept) != stored.ledgers { isDirty = !state.ledgers.isEmpty }
    await settle(at: now)
  }

  /// Begins or ends an alert about the whole document.
  func mark(_ alert: ServerAlert, isOn: Bool) {
    if isOn { isDirty = state.raise(alert) || isDirty } else { state.settle(alert.kind, "") }
  }

  // MARK: - Writing

  /// Waits until memory, store and published document agree, or the store fails. One writer at a
  /// time: looks that come in while it writes are written together afterwards.
  private func settle(at now: Int64) async {
    while let running = writing { await running.value }
    guard isDue(at: now) else { return }
    let task = Task {
      await self.write(at: now)
      // Before the task ends: whoever waits for it must not find it still here, since waiting for an
      // ended task lets nobody else run.
      self.writing = nil
    }
    writing = task
    await task.value
  }

  private func write(at now: Int64) async {
    for _ in 0..<8 {
      guard isDue(at: now) else { return }
      let entries = history
      let isSigning = (mustSign || isOld(at: now)) && mayPublish
      // Before the wait: looks that come in meanwhile set both again.
      isDirty = false
      if isSigning { mustSign = false }
      do throws(KeeperFailure) {
        if try await write(state, entries, signing: isSigning, at: now) {
          history.removeFirst(entries.count)
          return
        }
        (isDirty, mustSign) = (true, true)
        try await reloading()
      } catch {
        (isDirty, mustSign) = (true, true)
        note(error)
        return
      }
    }
    services.log.event(.warn, "store_contended", ["file": file])
  }

  /// Signs, where that is due, stores and publishes a state. False: another server was first.
  private func write(
    _ next: DocumentState, _ entries: [HistoryEntry], signing: Bool, at now: Int64
  ) async throws(KeeperFailure) -> Bool {
    var next = next
    let document = signing && mayPublish ? try sign(&next, at: now) : nil
    let bytes = next.encoded
    let outcome: StoreReplacement
    do throws(StoreError) {
      outcome = try await services.store.replace(
        file, version: version, with: bytes,
        history: entries.map { JSONValue.object($0.json).canonicalBytes })
    } catch { throw .store(error) }
    guard case .replaced(let version) = outcome else { return false }
    self.version = version
    stored = next
    stored.ledgers = next.ledgers.mapValues(\.kept)
    services.health.clear(file)
    guard let document else { return true }
    (state.document, state.signed, state.number) = (next.document, next.signed, next.number)
    publish(document)
    return true
  }

  /// Signs what a state says where that is something else than was published, or is a day old.
  private func sign(
    _ state: inout DocumentState, at now: Int64
  ) throws(KeeperFailure) -> PublishedDocument? {
    let inForce = state.endpoints(configured: settings.configuration.endpoints)
    let content = DocumentContent(state, endpoints: inForce)
    if !isOld(at: now), let current = services.published.document(file),
      services.published.content(file) == content, current.bytes == state.document,
      !services.signer.hasNewKeySets(for: file, after: state)
    {
      return nil
    }
    // Never an older time or number than before, whatever became of the store or the clock: clients
    // take the one for an expiry that is nearer, and the other for a rollback.
    let current = services.published.document(file)
    if let number = current?.number { state.number = max(state.number ?? number, number) }
    let time = max(now, state.signed, current?.signed ?? now)
    do throws(SigningProblem) {
      guard
        let document = try services.signer.sign(content, file: file, after: state, at: time)
      else { return nil }
      (state.document, state.signed) = (document.bytes, document.signed)
      state.number = document.number
      services.published.prepare(content, for: document)
      return document
    } catch { throw .signing(error) }
  }

  private func isDue(at now: Int64) -> Bool {
    guard mayPublish else { return false }
    return isDirty || isOld(at: now) || (mustSign && hasKeys)
  }

  private func isOld(at now: Int64) -> Bool {
    !state.document.isEmpty && now - state.signed >= DocumentSigner.renewal
  }

  private var hasKeys: Bool { state.ledgers.values.contains { !$0.keys.isEmpty } }

  /// Whether there is a document already, or every endpoint was looked at.
  private var mayPublish: Bool { !state.document.isEmpty || awaited.isEmpty }

  private func publish(_ document: PublishedDocument) {
    services.published.publish(document)
    services.metrics?.published(
      DocumentFacts(
        file: file, version: document.number?.version, epoch: document.number?.epoch,
        signed: document.signed, entries: services.published.content(file)?.entries ?? []))
    services.log.event(
      .info, "document_published",
      [
        "file": file, "keys": "\(document.keyCount)", "etag": document.entityTag,
        "signed": RFC3339.text(document.signed),
        "version": document.number.map { "\($0.epoch).\($0.version)" } ?? "",
      ])
  }

  // MARK: - Reading

  private func reloading() async throws(KeeperFailure) {
    do throws(StoreError) { try await reload() } catch { throw .store(error) }
  }

  /// Takes over the record in force: what it says of looks is united with what is known here, and
  /// its document is published if this server's key signed it.
  private func reload() async throws(StoreError) {
    guard let record = try await services.store.record(named: file), record.version > version
    else { return }
    let theirs = try DocumentState(decoding: record.bytes, file: file)
    version = record.version
    state = state.merging(theirs, base: stored)
    stored = theirs
    refreshEndpoints()
    mustSign = true
    guard
      let document = services.signer.recognise(theirs.document, file: file, signed: theirs.signed)
    else { return }
    if let current = services.published.document(file), !document.isNewer(than: current) { return }
    let content = DocumentContent(state, endpoints: endpoints)
    if content.isSaid(by: document.bytes) {
      services.published.prepare(content, for: document)
      mustSign = services.signer.hasNewKeySets(for: file, after: theirs)
    }
    publish(document)
  }

  private func refreshEndpoints() {
    endpoints = state.endpoints(configured: settings.configuration.endpoints)
    inForce = Set(endpoints.map(\.id))
    awaited = inForce.filter { lastLooks[$0] == nil && !state.isPaused($0) }
    listed = ListedPatterns()
    for endpoint in endpoints where state.ledgers[endpoint.id]?.keys.isEmpty == false {
      listed.insert(endpoint.id, endpoint.patterns)
    }
  }

  // MARK: - Looks

  private func context(of endpoint: WatchedEndpoint, _ ledger: DomainLedger) -> DecisionContext {
    var context = DecisionContext()
    context.isListed = ledger.keys.isEmpty && listed.overlaps(endpoint.id, endpoint.patterns)
    context.approval = endpoint.approval ?? settings.approval
    context.vantages = settings.vantages
    context.denied = state.deniedPins
    context.isSudden = services.gauge.withLock(\.isSudden)
    return context
  }

  private func note(
    _ events: [LedgerEvent], _ look: Look, _ id: String, group: [SPKIPin], _ now: Int64
  ) {
    let hasFailed = events.contains { if case .unreachable = $0 { true } else { false } }
    let failures = hasFailed ? (lastLooks[id]?.failures ?? 0) + 1 : 0
    awaited.remove(id)
    lastLooks[id] = LastLook(at: now, look: look, failures: failures)
    if !hasFailed {
      let isChanged = events.contains(where: \.isChange)
      services.gauge.withLock { $0.note(group, isChanged: isChanged, at: now) }
    }
    for event in events {
      services.log.event(
        event.level, event.name,
        ["file": file, "endpoint": id, "message": "\(event)", "pin": event.pin?.base64 ?? ""])
      guard event.isHistoric else { continue }
      history.append(
        HistoryEntry(
          time: now, event: event.name, endpoint: id, pin: event.pin, why: "\(event)",
          who: HistoryEntry.watcher))
    }
    if state.noteAlerts(of: events, at: id, failures: failures, now: now) { isDirty = true }
  }

  private func isNotable(
    _ events: [LedgerEvent], _ ledger: DomainLedger, _ id: String, _ now: Int64
  ) -> Bool {
    if events.contains(where: \.changesDocument) { mustSign = true }
    return mustSign || events.contains(where: \.isHistoric)
      || ledger.isWorthStoring(
        over: stored.ledgers[id] ?? DomainLedger(), at: now, rule: settings.rule)
  }

  private func note(_ failure: KeeperFailure) {
    services.health.report(file, "\(failure)")
    services.log.event(.error, "document_not_stored", ["file": file, "reason": "\(failure)"])
  }
}
