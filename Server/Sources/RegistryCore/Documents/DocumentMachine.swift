import SslPinningRules

/// Everything that is decided about one document: events in, effects out.
///
/// - A document is stored before it is published, and a change before it is acknowledged: what a client or a person was
///   told survives any crash.
/// - One write at a time. What comes in meanwhile is written with the next one.
/// - The first document waits until every endpoint was probed: if it listed half of them, clients would refuse the rest.
/// - It is signed once a change, and when ``TimeProof`` asks for it. Its number never goes back, whatever the store has:
///   clients take that for a rollback.
/// - If another server was first, its record is united with what is known here, a command is applied anew, and written.
/// - If others write faster than this one signs, it stores what it knows unsigned, and the next document says it.
/// - If a write fails, readers keep the document that they have. What it would have said is owed to the store
///   (``DocumentDebt``), and written with the next probe or upkeep.
/// - If the store has an older record than before, what is known here is put on top of it. A leader writes that with its
///   next probe, which shows what the endpoints have now. A follower writes it at once, since the leader may have begun
///   with the older record.
/// - No acknowledged denial is lost while its server runs, even if the store goes back during the write.
/// - If another server leads, what was not written here is dropped once that one wrote, or if probes were made here, but for
///   denials: also what endpoints inherited by the configuration here, which may have been another one by then.
/// - Before the first record is believed, it is compared with the newest document that can be found.
/// - While the store is in doubt, nothing is decided, signed or written, and the published document stays.
///
/// Pure: signing, store, clock and network are the shell's. Times are Unix seconds.
package struct DocumentMachine: Sendable {
  private let file: String
  private var settings: DocumentSettings
  private var watched: EndpointsInForce
  /// All that is known.
  package private(set) var state = DocumentState()
  private var record = RecordInForce()
  private var history = PendingHistory()
  /// The document that readers have, and what it says, if that is known.
  private var published: SignedCopy?
  private var said: DocumentContent?
  private var trust = StoreTrust.unread
  private var debt = DocumentDebt.nothing
  /// Whether the published document may no longer say what is known.
  private var mustSign = true
  private var attempt: WriteAttempt?
  private var proof = TimeProof()
  /// When somebody last checked whether the next change can be signed.
  package private(set) var signingChecked: Int64 = 0

  /// A document of which nothing is known yet.
  package init(file: String, _ settings: DocumentSettings) {
    self.file = file
    self.settings = settings
    watched = EndpointsInForce(settings.endpoints)
  }

  /// The endpoints in force.
  package var endpoints: [WatchedEndpoint] { watched.list }

  /// What the last probes showed, by the endpoints' ids.
  package var lastProbes: [String: LastProbe] { watched.lastProbes }

  /// Whether something is being written.
  package var isWriting: Bool { attempt != nil }

  /// Whether no record was believed yet.
  package var isUnread: Bool { trust.isUnread }

  /// Why nothing is decided; `nil` if the store is believed.
  package var doubt: StoreDoubt? { trust.doubt }

  /// Whether other endpoints are watched, or paused, than when this was last called.
  package mutating func takeNewEndpoints() -> Bool {
    defer { watched.isNews = false }
    return watched.isNews
  }

  /// Whether the known record has this version and these bytes.
  package func knows(version: Int64, bytes: [UInt8]?) -> Bool {
    record.knows(version: version, bytes: bytes)
  }

  /// A request to read, with what is known before.
  package func reading(to purpose: DocumentReadRequest.Purpose) -> DocumentReadRequest {
    DocumentReadRequest(purpose: purpose, known: record.version)
  }

  /// ``reading(to:)`` take over what other servers wrote.
  package func refreshing(isFollowing: Bool) -> DocumentReadRequest {
    reading(to: .refresh(isFollowing: isFollowing))
  }

  /// Decides.
  package mutating func handle(_ event: DocumentEvent, at now: Int64) -> [DocumentEffect] {
    switch event {
    case .configured(let settings): return configure(settings)
    case .signingKeyChanged: said = nil
    case .command(let change):
      guard attempt == nil else { return [.answer(.failure(.notStored("it is being written")))] }
      return begin(WriteAttempt(at: now, change: change))
    case .settle(let isClockConfirmed):
      proof.isClockConfirmed = isClockConfirmed
      return attempt == nil && isDue(at: now) ? begin(WriteAttempt(at: now)) : []
    case .closing:
      let kept = state.keysByEndpoint.mapValues(\.kept)
      if !kept.isEmpty, kept != record.state.keysByEndpoint { owe(.changes) }
    case .read(let result, let request): return take(result, request, at: now)
    case .signed(let document, let ending): return store(document, ending)
    case .written(let version, let bytes): return finish(version: version, bytes)
    case .refused: return retry()
    case .failed(let failure): return fail(failure, at: now)
    case .share: return doubt == nil ? [.shareDenials] : []
    case .denied(let shared): takeOver(shared, at: now)
    case .foundCopy(let copy, let doubt):
      if let copy, self.doubt == doubt, published == nil { return publish(copy) }
    case .signingChecked(let trouble):
      signingChecked = now
      // It signs nothing: what could not be signed is not over by it.
      let isOwed = max(debt, attempt?.debt ?? .nothing) >= .owed
      return doubt == nil && (trouble != nil || !isOwed) ? state.note(trouble, at: now) : []
    case .leading(let told): history.lead(after: told)
    }
    return []
  }
}

