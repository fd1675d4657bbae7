import CanonicalJSON
import RegistryCore
import RegistryStores
import SslPinningPlatform
import SslPinningRules

/// What administrators see and change, whoever shows it to them.
struct RegistryAdministration: Sendable {
  /// The coordinators of the documents in force, in the order configured.
  let coordinators: @Sendable () -> [DocumentCoordinator]
  let store: any RegistryStore
  let clock: SteadyClock
  /// Is told which endpoints of a document changed, so that they are watched as they are now.
  let changed: @Sendable (_ file: String) async -> Void
  /// Lets one change at a time go over all documents.
  let everywhere = AsyncLock()

  /// All documents as they are now.
  func snapshots() async -> [DocumentSnapshot] {
    var snapshots: [DocumentSnapshot] = []
    for coordinator in coordinators() { snapshots.append(await coordinator.snapshot) }
    return snapshots
  }

  /// One document as it is now.
  func snapshot(of file: String) async throws(AdministrationError) -> DocumentSnapshot {
    try await coordinator(of: file).snapshot
  }

  /// The newest entries of a document's history, newest first, and before which number the next page begins.
  ///
  /// - Parameters:
  ///   - before: only entries with a smaller number.
  ///   - endpoint: only those about this endpoint, or about a key everywhere; looked for in so many entries as
  ///     ``mostSearched``, so a page may be shorter than asked for and not the last.
  func history(
    of file: String, before: Int64?, limit: Int, about endpoint: String? = nil
  ) async throws(AdministrationError) -> (
    entries: [(number: Int64, entry: HistoryEntry)], next: Int64?
  ) {
    _ = try coordinator(of: file)
    var (found, before, searched) = ([(number: Int64, entry: HistoryEntry)](), before, 0)
    do throws(StoreError) {
      while true {
        let size = endpoint == nil ? limit : Self.searchedAtOnce
        let page = try await store.history(of: file, before: before, limit: size)
        searched += page.count
        for stored in page {
          before = stored.number
          let entry = (try? JSONValue(parsing: stored.bytes)).flatMap(HistoryEntry.init)
          guard let entry, entry.isAbout(endpoint) else { continue }
          found.append((stored.number, entry))
          if found.count == limit { break }
        }
        let isOver = page.isEmpty || before == 1
        guard endpoint != nil, !isOver, found.count < limit, searched < Self.mostSearched else {
          return (found, isOver ? nil : before)
        }
      }
    } catch { throw .notStored("\(error)") }
  }

  private static let searchedAtOnce = 1000
  private static let mostSearched = 5000

  /// Makes a change. On return it is stored and published.
  ///
  /// - Parameters:
  ///   - who: the name in the administrator's token.
  ///   - why: their words, for the history.
  ///   - judgement: by what it was judged, to be looked at again when its turn has come.
  ///   - note: is told of what is made in each document at once: others may fail, and it is made all the same.
  /// - Returns: what became of it, entries of the history; empty where nothing had to change.
  func perform(
    _ command: AdministrationCommand, by who: String, why: String,
    judgedBy judgement: ChangeJudgement = ChangeJudgement(),
    noting note: ([HistoryEntry]) -> Void
  ) async throws(AdministrationError) -> [HistoryEntry] {
    guard let file = command.file else {
      let outcomes = try await performEverywhere(
        command, by: who, why: why, judgedBy: judgement, noting: note)
      let entries = outcomes.flatMap(\.changes)
      guard let failure = outcomes.compactMap(\.refusal).last else { return entries }
      // What it does not concern says so; whatever else went wrong is not done in every document.
      guard case .noSuchKey = failure, !entries.isEmpty else { throw failure }
      return entries
    }
    let entries = try await performAlone(
      command, in: file, by: who, why: why, judgement, noting: note)
    if command.changesWatching, !entries.isEmpty { await changed(file) }
    return entries
  }

  /// Makes a change of one document. While two people's is made, or an endpoint is taken out, no other one of these is: each of two can
  /// be good, and both make what nobody saw, or leave hosts without a key.
  private func performAlone(
    _ command: AdministrationCommand, in file: String, by who: String, why: String,
    _ judgement: ChangeJudgement, noting note: ([HistoryEntry]) -> Void
  ) async throws(AdministrationError) -> [HistoryEntry] {
    let isAlone = judgement.confirmed != nil || looksBeyond(command, judgement)
    if isAlone { await everywhere.enter() }
    defer { if isAlone { everywhere.leave() } }
    let request = DocumentState.Request(who: who, at: clock.now(), why: why)
    let coordinator = try coordinator(of: file)
    let all =
      looksBeyond(command, judgement) ? AllDocuments(coordinators, from: coordinator) : nil
    let entries = try await perform(
      command, by: coordinator, request, judgedBy: judgement, beside: all)
    note(entries)
    if let all, case .remove(_, let id) = command, !entries.isEmpty {
      try await lookAgain(at: id, of: coordinator, all, request, noting: note)
    }
    return entries
  }

