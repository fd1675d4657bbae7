import CanonicalJSON
import RegistryCore
import RegistryStores
import SslPinningRules

/// What administrators see and change, whoever shows it to them.
struct RegistryAdministration: Sendable {
  /// The coordinators of the documents in force, in the order configured.
  let coordinators: @Sendable () -> [DocumentCoordinator]
  let store: any RegistryStore
  let clock: SteadyClock
  /// Is told which endpoints of a document changed, so that they are watched as they are now.
  let changed: @Sendable (_ file: String) async -> Void

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

  /// The newest entries of a document's history, newest first.
  ///
  /// - Parameter before: only entries with a smaller number.
  func history(
    of file: String, before: Int64?, limit: Int
  ) async throws(AdministrationError) -> [(number: Int64, entry: HistoryEntry)] {
    _ = try coordinator(of: file)
    do throws(StoreError) {
      return try await store.history(of: file, before: before, limit: limit).compactMap { stored in
        (try? JSONValue(parsing: stored.bytes)).flatMap(HistoryEntry.init)
          .map { (stored.number, $0) }
      }
    } catch { throw .notStored("\(error)") }
  }

  /// Makes a change. On return it is stored and published.
  ///
  /// - Parameters:
  ///   - who: the name in the administrator's token.
  ///   - why: their words, for the history.
  /// - Returns: what became of it, entries of the history; empty where nothing had to change.
  func perform(
    _ command: AdministrationCommand, by who: String, why: String
  ) async throws(AdministrationError) -> [HistoryEntry] {
    let request = DocumentState.Request(who: who, at: clock.now(), why: why)
    guard let file = command.file else { return try await performEverywhere(command, request) }
    let entries = try await perform(command, by: try coordinator(of: file), request)
    if command.changesWatching, !entries.isEmpty { await changed(file) }
    return entries
  }

  /// A denial counts in every document or, where one objects, in none.
  private func performEverywhere(
    _ command: AdministrationCommand, _ request: DocumentState.Request
  ) async throws(AdministrationError) -> [HistoryEntry] {
    let refusal = await objections(to: command, in: coordinators(), request).refusal
    if let refusal { throw refusal }
    var entries: [HistoryEntry] = []
    var failure: AdministrationError?
    for coordinator in coordinators() {
      do throws(AdministrationError) {
        entries += try await perform(command, by: coordinator, request)
      } catch { failure = error }
    }
    if let failure, entries.isEmpty { throw failure }
    // What it does not concern says so; whatever else went wrong is not done in every document.
    if let failure {
      guard case .noSuchKey = failure else { throw failure }
    }
    return entries
  }

  /// What a command would do now, without doing it.
  ///
  /// - Returns: the hosts that it would leave without a key that their servers show, or lock out, if it is forced.
  func rehearse(
    _ command: AdministrationCommand, by who: String, why: String
  ) async throws(AdministrationError) -> [String] {
    let request = DocumentState.Request(who: who, at: clock.now(), why: why)
    var concerned = coordinators()
    if let file = command.file { concerned = [try coordinator(of: file)] }
    let objections = await objections(to: command, in: concerned, request)
    if let first = objections.errors.first, objections.errors.count == concerned.count {
      throw first
    }
    guard case .deny(let pin, force: true) = command else {
      if let refusal = objections.refusal { throw refusal }
      return []
    }
    let unforced = await self.objections(
      to: .deny(pin, force: false), in: concerned, request)
    return (unforced.bare + unforced.under).sorted()
  }

  /// Why documents do not take a command.
  private struct Objections {
    var (bare, under): ([String], [String]) = ([], [])
    var areStaged = true
    var errors: [AdministrationError] = []

    /// What keeps it from all documents.
    var refusal: AdministrationError? {
      if !bare.isEmpty { return .leavesWithoutPin(bare, areStaged: areStaged) }
      return under.isEmpty ? nil : .locksOut(under)
    }
  }