/// Probes and configuration.
extension DocumentMachine {
  /// Enters a probe.
  ///
  /// - Parameters:
  ///   - others: what the other documents list.
  ///   - gauge: finds a mass change, whatever the documents of the endpoints.
  package mutating func enter(
    _ probe: ProbeResult, of endpoint: WatchedEndpoint, at now: Int64,
    beside others: [DocumentListing] = [], massChange gauge: inout MassChangeDetector
  ) -> (entered: EnteredProbe, effects: [DocumentEffect]) {
    let id = endpoint.id
    // Before anything was read, whatever is shown would be a first sight.
    guard watched.ids.contains(id), case .believed = trust else { return (EnteredProbe(), []) }
    var endpointKeys = state.keysByEndpoint[id] ?? EndpointKeys()
    let group = endpointKeys.keys.map(\.pin)
    let context = watched.context(
      of: endpoint, probe, in: state, beside: others, settings, isMassChange: gauge.isMassChange)
    let events = endpointKeys.enter(
      probe, at: now, rule: settings.rule.spanning(endpoint.interval), context: context)
    state.keysByEndpoint[id] = endpointKeys
    proof.enter(probe, at: now)
    if !endpointKeys.keys.isEmpty { watched.list(endpoint) }
    let hasFailed = events.contains { if case .unreachable = $0 { true } else { false } }
    let failures = watched.note(probe, of: id, hasFailed: hasFailed, at: now)
    var entered = EnteredProbe(
      isWaiting: endpointKeys.isWaiting, isDoubtful: endpointKeys.isDoubtful)
    let isChanged = events.contains(where: \.isChange)
    let showsHeld = ObservedKey.all(in: probe).contains { endpointKeys.held[$0.pin] != nil }
    if !hasFailed, isChanged || !showsHeld {
      entered.concernsOthers = gauge.note(
        "\(file) \(id)", of: group, isChanged: isChanged, at: now)
    }
    let (told, isNews) = state.note(
      events, of: id, in: file, failures: failures, massChange: gauge, at: now)
    for entry in told { history.append(entry) }
    if isNews { owe(.changes) }
    if events.contains(where: \.changesDocument) { mustSign = true }
    let stored = record.state.keysByEndpoint[id] ?? EndpointKeys()
    if mustSign || endpointKeys.isWorthStoring(over: stored, at: now, rule: settings.rule) {
      owe(.changes)
    }
    return (entered, [.probed(events, endpoint: id)])
  }

  private mutating func configure(_ settings: DocumentSettings) -> [DocumentEffect] {
    let before = watched.ids
    let told = state.notices(configuring: settings.endpoints)
    self.settings = settings
    followEndpoints()
    mustSign = true
    return before.subtracting(watched.ids).sorted().map { .log(.left($0)) }
      + told.map { .log($0) }
  }

  private mutating func followEndpoints() {
    let live = state.endpoints(configured: settings.endpoints)
    let hasLeftovers = state.forgetLeftovers(live)
    let isChanged = state.follow(live)
    watched.follow(state, configured: settings.endpoints)
    guard isChanged || hasLeftovers else { return }
    owe(.changes)
    mustSign = true
  }

  private mutating func owe(_ more: DocumentDebt) {
    debt = max(debt, more)
    // Mere changes need not be about what the document says.
    if more > .changes { mustSign = true }
  }