  /// Looks again at the other documents once an endpoint is taken out: each of two removals at two servers can be good, and both leave
  /// hosts to what nobody saw. It is taken back then.
  ///
  /// - Throws: ``AdministrationError/leavesUnseen(_:)``.
  private func lookAgain(
    at id: String, of coordinator: DocumentCoordinator, _ all: AllDocuments,
    _ request: DocumentState.Request, noting note: ([HistoryEntry]) -> Void
  ) async throws(AdministrationError) {
    // What is left of one that left the configuration is not put back: nothing tells who took it out.
    guard let before = all.judged, before.endpoints.contains(where: { $0.id == id }) else { return }
    let now = clock.now()
    await all.look(at: now, anew: true)
    var state = before.state
    do throws(AdministrationError) {
      _ = try state.remove(
        id, configured: before.configured, beside: all.others.map(\.state), request)
    } catch {
      guard case .leavesUnseen = error else { return }
      let objection = error
      note(
        try await coordinator.perform(at: now) { state, _ in
          state.takeBackRemoval(
            of: id, by: request, from: before.state, because: objection, at: now)
        })
      await changed(coordinator.file)
      throw objection
    }
  }

  /// Makes a change in every document that it concerns. A denial counts in all of them or, if one objects, in none.
  ///
  /// - One such change at a time: each of two denials can be good, and both leave a host without a key. See also
  ///   ``performAlone(_:in:by:why:_:)``.
  /// - If a document changed since it was asked, or another server was first, it may object only at its turn. Then what
  ///   others have made of the denial, or taken over, is taken back before the answer. A key that was denied before stays so:
  ///   the request only renewed that denial, and somebody was told that it is in force.
  ///
  /// - Parameter note: is told of what is made in each document at once.
  /// - Throws: ``AdministrationError`` of a document that objects to a denial.
  func performEverywhere(
    _ command: AdministrationCommand, by who: String, why: String,
    judgedBy judgement: ChangeJudgement = ChangeJudgement(),
    noting note: ([HistoryEntry]) -> Void
  ) async throws(AdministrationError) -> [DocumentOutcome] {
    await everywhere.enter()
    defer { everywhere.leave() }
    let request = DocumentState.Request(who: who, at: clock.now(), why: why)
    let known = coordinators()
    let concerned = known.filter { command.concerns($0.file) }
    let documents = await documents()
    if let refusal = Self.objections(to: command, in: documents, request).refusal { throw refusal }
    let facts = try judgement.facts(of: command, in: documents, request)
    // Of another server's denial this one may read only at a document's turn.
    let standing = Locked(Set(documents.flatMap(\.state.deniedPins)))
    var outcomes: [DocumentOutcome] = []
    for coordinator in concerned {
      var outcome = DocumentOutcome(file: coordinator.file)
      do throws(AdministrationError) {
        outcome.changes = try await perform(
          command, by: coordinator, request, judgedBy: judgement, within: facts, noting: standing)
        note(outcome.changes)
      } catch {
        if error.isObjection, !command.deniedPins.isEmpty {
          let made = command.deniedPins.subtracting(standing.withLock { $0 })
          let left = await takeBack(made.sorted(), request, because: error, noting: note)
          throw left.isEmpty ? error : .notTakenBack(left, "\(error)")
        }
        outcome.refusal = error
      }
      outcomes.append(outcome)
    }
    if outcomes.contains(where: { !$0.changes.isEmpty }) {
      outcomes += await share(beyond: known, request)
    }
    return outcomes
  }

  /// Takes back what a request denied.
  ///
  /// - Returns: what is denied all the same.
  private func takeBack(
    _ pins: [SPKIPin], _ request: DocumentState.Request,
    because objection: AdministrationError, noting note: ([HistoryEntry]) -> Void
  ) async -> [SPKIPin] {
    let now = clock.now()
    // Each, also if it knows of no denial: the answer to its write may have been lost, and its record is read for this.
    for coordinator in coordinators() {
      do throws(AdministrationError) {
        note(
          try await coordinator.perform(at: now) { state, _ in
            pins.flatMap {
              state.takeBackDenial(of: $0, by: request, because: objection, at: now)
            }
          })
      } catch {}  // It is found below.
    }
    var left: Set<SPKIPin> = []
    for coordinator in coordinators() {
      await coordinator.shareDenials(at: now)
      left.formUnion(
        await coordinator.state.denied.filter { $0.isMade(by: request) }.map(\.pin))
    }
    return left.intersection(pins).sorted()
  }

