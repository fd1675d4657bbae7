import CanonicalJSON
import RegistryCore
import RegistryStores
import SslPinningRules
import TLSTools

/// Keeps one document true: has ``DocumentMachine`` decide, and carries out what it decides.
///
/// - What the machine says is done in the order in which it says it, and before anything else is decided, unless it
///   has to be waited for. What is published comes first, so that a later document is never published before.
/// - Whoever wants to write waits until nothing is being written, and people's changes wait while an edit of the configuration is
///   judged.
/// - After a change that somebody asked for, the next one waits until another server could write: for one and a half times as
///   long as a signature takes, or for half as long as the change took. Otherwise whoever sends change after change to one
///   server keeps the others from writing: each of them would have to sign anew.
actor DocumentCoordinator {
  nonisolated let file: String
  nonisolated let services: CoordinatorServices

  private(set) var settings: CoordinatorSettings
  private var machine: DocumentMachine { didSet { changes &+= 1 } }
  /// Counts whatever may have changed the machine.
  private var changes: UInt64 = 0
  private var lastStanding: (changes: UInt64, standing: DocumentStanding)?
  /// Whoever waits for the write under way to end.
  private(set) var waiting: [CheckedContinuation<Void, Never>] = []
  /// What of the next record does not depend on what is signed, being put into words.
  private var parts: Task<(domains: [UInt8], history: [[UInt8]]), Never>?
  /// What a command signed last, and for what. Another server may have been first with a change that is not signed, as of an
  /// interval, and what was signed still says all: else one change after the other would keep this server from writing.
  private var lastSigned: (request: SigningRequest, document: PublishedDocument)?
  /// The document that was signed last, made ready to be published.
  private var finished: PublishedDocument?
  private var lastSignature: Int64?
  /// Until when no change begins, by the clock of ticks.
  private var othersTurnEnds: Int64 = 0
  /// The endpoints of which it was told that not all of their addresses are probed.
  private var toldOfCut: Set<String> = []
  /// What the last document tells. Only if the record was not believed when it was read first.
  private var told: DocumentState?
  /// The last reason not to believe the store.
  private var lastFault: SealFault?

  init(_ settings: CoordinatorSettings, services: CoordinatorServices) {
    file = settings.configuration.file
    self.settings = settings
    self.services = services
    machine = DocumentMachine(
      file: file, settings.machine(services.signer.mirrors(of: settings.configuration.file)))
  }

  // MARK: - What happens

  /// Reads what the store has and publishes it.
  ///
  /// - Throws: ``StoreError``: a server that cannot read its past must not begin a new one. A record that is not
  ///   good is no reason not to start: what was published last is served.
  func open(at now: Int64 = 0) async throws(StoreError) {
    await carry(try await read(machine.reading(to: .open), at: now), at: now)
  }

  /// Publishes the last copy while the store is awaited. Nothing goes on from it: that decides the store.
  func serve(_ copy: PublishedDocument) {
    finished = copy
    publish(copy.signedCopy, says: nil)
  }

  /// Takes over another configuration, once what is being stored is: what it says of an endpoint that this one renames would
  /// be lost.
  func reconfigure(_ settings: CoordinatorSettings) async {
    _ = await settledState()
    self.settings = settings
    await handle(.configured(settings.machine(services.signer.mirrors(of: file))), at: 0)
  }

  /// Signs by another key from now on.
  func changeSigningKey() async { await handle(.signingKeyChanged, at: 0) }

  /// Enters a probe.
  ///
  /// - Returns: what should follow. By then everything that the probe changed is stored and published,
  ///   unless the store failed.
  func enter(_ probe: ProbeResult, of endpoint: WatchedEndpoint, at now: Int64) async
    -> EnteredProbe
  {
    if !probe.leftOut.isEmpty, toldOfCut.insert(endpoint.id).inserted {
      services.log.event(
        .warn, "addresses_left_out",
        [
          "file": file, "endpoint": endpoint.id,
          "message":
            "its name has more than 16 addresses, and 16 are probed: keys of the others are not seen; hint: announce"
            + " them, or have an endpoint for each address",
        ])
    }
    let others = services.listings.withLock { [file] in $0.filter { $0.key != file }.map(\.value) }
    let (entered, effects) = services.gauge.withLock { gauge in
      machine.enter(probe, of: endpoint, at: now, beside: others, massChange: &gauge)
    }
    await carry(effects, at: now)
    await settle(at: now)
    return entered
  }

  /// Makes a change that somebody asked for. On return it is stored and published; if others kept changing the document while
  /// it was signed, the next one says it.
  ///
  /// - Parameter look: reads what it is judged by besides the document; called when its turn has come.
  /// - Throws: ``AdministrationError``; nothing was changed then, but for
  ///   ``AdministrationError/notStored(_:)``, which leaves that open.
  @discardableResult
  func perform(
    at now: Int64, after look: (@Sendable () async -> Void)? = nil,
    _ change:
      @escaping @Sendable (inout DocumentState, [WatchedEndpoint]) throws(AdministrationError)
      -> [HistoryEntry]
  ) async throws(AdministrationError) -> [HistoryEntry] {
    await untilTurn()
    while let look {
      await look()
      // Others were let in meanwhile.
      guard machine.isWriting || services.edits.isClosed else { break }
      await untilTurn()
    }
    let begun = services.ticks()
    let answer = await handle(.command(change), at: now)
    let ended = services.ticks()
    let turn = max((ended - begun) / 2, signingTook * 3 / 2)
    othersTurnEnds = ended + min(Self.longestTurn, turn)
    return try answer?.get() ?? []
  }

  /// How many milliseconds the last signature by a command took, and at least what another server's may.
  private var signingTook: Int64 {
    services.signer.runsCommands ? max(lastSignature ?? 0, 1000) : 0
  }

  /// In milliseconds: a store that hangs is no reason to wait for longer.
  private static let longestTurn: Int64 = 10_000

  /// What is due without a probe: what another server stored, a signature a day, a copy that is gone.
  func upkeep(at now: Int64) async {
    await refresh(at: now)
    if now - machine.signingChecked >= 3600 { await checkSigning(at: now) }
    await settle(at: now)
    services.published.restoreCopy(of: file)
  }

  /// What this server does before it watches: takes over what the last leader stored, and told.
  func lead(at now: Int64) async {
    await refresh(at: now)
    // Without the history entries may be told twice; the endpoints are to be followed all the same.
    let page = try? await services.store.history(of: file, before: nil, limit: 200)
    await handle(.leading(after: page.map { HistoryEntry.read($0) } ?? []), at: now)
    await upkeep(at: now)
  }

  /// Takes over what another server stored, if it did.
  ///
  /// - Parameter isFollowing: whether another server is known to lead.
  func refresh(at now: Int64, isFollowing: Bool = false) async {
    await untilWritten()
    await carry([.read(machine.refreshing(isFollowing: isFollowing))], at: now)
  }

  /// Tells the other documents what this one denies, and denies here what they do.
  func shareDenials(at now: Int64) async { await handle(.share, at: now) }

  /// Tells of keys that do not fit the key sets, and of a set that ends, before the next change needs them.
  func checkSigning(at now: Int64) async {
    let problem = services.signer.problem(of: file, after: machine.state, at: now)
    await handle(
      .signingChecked(
        problem.map { SigningTrouble(reason: "\($0)", event: $0.event, isAhead: $0.isAhead) }),
      at: now)
  }

  /// Whether others are watched, or paused, than the last time that this was asked: somebody else's change,
  /// or one of another server.
  func takeNewEndpoints() -> Bool { machine.takeNewEndpoints() }

  /// Stores all that is known, down to the times of the last probes.
  func close(at now: Int64) async {
    await handle(.closing, at: now)
    await settle(at: now)
  }

  /// Waits until memory, store and published document agree, or the store fails.
  private func settle(at now: Int64) async {
    await untilWritten()
    let effects = machine.handle(
      .settle(isClockConfirmed: services.isClockConfirmed()), at: now)
    guard !effects.isEmpty else { return }
    // Of its own: whoever asked for it may be cancelled, and others wait for it, too.
    await Task { _ = await self.carry(effects, at: now) }.value
  }

  /// What is known once what is being stored now is. Not what is stored after that: whoever has a token could put off an edit,
  /// and the end of his token with it, by one command after the other.
  func settledState() async -> DocumentState {
    if machine.isWriting { await withCheckedContinuation { waiting.append($0) } }
    return machine.state
  }

  private func untilTurn() async {
    while true {
      await untilWritten()
      guard !services.edits.isClosed else {
        await services.edits.pass()
        continue
      }
      let left = othersTurnEnds - services.ticks()
      guard left > 0 else { return }
      await services.pause(left)
    }
  }

  private func untilWritten() async {
    while machine.isWriting { await withCheckedContinuation { waiting.append($0) } }
  }

  // MARK: - What is done

  /// What came of a command.
  private typealias Answer = Result<[HistoryEntry], AdministrationError>

  @discardableResult
  private func handle(_ event: DocumentEvent, at now: Int64) async -> Answer? {
    await carry(machine.handle(event, at: now), at: now)
  }

  @discardableResult
  private func carry(_ effects: [DocumentEffect], at now: Int64) async -> Answer? {
    var answer: Answer?
    for effect in effects { answer = await carry(effect, at: now) ?? answer }
    return answer
  }

  private func carry(_ effect: DocumentEffect, at now: Int64) async -> Answer? {
    switch effect {
    case .log(let notice): services.log.event(notice, of: file)
    case .probed(let events, let endpoint): tell(of: events, at: endpoint)
    case .report(let kind, let reason):
      services.health.report(file, reason, as: HealthReport.Kind(kind))
    case .clear(let kind): services.health.clear(file, kind.map { HealthReport.Kind($0) })
    case .publish(let copy, let content):
      publish(copy, says: content)
      shareListing()
    case .shareDenials:
      shareListing()
      let shared = services.denials.withLock { shared in
        shared.enter(machine.state)
        return shared
      }
      return await handle(.denied(shared), at: now)
    case .settle: await settle(at: now)
    case .read(let request):
      do throws(StoreError) { return await carry(try await read(request, at: now), at: now) } catch
      {
        return await handle(.read(.failure(.store("\(error)")), request), at: now)
      }
    case .sign(let draft): return await handle(await sign(draft, at: now), at: now)
    case .store(let write): return await store(write, at: now)
    case .findCopy(let doubt):
      let copy = await services.copies?.servable(file, isOtherKey: doubt.kind == .otherSigningKey)
      told = await services.copies?.told(file)
      if let told { services.denials.withLock { $0.enter(told) } }
      shareListing()
      return await handle(.foundCopy(copy?.signedCopy, doubt), at: now)
    case .answer(let answer): return answer
    case .idle:
      for continuation in waiting { continuation.resume() }
      waiting = []
    }
    return nil
  }

  /// Tells the other documents what this one lists. While that is not known, it tells nothing: by an empty list, a host that moves
  /// would be new to the others.
  private func shareListing() {
    guard !machine.isUnread || told != nil else { return }
    let listing = DocumentListing(known)
    services.listings.withLock { [file] in $0[file] = listing }
  }

  private func tell(of events: [KeyEvent], at endpoint: String) {
    for event in events {
      services.log.event(
        event.level, event.name,
        ["file": file, "endpoint": endpoint, "message": "\(event)", "pin": event.pin?.base64 ?? ""])
    }
    services.metrics?.published(events)
  }

  func publish(_ copy: SignedCopy, says content: DocumentContent?) {
    let served = services.published.document(file).flatMap { $0.isMade(of: copy) ? $0 : nil }
    let ready = finished.flatMap { $0.isMade(of: copy) ? $0 : nil }
    let document = served ?? ready ?? PublishedDocument(file: file, copy)
    finished = nil
    if let content { services.published.prepare(content, for: document) }
    guard served == nil, services.published.publish(document) else { return }
    services.metrics?.published(
      DocumentFacts(
        file: file, version: document.number?.version, epoch: document.number?.epoch,
        expires: document.expires, keySetEnd: document.keySetExpires, signed: document.signed,
        entries: services.published.content(file)?.entries ?? []))
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

  /// Reads, and has the machine decide what follows. Errors that are not of this record alone are thrown.
  private func read(
    _ request: DocumentReadRequest, at now: Int64
  ) async throws(StoreError) -> [DocumentEffect] {
    if let time = request.historyFrom {
      let history = try await services.store.history(of: file, from: time)
      return machine.handle(.read(.success(DocumentReading(history: history)), request), at: now)
    }
    let (stored, found): (StoredRecord?, LastCopies.Found?)
    var reading = DocumentReading()
    do throws(StoreError) {
      (stored, found) = try await services.record(of: file, isFirst: machine.isUnread)
      if !machine.knows(version: stored?.version ?? 0, bytes: stored?.bytes) {
        reading.record =
          try stored.map { record throws(StoreError) in try self.record(record) }
          ?? DocumentRecord()
      }
    } catch {
      guard case .seal(let fault) = error else { throw error }
      lastFault = fault
      return machine.handle(.read(.failure(.doubt(StoreDoubt(fault, file))), request), at: now)
    }
    if machine.isUnread, let found {
      reading.copy = services.copy(found, of: file, beside: stored)
      reading.lost = services.lostStore.withLock { $0 }
    }
    return machine.handle(.read(.success(reading), request), at: now)
  }

  private func record(_ stored: StoredRecord) throws(StoreError) -> DocumentRecord {
    let signer = services.signer
    var record = DocumentRecord()
    record.state = try DocumentState(believing: stored.bytes, file: file)
    (record.version, record.bytes) = (stored.version, stored.bytes)
    record.document = signer.recognise(record.state.document, signed: record.state.signed)
    record.hasNewKeySets = signer.hasNewKeySets(
      for: file, after: LastDocument(members: record.document?.members))
    return record
  }

  private func sign(_ draft: DocumentDraft, at now: Int64) async -> DocumentEvent {
    // Meanwhile: of thousands of endpoints either takes a tenth of a second.
    parts = Task.detached {
      (
        draft.state.encodedDomains,
        draft.entries.map { JSONValue.object($0.json).canonicalBytes }
      )
    }
    let ending = alertsThatEnd(signing: draft.signing != nil, after: draft.state, at: now)
    guard let signing = draft.signing else { return .signed(nil, ending: ending) }
    do throws(SigningProblem) {
      finished = try await sign(signing, after: draft.state)
      return .signed(finished?.signedCopy, ending: ending)
    } catch { return .failed(.signing("\(error)")) }
  }

  private func sign(
    _ signing: DocumentDraft.Signing, after state: DocumentState
  ) async throws(SigningProblem) -> PublishedDocument? {
    let file = file
    while true {
      let signer = services.signer
      let sign = { @Sendable () throws(SigningProblem) -> PublishedDocument? in
        try signer.sign(
          signing.content, file: file, after: state, at: signing.time,
          isUnchanged: signing.isUnchanged)
      }
      // Without a command nothing else is to happen in between.
      guard signer.runsCommands else { return try sign() }
      let request = SigningRequest(signing, after: state, by: signer.publicKeyPEM)
      if let lastSigned, lastSigned.request == request { return lastSigned.document }
      let begun = services.ticks()
      let document = try await CommandSigning.run { Result(catching: sign) }.get()
      lastSignature = services.ticks() - begun
      // Another key may have come meanwhile.
      guard services.signer.publicKeyPEM == signer.publicKeyPEM else { continue }
      if let document { lastSigned = (request, document) }
      return document
    }
  }

  /// The alerts of the whole document that are over once a state is stored.
  func alertsThatEnd(
    signing: Bool, after state: DocumentState, at now: Int64
  ) -> [ServerAlert.Kind] {
    ServerAlert.ending(
      isSigning: signing,
      isSound: signing && services.signer.problem(of: file, after: state, at: now) == nil)
  }

  private func store(_ write: DocumentWrite, at now: Int64) async -> Answer? {
    guard let parts = await parts?.value else { return nil }
    self.parts = nil
    let bytes = write.state.encoded(domains: parts.domains)
    // Once it is published: the pieces of a large document are as large, and of no use until the next.
    defer { if bytes.count > 1 << 20 { ProcessMemory.giveBack() } }
    do throws(StoreError) {
      let outcome = try await services.store.replace(
        file, version: write.version, with: bytes, history: parts.history)
      guard case .replaced(let version) = outcome else { return await handle(.refused, at: now) }
      return await handle(.written(version: version, bytes: bytes), at: now)
    } catch {
      guard case .seal(let fault) = error else {
        return await handle(.failed(.store("\(error)")), at: now)
      }
      lastFault = fault
      return await handle(.failed(.doubt(StoreDoubt(fault, file))), at: now)
    }
  }

  // MARK: - What others see

  /// All that is known.
  var state: DocumentState { machine.state }

  /// The same or, while no record was ever believed, what the last document tells.
  var known: DocumentState { machine.isUnread ? told ?? machine.state : machine.state }

  /// Whether nobody knows what people decided about its hosts: its record was never believed.
  var isUnknown: Bool { machine.isUnread && machine.doubt != nil }

  /// The endpoints in force.
  var endpoints: [WatchedEndpoint] { machine.endpoints }

  /// The ids of endpoints that nobody probes for now.
  var pausedEndpoints: Set<String> { Set(state.overrides.filter(\.value.isPaused).keys) }

  /// Why this document decides and signs nothing: the store is not believed.
  var fault: SealFault? { machine.doubt == nil ? nil : lastFault }

  /// Everything known, to be shown.
  var snapshot: DocumentSnapshot {
    DocumentSnapshot(
      file: file, settings: settings, state: state.markingWhoLeft(endpoints),
      endpoints: endpoints, lastProbes: machine.lastProbes,
      published: services.published.document(file))
  }

  /// What is asked for every second: found anew only if something happened since.
  var standing: DocumentStanding {
    if let lastStanding, lastStanding.changes == changes { return lastStanding.standing }
    let standing = DocumentStanding(machine, in: file)
    lastStanding = (changes, standing)
    return standing
  }

  /// Whether nothing new can be signed, as far as ``checkSigning(at:)`` found out.
  var cannotSign: Bool {
    let problem = services.signer.problem(of: file, after: state, at: machine.signingChecked)
    return state.hasAlert(.signing) && problem?.isAhead == false
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
}

/// All that a signature depends on.
private struct SigningRequest: Equatable {
  let content: DocumentContent
  let last: [UInt8]
  let number: RegistryStamp.Version?
  let time: Int64
  let isUnchanged: Bool
  let key: String

  init(_ signing: DocumentDraft.Signing, after state: DocumentState, by key: String) {
    (content, time, isUnchanged) = (signing.content, signing.time, signing.isUnchanged)
    (last, number, self.key) = (state.document, state.number, key)
  }
}