  private mutating func takeOver(_ shared: SharedDenials, at now: Int64) {
    let (known, entries) = (state.allowed, state.takeOver(shared, at: now))
    for entry in entries { history.append(entry) }
    if !entries.isEmpty { owe(.restoring) } else if state.allowed != known { owe(.changes) }
  }
}

/// What the store has.
extension DocumentMachine {
  private mutating func take(
    _ result: Result<DocumentReading, DocumentFailure>, _ request: DocumentReadRequest,
    at now: Int64
  ) -> [DocumentEffect] {
    var reading = DocumentReading()
    switch result {
    case .success(let read): reading = read
    // If the record vanished while this server runs, it still knows what was in it.
    case .failure(.doubt(let doubt)) where doubt.isVanished && record.isKnown:
      if !knows(version: 0, bytes: nil) { reading.record = DocumentRecord() }
    case .failure(let failure):
      if case .retry = request.purpose { return fail(failure, at: now) }
      guard case .doubt(let doubt) = failure else { return state.note(failure, at: now) }
      return hold(doubt, at: now)
    }
    if var earlier = request.reading {
      earlier.history = reading.history
      reading = earlier
    }
    var effects = release()
    let isNewer = reading.record.map { record.isOlder(than: $0) } ?? false
    if isNewer, history.isUnsure, reading.history == nil {
      var request = request
      (request.reading, request.historyFrom) = (reading, history.horizon)
      return effects + [.read(request)]
    }
    // Before the record's own document, which is older: readers must not get that in between.
    let ahead = isUnread ? reading.newerCopy : nil
    if let ahead { effects += publish(ahead) }
    if let read = reading.record {
      // If another read was faster, a record that is older than its is no news.
      let isLate = request.historyFrom != nil || record.version != request.known
      effects += isNewer ? takeOver(read, reading.history ?? []) : isLate ? [] : goBack(to: read)
    }
    if case .unread = trust {
      trust = .believed
      var next = state
      let copy = ahead == nil ? reading.copy : nil
      if let notice = next.decideWhatWasLost(with: copy, settings.endpoints) {
        goOn(as: next, owing: .restoring)
        effects.append(.log(notice))
      }
    }
    if let ahead { effects += goOn(from: ahead, lost: reading.lost, at: now) }
    switch request.purpose {
    case .open: return effects + [.shareDenials]
    case .retry: return effects + writeAgain(at: now)
    case .refresh(let isFollowing):
      let isLeft = isNewer || !watched.lastProbes.isEmpty && debt != .restoring
      if isFollowing, isLeft, ahead == nil, attempt == nil { effects += dropUnwritten() }
      // Before anything is signed, since the store may be believed only now.
      effects.append(.shareDenials)
      // The store answers again, and this server has nothing to write.
      if isFollowing || debt == .nothing && attempt == nil, state.hasAlert(.storing) {
        state.settle(.storing, "")
        if state.alerts[""] == nil { effects.append(.clear(nil)) }
      }
      return isFollowing && debt == .restoring ? effects + [.settle] : effects
    }
  }

  /// Unites a newer record with what is known here. Its document is published if this server's key signed it and it has
  /// every denial that is known here: readers must not see a denial end that nobody ended.
  private mutating func takeOver(
    _ read: DocumentRecord, _ entries: [HistoryEntry]
  ) -> [DocumentEffect] {
    let theirs = read.state
    history.reconcile(with: entries, theirs: theirs, base: record.state)
    let united = state.uniting(theirs, base: record.state)
    record.advance(to: read)
    let (before, lost) = (state, united.wordsLost(configuring: settings.endpoints))
    goOn(as: united, owing: united.hasDecisions(of: theirs) ? .nothing : .restoring)
    mustSign = true
    let hasDenials = state.deniedPins.isSubset(of: theirs.deniedPins)
    let left = state.wordsLeft(by: theirs, since: before)
    let told: [DocumentEffect] = (lost.map(DocumentNotice.wordsLost) + left).map { .log($0) }
    guard let document = read.document, hasDenials || published == nil,
      published.map(document.isNewer) ?? true || published?.bytes == document.bytes
    else { return told }
    let content = settings.content(of: state)
    guard document.members.map(content.isSaid) ?? false else { return told + publish(document) }
    mustSign = read.hasNewKeySets
    return told + publish(document, saying: content)
  }

  /// The store lost what it had acknowledged, or somebody restored a backup: what is known here is put on top of that.
  private mutating func goBack(to read: DocumentRecord) -> [DocumentEffect] {
    record.goBack(to: read)
    let next = state.goingOn(from: read.state, after: record.newest, settings.endpoints)
    goOn(as: next, owing: .restoring)
    return [.log(.wentBack(to: read.version, from: record.newest.version))]
  }