  /// Has documents that an edit of the configuration brought meanwhile deny what the others do: they are served, and would take it
  /// over only after the answer.
  ///
  /// - Returns: those that could not.
  private func share(
    beyond known: [DocumentCoordinator], _ request: DocumentState.Request
  ) async -> [DocumentOutcome] {
    await known.first?.services.edits.pass()
    var outcomes: [DocumentOutcome] = []
    for coordinator in coordinators() where !known.contains(where: { $0 === coordinator }) {
      let denials = coordinator.services.denials
      do throws(AdministrationError) {
        try await coordinator.perform(at: request.at) { state, _ throws(AdministrationError) in
          state.takeOver(denials.withLock { $0 }, at: request.at)
        }
      } catch { outcomes.append(DocumentOutcome(file: coordinator.file, refusal: error)) }
    }
    return outcomes
  }

  /// Judges a command without doing it.
  ///
  /// - Throws: ``AdministrationError``: why it would not be done.
  static func rehearse(
    _ command: AdministrationCommand, in documents: [JudgedDocument],
    _ request: DocumentState.Request
  ) throws(AdministrationError) {
    let concerned = documents.filter { command.concerns($0.file) }
    if let file = command.file, concerned.isEmpty { throw .noSuchDocument(file) }
    let found = objections(to: command, in: concerned, request)
    if let first = found.errors.first, found.errors.count == concerned.count { throw first }
    if command.unforced == nil, let refusal = found.refusal { throw refusal }
  }

  /// Why documents do not take a command.
  struct Objections {
    var (bare, under): ([String], [String]) = ([], [])
    var areStaged = true
    var errors: [AdministrationError] = []

    /// What keeps it from all documents.
    var refusal: AdministrationError? {
      if !bare.isEmpty { return .leavesWithoutPin(bare, areStaged: areStaged) }
      return under.isEmpty ? nil : .locksOut(under)
    }
  }

  /// What of those that a command concerns does not take it.
  static func objections(
    to command: AdministrationCommand, in documents: [JudgedDocument],
    _ request: DocumentState.Request
  ) -> Objections {
    var found = Objections()
    for document in documents where command.concerns(document.file) {
      var state = document.state
      do throws(AdministrationError) {
        _ = try apply(
          command, to: &state, of: document.file, beside: [], document.configured, request)
      } catch {
        switch error {
        case .leavesWithoutPin(let hosts, let staged):
          found.bare += hosts
          found.areStaged = found.areStaged && staged
        case .locksOut(let hosts): found.under += hosts
        default: found.errors.append(error)
        }
      }
    }
    return found
  }

  /// All documents, as changes are judged by them.
  func documents() async -> [JudgedDocument] {
    var documents: [JudgedDocument] = []
    for coordinator in coordinators() { documents.append(await coordinator.judged) }
    return documents
  }

  /// The endpoints that the configuration has now, by document; none for what counts wherever its key stands.
  func configured(for command: AdministrationCommand) async -> [String: [WatchedEndpoint]] {
    var configured: [String: [WatchedEndpoint]] = [:]
    if case .allow = command { return configured }
    guard command.deniedPins.isEmpty else { return configured }
    for coordinator in coordinators() where command.concerns(coordinator.file) {
      configured[coordinator.file] = await coordinator.settings.configuration.endpoints
    }
    return configured
  }

  /// - Parameters:
  ///   - facts: what of all documents the change is about; `nil` if it is about one, or nobody confirmed it.
  ///   - all: what it is judged by besides its document.
  ///   - standing: the keys that were denied before; told of those that are found when the change is made.
  private func perform(
    _ command: AdministrationCommand, by coordinator: DocumentCoordinator,
    _ request: DocumentState.Request, judgedBy judgement: ChangeJudgement,
    within facts: Set<String>? = nil, beside all: AllDocuments? = nil,
    noting standing: Locked<Set<SPKIPin>>? = nil
  ) async throws(AdministrationError) -> [HistoryEntry] {
    let (file, coordinators) = (coordinator.file, coordinators)
    let look = all.map { all in { @Sendable in await all.look(at: request.at) } }
    return try await coordinator.perform(at: request.at, after: look) {
      state, configured throws(AdministrationError) in
      // An edit of the configuration may have taken the document out while this waited.
      guard command.file == nil || coordinators().contains(where: { $0 === coordinator }) else {
        throw AdministrationError.noSuchDocument(file)
      }
      try judgement.mayBeMade(file)
      // Or have an endpoint speak for more hosts than whoever asked may decide about, or two people saw.
      guard judgement.configured[file] ?? configured == configured else {
        throw AdministrationError.editedMeanwhile(file)
      }
      let own = JudgedDocument(file: file, configured: configured, state: state)
      all?.note(own)
      try judgement.confirm(
        command, in: all?.documents(with: own) ?? [own], request, within: facts)
      let before = state.denied.filter { !$0.isMade(by: request) }.map(\.pin)
      standing?.withLock { $0.formUnion(before) }
      let others = all?.others ?? []
      return try Self.apply(
        command, to: &state, of: file, beside: others.map(\.state), configured, request)
    }
  }

