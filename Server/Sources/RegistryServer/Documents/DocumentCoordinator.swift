import CanonicalJSON
import RegistryCore
import RegistryStores
import SslPinningRules
import TLSTools

/// Keeps one document true: enters looks into its state, signs what changed, stores it, and only then
/// publishes it.
///
/// - Stored before published: what a client has seen survives any crash of this server.
/// - Signed once per change, and once a day without one so that its expiry moves on.
/// - The first document waits until every endpoint was probed once: one that lists half of them
///   would have clients refuse the other half.
/// - Several servers may share the store. Whoever loses the race reads what the other wrote, unites
///   what probes showed with what people decided, and tries again.
/// - The history tells everything once, whichever server found it out and however often its write was
///   tried (``PendingHistory``).
/// - A store that fails leaves the published document as it is. What was learnt meanwhile is kept in
///   memory and stored with the next attempt.
actor DocumentCoordinator {
  nonisolated let file: String
  nonisolated let services: CoordinatorServices

  private(set) var settings: CoordinatorSettings
  /// The endpoints in force.
  private(set) var endpoints: [WatchedEndpoint] = []

  var state = DocumentState()
  var stored = DocumentState()
  /// The record in force, as far as known: what the next write replaces, and a hash of what it has.
  var (version, fingerprint) = (0 as Int64, nil as Int?)
  /// The newest record known. It is only ever raised, whatever the store has later.
  var newest = RecordAge()
  var history = PendingHistory()
  private(set) var lastProbes: [String: LastProbe] = [:]
  /// The endpoints in force that were not probed since the start, and are to be.
  private var awaited: Set<String> = []
  private(set) var inForce: Set<String> = []
  private(set) var listed = PatternIndex()
  var isDirty = false
  /// Whether a write failed, or the store went back, so that the record lacks what is known here.
  var isAhead = false
  /// Whether the store went back behind what is known here, or has no word of a denial: then it is written
  /// here, too, if another server leads, which may have begun with what the store has now.
  var isStoreBehind = false
  /// Whether what the store has of this document was believed since the start.
  var isBelieved = false
  var mustSign = true
  /// Why this document decides and signs nothing: the store is not believed.
  var fault: SealFault?
  /// What accepted probes say of time.
  private var proof = TimeProof()
  /// Whether others are watched than were when somebody last asked.
  private var hasNewEndpoints = false
  private var watchedPauses: Set<String> = []
  private var writing: Task<Void, Never>?
  /// When ``checkSigning(at:)`` was called last, in Unix seconds. It is called once an hour.
  var signingChecked: Int64 = 0

  init(_ settings: CoordinatorSettings, services: CoordinatorServices) {
    file = settings.configuration.file
    self.settings = settings
    self.services = services
    endpoints = settings.configuration.endpoints
    inForce = Set(endpoints.map(\.id))
    awaited = inForce
  }

  /// Reads what the store has and publishes it.
  ///
  /// - Throws: ``StoreError``: a server that cannot read its past must not begin a new one. A seal that is not
  ///   good is no reason not to start: what was published last is served (``hold(_:at:)``).
  func open(at now: Int64 = 0) async throws(StoreError) {
    do throws(StoreError) { _ = try await reload(at: now) } catch {
      guard case .seal = error else { throw error }
      return
    }
    shareDenials(at: now)
  }

  /// Takes over another configuration.
  func reconfigure(_ settings: CoordinatorSettings) {
    let before = inForce
    self.settings = settings
    refreshEndpoints()
    mustSign = true
    for id in before.subtracting(inForce).sorted() {
      services.log.event(
        .warn, "endpoint_left",
        ["file": file, "endpoint": id, "message": DocumentState.leftMessage])
    }
  }

  /// Enters a probe.
  ///
  /// - Returns: what should follow. By then everything that the probe changed is stored and published,
  ///   unless the store failed.
  func enter(_ probe: ProbeResult, of endpoint: WatchedEndpoint, at now: Int64) async
    -> EnteredProbe
  {
    let id = endpoint.id
    guard inForce.contains(id), fault == nil else { return EnteredProbe() }
    var endpointKeys = state.keysByEndpoint[id] ?? EndpointKeys()
    let group = endpointKeys.keys.map(\.pin)
    let context = context(of: endpoint, endpointKeys, probe)
    let rule = settings.rule.spanning(endpoint.interval)
    let events = endpointKeys.enter(probe, at: now, rule: rule, context: context)
    state.keysByEndpoint[id] = endpointKeys
    proof.enter(probe, at: now)
    if !endpointKeys.keys.isEmpty { listed.insert(id, endpoint.patterns) }
    let concernsOthers = note(events, probe, id, group: group, now)
    if isNotable(events, endpointKeys, id, now) { isDirty = true }
    await settle(at: now)
    return EnteredProbe(
      isWaiting: endpointKeys.isWaiting, isDoubtful: endpointKeys.isDoubtful,
      concernsOthers: concernsOthers)
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
    // Probes that come in meanwhile are written afterwards.
    let (ended, end) = AsyncStream<Never>.makeStream()
    writing = Task { for await _ in ended {} }
    defer {
      writing = nil
      end.finish()
    }
    for _ in 0..<8 {
      if let fault { throw .notStored("\(fault)") }
      let (before, waiting) = (state, history.entries)
      var next = state
      let entries = try change(&next, settings.configuration.endpoints)
      do throws(KeeperFailure) {
        if entries.isEmpty {
          // Nothing is to be changed here: but what is acknowledged must be in the store, and of an earlier write
          // that failed nobody knows what became of it.
          let known = version
          try await reloading(at: now)
          if version != known { continue }
          if (state.denied, state.allowed) == (stored.denied, stored.allowed) { return [] }
        }
        if try await write(next, waiting + entries, signing: true, at: now) {
          // What probes showed while it was written, and keys that only need more probes.
          state = state.merging(stored, base: before)
          refreshEndpoints()
          shareDenials(at: now)
          return entries
        }
        try await reloading(at: now)
      } catch { throw .notStored("\(error)") }
    }
    throw .notStored("others keep changing the document")
  }

  /// What is due without a probe: takes over what another server stored, and signs again when the
  /// document is a day old.
  func upkeep(at now: Int64) async {
    await refresh(at: now)
    if now - signingChecked >= 3600 { checkSigning(at: now) }
    await settle(at: now)
  }

  /// What this server does before it watches: takes over what the last leader stored, and told.
  func lead(at now: Int64) async {
    if let page = try? await services.store.history(of: file, before: nil, limit: 200) {
      history.lead(after: HistoryEntry.read(page))
    }
    await upkeep(at: now)
  }

  /// Takes over what another server stored, if it did.
  ///
  /// - Parameter isFollowing: whether another server is known to lead. What could not be written here is
  ///   that one's to find out then: kept, it would come back with the next change made here, over whatever
  ///   people decided meanwhile.
  func refresh(at now: Int64, isFollowing: Bool = false) async {
    while let running = writing { await running.value }
    let wasAhead = isAhead
    do throws(StoreError) {
      let isNewer = try await reload(at: now)
      if isFollowing, isNewer, wasAhead, writing == nil {
        let known = state
        (state, history, isDirty, isAhead) = (stored, PendingHistory(), false, false)
        isStoreBehind = state.uniteDenials(with: known)
        if isStoreBehind { (isDirty, mustSign) = (true, true) }
        refreshEndpoints()
        services.health.clear(file)
      }
    } catch {
      note(.store(error), at: now)
      return
    }
    // Before anything is signed: it may have been believed just now.
    shareDenials(at: now)
    // The store answers again, and there is nothing that this server is to write.
    if isFollowing || !isDirty, state.alerts[""]?.contains(where: { $0.kind == .storing }) == true {
      state.settle(.storing, "")
      if state.alerts[""] == nil { services.health.clear(file) }
    }
    // Whoever leads writes with the next probe, which shows what the endpoints have now.
    if isFollowing, isStoreBehind { await settle(at: now) }
  }

  /// Tells the other documents what this one denies, and denies here what they do.
  func shareDenials(at now: Int64) {
    guard fault == nil else { return }
    let denials = services.denials.withLock { [state] shared in
      shared.enter(state)
      return shared.inForce
    }
    let entries = state.takeOver(denials, at: now)
    guard !entries.isEmpty else { return }
    for entry in entries { history.append(entry) }
    (isDirty, isAhead, mustSign) = (true, true, true)
  }

  /// Whether others are watched, or paused, than the last time that this was asked: somebody else's change,
  /// or one of another server.
  func takeNewEndpoints() -> Bool {
    defer { hasNewEndpoints = false }
    return hasNewEndpoints
  }

  /// Stores all that is known, down to the times of the last probes.
  func close(at now: Int64) async {
    if state.keysByEndpoint.mapValues(\.kept) != stored.keysByEndpoint {
      isDirty = !state.keysByEndpoint.isEmpty
    }
    await settle(at: now)
  }

  /// Waits until memory, store and published document agree, or the store fails. One writer at a
  /// time: probes that come in while it writes are written together afterwards.
  private func settle(at now: Int64) async {
    while let running = writing { await running.value }
    proof.isClockConfirmed = services.isClockConfirmed()
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
      let entries = history.entries
      let isSigning = (mustSign || isOld(at: now)) && mayPublish
      // Before the wait: probes that come in meanwhile set both again.
      isDirty = false
      if isSigning { mustSign = false }
      do throws(KeeperFailure) {
        if try await write(state, entries, signing: isSigning, at: now) { return }
        (isDirty, mustSign) = (true, true)
        try await reloading(at: now)
      } catch {
        (isDirty, isAhead, mustSign) = (true, true, true)
        note(error, at: now)
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
    // Alerts of what is over once this is stored.
    let isOver = alertsThatEnd(signing: signing && mayPublish, after: next, at: now)
    for kind in isOver { next.settle(kind, "") }
    // Of now: what is read while the parts are awaited is not in them, and this write is refused.
    let base = version
    // While this one signs: of thousands of endpoints either takes a tenth of a second.
    let unsigned = next
    async let parts = Self.encode(unsigned, entries)
    let document = signing && mayPublish ? try sign(&next, at: now) : nil
    let lines = await parts.history
    let bytes = next.encoded(domains: await parts.domains)
    let outcome: StoreReplacement
    history.begin()
    do throws(StoreError) {
      outcome = try await services.store.replace(
        file, version: base, with: bytes, history: lines)
    } catch {
      history.failed()
      if case .seal(let fault) = error { await hold(fault, at: now) }
      throw .store(error)
    }
    guard case .replaced(let version) = outcome else {
      history.refused()
      return false
    }
    // Once it is published: the pieces of a large document are as large, and of no use until the next.
    defer { if bytes.count > 1 << 20 { ProcessMemory.giveBack() } }
    history.written(entries)
    (isAhead, isStoreBehind) = (false, false)
    // A key set that is expired stays so, whatever else is stored.
    services.health.clear(file, isOver.contains(.signing) ? nil : .store)
    for kind in isOver { state.settle(kind, "") }
    // A newer version was read while the answer was on its way: that has this one in it.
    let age = RecordAge(returns: next.returns, version: version)
    guard age >= newest else { return true }
    (self.version, fingerprint, newest) = (version, bytes.hashValue, age)
    stored = next
    stored.keysByEndpoint = next.keysByEndpoint.mapValues(\.kept)
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
    let content = content(state, inForce)
    let current = services.published.document(file)
    let beginsEpoch = services.signer.hasNewKeySets(for: file, after: state)
    if !isOld(at: now), !beginsEpoch, let current, current.bytes == state.document,
      services.published.content(file) == content
    {
      return nil
    }
    // Never an older number than before, whatever became of the store: clients take it for a rollback.
    if let number = current?.number { state.number = max(state.number ?? number, number) }
    let last = max(state.signed, current?.signed ?? 0)
    var time = proof.time(after: last, at: now)
    // Without a number, time alone tells another document from this one.
    if state.number == nil { time = max(now, last + 1) }
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
    guard mayPublish, fault == nil else { return false }
    return isDirty || isOld(at: now) || (mustSign && hasKeys)
  }

  private func isOld(at now: Int64) -> Bool {
    !state.document.isEmpty
      && proof.asksForSigning(signed: state.signed, at: now, isNumbered: state.number != nil)
  }

  /// Whether there is a document already, or every endpoint was probed.
  private var mayPublish: Bool {
    !state.document.isEmpty || awaited.isEmpty || services.published.document(file) != nil
  }

  // MARK: - Reading

  private func reloading(at now: Int64) async throws(KeeperFailure) {
    do throws(StoreError) { _ = try await reload(at: now) } catch { throw .store(error) }
  }

  func refreshEndpoints() {
    let before = (endpoints, watchedPauses)
    endpoints = state.endpoints(configured: settings.configuration.endpoints)
    watchedPauses = pausedEndpoints
    if before != (endpoints, watchedPauses) { hasNewEndpoints = true }
    inForce = Set(endpoints.map(\.id))
    if state.forgetLeftovers(endpoints) { (isDirty, mustSign) = (true, true) }
    if state.inheritKeys(endpoints) { (isDirty, mustSign) = (true, true) }
    awaited = inForce.filter { lastProbes[$0] == nil && !state.isPaused($0) }
    listed = PatternIndex()
    for endpoint in endpoints where state.keysByEndpoint[endpoint.id]?.keys.isEmpty == false {
      listed.insert(endpoint.id, endpoint.patterns)
    }
  }

  /// Takes down what a probe led to.
  ///
  /// - Returns: whether other endpoints should be probed too.
  private func note(
    _ events: [KeyEvent], _ probe: ProbeResult, _ id: String, group: MassChangeDetector.Group,
    _ now: Int64
  ) -> Bool {
    let hasFailed = events.contains { if case .unreachable = $0 { true } else { false } }
    let failures = hasFailed ? (lastProbes[id]?.failures ?? 0) + 1 : 0
    awaited.remove(id)
    lastProbes[id] = LastProbe(at: now, probe: probe, failures: failures)
    var concernsOthers = false
    if !hasFailed {
      let isChanged = events.contains(where: \.isChange)
      let held = state.keysByEndpoint[id]?.held ?? [:]
      if isChanged || !ObservedKey.all(in: probe).contains(where: { held[$0.pin] != nil }) {
        concernsOthers = services.gauge.withLock { gauge in
          gauge.note("\(file) \(id)", of: group, isChanged: isChanged, at: now)
        }
      }
    }
    for event in events {
      services.log.event(
        event.level, event.name,
        ["file": file, "endpoint": id, "message": "\(event)", "pin": event.pin?.base64 ?? ""])
      // What lasts, and is an alert by now, is told once.
      guard event.isHistoric, !state.isTold(event, at: id) else { continue }
      isDirty = true
      history.append(
        HistoryEntry(
          time: now, event: event.name, endpoint: id, pin: event.pin, why: "\(event)",
          who: HistoryEntry.monitor))
    }
    if state.noteAlerts(of: events, at: id, failures: failures, now: now) { isDirty = true }
    let changed = services.gauge.withLock { $0.isMassChange ? $0.changedEndpoints : [] }
    if state.noteMassChange(of: events, among: changed, in: file, now: now) { isDirty = true }
    services.metrics?.published(events)
    return concernsOthers
  }

  private func isNotable(
    _ events: [KeyEvent], _ endpointKeys: EndpointKeys, _ id: String, _ now: Int64
  ) -> Bool {
    if events.contains(where: \.changesDocument) { mustSign = true }
    return mustSign
      || endpointKeys.isWorthStoring(
        over: stored.keysByEndpoint[id] ?? EndpointKeys(), at: now, rule: settings.rule)
  }
}