  /// Puts the newest document that was published on top of the first record.
  ///
  /// - Parameter lost: what records must be newer than, if the store was lost and began again.
  private mutating func goOn(
    from copy: SignedCopy, lost: RecordAge?, at now: Int64
  ) -> [DocumentEffect] {
    var next = state
    next.keepOut(settings.endpoints, of: copy)
    next.watchHosts(of: copy, beside: watched.list)
    if let lost, record.version == 0 {
      record.outdate(lost)
      next.raise(
        ServerAlert(kind: .storeLost, message: DocumentState.lostStoreMessage, since: now))
    }
    next = next.goingOn(from: copy, endpoints: next.endpoints(configured: settings.endpoints))
    next.returns = record.newest.nextReturns
    if record.version == 0 { next.beganFrom = copy.number }
    goOn(as: next, owing: .restoring)
    return [.log(record.version > 0 ? .wentBackBehindCopy(record.version) : .copyTaken)]
  }

  /// Another server leads: discards what was not written here, but for denials. The leader observes the rest itself,
  /// and written later it would overwrite newer decisions by people. What endpoints inherit they inherit anew.
  private mutating func dropUnwritten() -> [DocumentEffect] {
    (history, debt) = (PendingHistory(), .nothing)
    watched.forgetProbes()
    var stored = record.state
    let isLacking = stored.uniteDenials(with: state)
    goOn(as: stored, owing: isLacking ? .restoring : .nothing)
    return [.clear(nil)]
  }

  /// Goes by another state from now on, of which the store lacks something.
  private mutating func goOn(as next: DocumentState, owing: DocumentDebt) {
    state = next
    owe(owing)
    followEndpoints()
  }

  /// Stops deciding.
  private mutating func hold(_ doubt: StoreDoubt, at now: Int64) -> [DocumentEffect] {
    var effects: [DocumentEffect] = []
    if self.doubt != doubt {
      state.settleSeal()
      effects.append(.log(.doubted(doubt)))
    }
    trust = .doubted(doubt, isUnread: isUnread)
    state.raise(ServerAlert(kind: doubt.kind, message: doubt.reason, since: now))
    effects.append(.report(doubt.kind, reason: doubt.reason))
    return published == nil ? effects + [.findCopy(doubt)] : effects
  }

  /// Goes on deciding, since the store is believed again.
  private mutating func release() -> [DocumentEffect] {
    guard case .doubted(_, let isUnread) = trust else { return [] }
    trust = isUnread ? .unread : .believed
    state.settleSeal()
    return [.clear(nil), .log(.believed)]
  }
}

/// Writing, signing and publishing.
extension DocumentMachine {
  private func isDue(at now: Int64) -> Bool {
    guard mayPublish, doubt == nil else { return false }
    return debt > .nothing || isOld(at: now) || (mustSign && state.hasKeys)
  }

  private func isOld(at now: Int64) -> Bool {
    !state.document.isEmpty
      && proof.asksForSigning(signed: state.signed, at: now, isNumbered: state.number != nil)
  }

  /// Whether there is a document already, or every endpoint was probed.
  private var mayPublish: Bool {
    !state.document.isEmpty || watched.awaited.isEmpty || published != nil
  }

  private mutating func begin(_ new: WriteAttempt) -> [DocumentEffect] {
    state.follow(watched.list)
    var attempt = WriteAttempt(at: new.at, change: new.change, reads: new.reads, state: state)
    if let change = new.change {
      if let doubt { return end(.failure(.notStored(doubt.reason))) }
      do throws(AdministrationError) { try attempt.make(change, settings) } catch {
        return end(.failure(error))
      }
      if attempt.changed.isEmpty {
        // Nothing changes as far as is known here. But what is acknowledged must be in the store, and an earlier write
        // that failed may have been made: the record is read before that is said.
        guard attempt.reads > 0 else {
          self.attempt = attempt
          return readAgain()
        }
        if attempt.state.hasDecisions(of: record.state) { return end(.success([])) }
      }
      attempt.base = state
    } else if !isDue(at: new.at) {
      return end()
    }
    (attempt.entries, attempt.version) = (history.entries + attempt.changed, record.version)
    if attempt.reads >= WriteAttempt.mostSignatures {
      mustSign = true
    } else if mayPublish, mustSign || isOld(at: new.at) || new.change != nil {
      attempt.signing = DocumentDraft.Signing(
        settings.content(of: attempt.state), &attempt.state, at: new.at,
        behind: published, said: isOld(at: new.at) ? nil : said, proof)
      mustSign = false
    }
    // What comes in from now on is not part of this write.
    (attempt.debt, debt) = (debt, .nothing)
    self.attempt = attempt
    return [.sign(attempt.draft)]
  }