  /// Whether a change is judged by what other documents have: by who else speaks for its hosts.
  private func looksBeyond(
    _ command: AdministrationCommand, _ judgement: ChangeJudgement
  ) -> Bool {
    switch command {
    case .remove: true
    case .add: judgement.confirmed != nil
    default: false
    }
  }

  static func apply(
    _ command: AdministrationCommand, to state: inout DocumentState, of file: String,
    beside elsewhere: [DocumentState], _ configured: [WatchedEndpoint],
    _ request: DocumentState.Request
  ) throws(AdministrationError) -> [HistoryEntry] {
    func require(_ id: String, orOrphans: Bool = false) throws(AdministrationError) {
      let known = state.endpoints(configured: configured).map(\.id)
      guard known.contains(id) || orOrphans && !state.orphans(of: id).isEmpty else {
        throw .noSuchEndpoint(id, known: known)
      }
    }
    switch command {
    case .add(_, let endpoint):
      return try state.add(endpoint, configured: configured, request)
    case .change(_, let id, let interval, let approval, let isPaused):
      try require(id)
      return state.change(
        id, interval: interval, approval: approval, isPaused: isPaused, request)
    case .setTerms(_, let id, let change, let force):
      return try state.setTerms(change, of: id, configured: configured, force: force, request)
    case .remove(_, let id):
      return try state.remove(id, configured: configured, beside: elsewhere, request)
    case .stage(_, let id, let pin, let scope):
      try require(id)
      return try state.stage(
        pin, at: id, atMost: scope.announcedLimit, bringsCA: scope == .decide, request)
    case .approve(_, let id, let pin, let issuer):
      try require(id)
      return try state.approve(pin, at: id, under: issuer, request)
    case .revoke(_, let id, let pin, let force):
      try require(id, orOrphans: true)
      return try state.revoke(pin, at: id, configured: configured, force: force, request)
    case .deny(let pin, let force):
      return try state.deny(pin, configured: configured, force: force, request)
    case .allow(let pin): return try state.allow(pin, request)
    case .decide(let decision):
      return try state.decide(decision, in: file, configured: configured, request)
    }
  }

  private func coordinator(of file: String) throws(AdministrationError) -> DocumentCoordinator {
    guard let coordinator = coordinators().first(where: { $0.file == file }) else {
      throw .noSuchDocument(file)
    }
    return coordinator
  }
}

/// Lets one in at a time; the others wait in line.
final class AsyncLock: Sendable {
  /// Whoever waits; `nil` while nobody is in.
  private let line = Locked<[CheckedContinuation<Void, Never>]?>(nil)

  /// How many wait.
  var waits: Int { line.withLock { $0?.count ?? 0 } }

  /// Waits until nobody is in. Then ``leave()`` must follow.
  func enter() async {
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
      let isIn = line.withLock { line -> Bool in
        guard line != nil else {
          line = []
          return true
        }
        line?.append(continuation)
        return false
      }
      if isIn { continuation.resume() }
    }
  }

  /// Lets the next one in.
  func leave() {
    let next = line.withLock { line -> CheckedContinuation<Void, Never>? in
      guard line?.isEmpty == false else {
        line = nil
        return nil
      }
      return line?.removeFirst()
    }
    next?.resume()
  }
}

/// Who knows of the pin failures that apps reported.
protocol ReportsSource: Sendable {
  /// Whether reports are taken here.
  var isCollecting: Bool { get }

  /// What was counted so far.
  func summary() async -> ReportSummary

  /// The last day's reports told apart, a few seconds old at most.
  func picture() async -> ReportPicture
}

extension ReportCollector: ReportsSource {
  nonisolated var isCollecting: Bool { true }
}

/// Where nobody collects reports.
struct NoReports: ReportsSource {
  let clock: any ServerClock

  var isCollecting: Bool { false }

  func summary() async -> ReportSummary { ReportSummary(of: ReportLedger(), at: clock.now()) }

  func picture() async -> ReportPicture { await summary().picture }
}