  private func objections(
    to command: AdministrationCommand, in documents: [DocumentCoordinator],
    _ request: DocumentState.Request
  ) async -> Objections {
    var found = Objections()
    for coordinator in documents {
      var state = await coordinator.snapshot.state
      let configured = await coordinator.settings.configuration.endpoints
      do throws(AdministrationError) {
        _ = try Self.apply(command, to: &state, configured, request)
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

  private func perform(
    _ command: AdministrationCommand, by coordinator: DocumentCoordinator,
    _ request: DocumentState.Request
  ) async throws(AdministrationError) -> [HistoryEntry] {
    try await coordinator.perform(at: request.at) { state, configured throws(AdministrationError) in
      try Self.apply(command, to: &state, configured, request)
    }
  }

  private static func apply(
    _ command: AdministrationCommand, to state: inout DocumentState,
    _ configured: [WatchedEndpoint], _ request: DocumentState.Request
  ) throws(AdministrationError) -> [HistoryEntry] {
    func require(_ id: String) throws(AdministrationError) {
      let known = state.endpoints(configured: configured).map(\.id)
      guard known.contains(id) else { throw .noSuchEndpoint(id, known: known) }
    }
    switch command {
    case .add(_, let endpoint):
      return try state.add(endpoint, configured: configured, request)
    case .change(_, let id, let interval, let approval, let isPaused):
      try require(id)
      return state.change(
        id, interval: interval, approval: approval, isPaused: isPaused, request)
    case .setTerms(_, let id, let terms, let force):
      return try state.setTerms(terms, of: id, configured: configured, force: force, request)
    case .remove(_, let id): return try state.remove(id, configured: configured, request)
    case .stage(_, let id, let pin, let limit):
      try require(id)
      return try state.stage(pin, at: id, atMost: limit, request)
    case .approve(_, let id, let pin):
      try require(id)
      return try state.approve(pin, at: id, request)
    case .revoke(_, let id, let pin, let force):
      try require(id)
      return try state.revoke(pin, at: id, configured: configured, force: force, request)
    case .deny(let pin, let force):
      return try state.deny(pin, configured: configured, force: force, request)
    case .allow(let pin): return try state.allow(pin, request)
    }
  }

  private func coordinator(of file: String) throws(AdministrationError) -> DocumentCoordinator {
    guard let coordinator = coordinators().first(where: { $0.file == file }) else {
      throw .noSuchDocument(file)
    }
    return coordinator
  }
}

/// A change that an administrator asks for.
enum AdministrationCommand: Sendable {
  /// Watch one more endpoint, or again one that was taken out.
  case add(file: String, WatchedEndpoint)
  /// Change how an endpoint is watched; `nil` leaves a setting as it is.
  case change(file: String, id: String, interval: Int64?, approval: ApprovalMode?, isPaused: Bool?)
  /// Have clients ask for other terms at an endpoint's hosts.
  case setTerms(file: String, id: String, HostTerms, force: Bool)
  /// Take an endpoint out.
  case remove(file: String, id: String)
  /// Publish a key ahead of its use, unless so many that nobody has seen yet are there.
  case stage(file: String, id: String, SPKIPin, atMost: Int)
  /// Publish a key that is held.
  case approve(file: String, id: String, SPKIPin)
  /// Publish a key no more.
  case revoke(file: String, id: String, SPKIPin, force: Bool)
  /// Deny a key wherever it stands, in every document.
  case deny(SPKIPin, force: Bool)
  /// Deny a key no more.
  case allow(SPKIPin)

  /// Whether other endpoints are watched afterwards, or otherwise.
  var changesWatching: Bool {
    switch self {
    case .add, .change, .setTerms, .remove: true
    case .stage, .approve, .revoke, .deny, .allow: false
    }
  }

  /// The document that it is about; `nil` where it is about all of them.
  var file: String? {
    switch self {
    case .add(let file, _), .change(let file, _, _, _, _), .remove(let file, _),
      .setTerms(let file, _, _, _),
      .stage(let file, _, _, _), .approve(let file, _, _), .revoke(let file, _, _, _):
      file
    case .deny, .allow: nil
    }
  }
}

/// Who knows of the pin failures that apps reported.
protocol ReportsSource: Sendable {
  /// Whether reports are taken here.
  var isCollecting: Bool { get }

  /// What was counted so far.
  func summary() async -> ReportSummary
}

extension ReportCollector: ReportsSource {
  nonisolated var isCollecting: Bool { true }
}

/// Where nobody collects reports.
struct NoReports: ReportsSource {
  let clock: any ServerClock

  var isCollecting: Bool { false }

  func summary() async -> ReportSummary { ReportSummary(of: ReportLedger(), at: clock.now()) }
}