  private mutating func store(
    _ document: SignedCopy?, _ ending: [ServerAlert.Kind]
  ) -> [DocumentEffect] {
    guard var attempt else { return [] }
    if let document { attempt.state.follow(document) }
    for kind in ending { attempt.state.settle(kind, "") }
    (attempt.document, attempt.ending) = (document, ending)
    history.begin()
    self.attempt = attempt
    return [.store(DocumentWrite(version: attempt.version, state: attempt.state))]
  }

  private mutating func finish(version: Int64, _ bytes: [UInt8]) -> [DocumentEffect] {
    guard let attempt else { return [] }
    let outcome = record.note(attempt.state, version: version, bytes: bytes)
    if outcome == .lost { return retry() }
    history.written(attempt.entries)
    // That a key set expired is still true, whatever else is stored.
    var effects = [DocumentEffect.clear(attempt.ending.contains(.signing) ? nil : .storing)]
    for kind in attempt.ending { state.settle(kind, "") }
    if outcome == .inPlaceOfAnother { owe(.restoring) }
    if outcome != .overtaken, let document = attempt.document {
      state.follow(document)
      if published.map(document.isNewer) ?? true {
        effects += publish(document, saying: attempt.signing?.content)
      }
    }
    guard attempt.change != nil else { return effects + end() }
    // With what probes showed while it was written. A newer record that was read meanwhile may lack a denial: after the
    // store went back, another server can overwrite this write without having seen it.
    var next = state.uniting(record.state, base: attempt.base)
    let isLacking = next.uniteDenials(with: attempt.state)
    goOn(as: next, owing: isLacking ? .restoring : .nothing)
    return effects + [.shareDenials] + end(.success(attempt.changed))
  }

  /// Another server was first.
  private mutating func retry() -> [DocumentEffect] {
    guard let attempt else { return [] }
    history.refused()
    takeBack(attempt, owing: .changes)
    return readAgain()
  }

  private mutating func readAgain() -> [DocumentEffect] {
    attempt?.reads += 1
    return [.read(reading(to: .retry))]
  }

  private mutating func writeAgain(at now: Int64) -> [DocumentEffect] {
    guard let attempt else { return [] }
    guard attempt.reads >= WriteAttempt.mostReads else { return begin(attempt) }
    guard attempt.change == nil else { return end(.failure(.notStored(WriteAttempt.isContended))) }
    return [.log(.contended)] + state.note(.store(WriteAttempt.isContended), at: now) + end()
  }

  /// The write failed, or nobody knows whether it was made.
  private mutating func fail(_ failure: DocumentFailure, at now: Int64) -> [DocumentEffect] {
    guard let attempt else { return [] }
    history.failed()
    var effects: [DocumentEffect] = []
    if case .doubt(let doubt) = failure { effects = hold(doubt, at: now) }
    takeBack(attempt, owing: .owed)
    if attempt.change != nil { return effects + end(.failure(.notStored("\(failure)"))) }
    return effects + state.note(failure, at: now) + end()
  }

  /// What a write would have settled is owed again, and at least this unless a person asked for the write.
  private mutating func takeBack(_ attempt: WriteAttempt, owing least: DocumentDebt) {
    owe(attempt.change == nil ? max(attempt.debt, least) : attempt.debt)
    if attempt.signing != nil || attempt.change == nil { mustSign = true }
  }

  private mutating func end(
    _ answer: Result<[HistoryEntry], AdministrationError>? = nil
  ) -> [DocumentEffect] {
    attempt = nil
    return (answer.map { [.answer($0)] } ?? []) + [.idle]
  }

  private mutating func publish(
    _ document: SignedCopy, saying content: DocumentContent? = nil
  ) -> [DocumentEffect] {
    var document = document
    if let published, published.bytes == document.bytes {
      document.signed = max(document.signed, published.signed)
    }
    if content != nil || published?.bytes != document.bytes { said = content }
    published = document.withoutMembers
    return [.publish(document, says: content)]
  }
}
