import Foundation
import HTTPServing
import RegistryCore
import RegistryStores
import SslPinningPlatform
import TLSTools

/// How the service comes by its store.
extension RegistryService {
  /// Opens the store that is configured, to be sealed under the signer's keys.
  static func store(
    _ configuration: ServerConfiguration, signer: DocumentSigner, metrics: ServerMetrics,
    log: ServerLog
  ) throws(RegistryServiceError) -> SealedStore {
    let keys = try sealKeys(of: signer, configuration)
    keepSealKey(keys, of: signer, configuration, log)
    let (storage, mark) = (configuration.storage, mark(configuration))
    var base: any RegistryStore
    do throws(StoreError) { base = try storage.open() } catch {
      guard error.isAbsence(wasOpen: mark.seen != nil) else { throw .store(error) }
      base = LateStore { () throws(StoreError) in try storage.open() }
    }
    return SealedStore(MeasuredStore(base, metrics: metrics), keys: keys, mark: mark)
  }

  /// What is remembered of the store.
  ///
  /// - Parameter writing: who writes it.
  static func mark(
    _ configuration: ServerConfiguration, writing: SealMark.Writing = .always
  ) -> SealMark {
    SealMark(
      directory: configuration.storage == .memory ? nil : configuration.tls.directory,
      writing: writing)
  }

  /// What is remembered of copies beside a store that forgets; `nil` beside another one.
  static func markOfCopies(_ configuration: ServerConfiguration) -> SealMark? {
    configuration.storage == .memory
      ? SealMark(directory: configuration.tls.directory, isOfCopies: true) : nil
  }

  /// The keys that seal the store.
  static func sealKeys(
    of signer: DocumentSigner, _ configuration: ServerConfiguration
  ) throws(RegistryServiceError) -> SealKeys {
    do throws(SigningKeyError) { return try signer.sealKeys } catch {
      let path =
        signer.key.isHeldByCommand
        ? SigningConfiguration.place : configuration.tls.directory + "/prv.pem"
      throw .signer(.signingKey(path: path, error))
    }
  }

  /// Keeps the key that seals the store, so that the next start needs no command for it.
  static func keepSealKey(
    _ keys: SealKeys, of signer: DocumentSigner, _ configuration: ServerConfiguration,
    _ log: ServerLog
  ) {
    guard signer.key.isHeldByCommand else { return }
    do throws(FileError) {
      try SealKeyFile.keep(keys.own, in: configuration.tls.directory)
    } catch {
      log.event(
        .info, "seal_key_not_kept",
        [
          "reason": "\(error)",
          "message":
            "each start needs signing.command, which has to make the key of the store's seal",
        ])
    }
  }

  /// Warns of what works and should not stay so, at every reading.
  func warn(of configuration: ServerConfiguration, _ signer: DocumentSigner) {
    KeyCare.warn(of: configuration, signer: signer, log)
    UnusedKeySets.warn(of: configuration, log)
    DescriptorLimit.warn(of: configuration, log)
  }

  /// On loopback a proxy stands in front as a rule, and who calls through it cannot be told apart.
  func warnIfShared(_ configuration: ServerConfiguration) {
    guard configuration.listen.isLoopback, configuration.server.trustedProxies.isEmpty else {
      return
    }
    log.event(
      .warn, "callers_share_limits",
      [
        "message": "behind a proxy all callers have one address here, and share its limits; "
          + "hint: where there is one, set server.trusted_proxies, as to [127.0.0.1]"
      ])
  }

  /// Tells which documents have their root key on this server.
  func tellRoots(of coordinators: [DocumentCoordinator]) async {
    var files: [String] = []
    for coordinator in coordinators
    where await services.signer.isRoot(of: coordinator.file, after: coordinator.state) {
      files.append(coordinator.file)
    }
    guard let first = files.first else { return }
    log.event(
      .info, "root_key_on_server",
      [
        "documents": "\(files.count)", "first": first,
        "message":
          "prv.pem is the root key: whoever steals it is the registry, and only a release of the app"
          + " helps; hint: ssl-pinning keys generate --root for a new registry, docs/root-keys.md for this one",
      ])
  }

  /// Reads the store's own record again, and tells where the store lost it.
  ///
  /// - Returns: whether the store is believed; that it is not is told by each document.
  static func check(_ store: SealedStore, log: ServerLog) async -> Bool {
    do throws(StoreError) {
      guard try await store.check() else { return true }
      log.event(
        .error, "store_went_back",
        [
          "file": StoreIdentity.recordName,
          "message":
            "the store's own record was gone, or an older one in force; it is written again as this server"
            + " knows it; hint: find out who can write to the store",
        ])
    } catch {
      if case .seal = error { return false }
    }
    return true
  }

  /// Begins a lost store again, if each document that was in it has a copy that can stand in: otherwise nothing would
  /// be decided until a person comes, and a rotation that nobody announced would lock users out until then.
  ///
  /// - Returns: whether it did. If not, a person must say that the store is new.
  private func goOnWithoutStore(
    _ configuration: ServerConfiguration
  ) async throws(StoreError) -> Bool {
    let files = configuration.documents.map(\.file)
    guard let seen = try await store.lost(files) else { return false }
    // The mark may be another one by now, and would be written over.
    guard !store.mark.isUnread else {
      throw .unreachable(place: SealMark.fileName, reason: "it is in tls.dir, and cannot be read")
    }
    guard try await services.copies?.standIn(for: seen, files) == true,
      let age = try await store.beginAgain(seen, at: clock.now())
    else { return false }
    services.lostStore.withLock { $0 = age }
    log.event(.error, "store_lost", ["message": DocumentState.lostStoreMessage])
    return true
  }

  /// Finds out which store it is, seals it if it is new, and tells.
  func openStore(_ configuration: ServerConfiguration) async throws(StoreError) {
    var opening = try await store.open(documents: configuration.documents.map(\.file))
    if case .fault(.vanished(record: StoreIdentity.recordName)) = opening,
      try await goOnWithoutStore(configuration)
    {
      opening = .new
    }
    switch opening {
    case .fault(let fault):
      // Each document tells it, too; a server without any would not.
      log.event(.error, "store_not_believed", ["reason": "\(fault)"])
    case .sealed(let records):
      log.event(
        .info, "store_sealed",
        [
          "records": "\(records.count)",
          "message":
            "the store had no seal: what it has is believed this once, as whoever could write to it"
            + " left it, and sealed under prv.pem",
        ])
    case .new, .known: break
    }
    services.whenBelieved.withLock { $0 = { [weak self] in await self?.rememberLeft() } }
    if case .fault = opening { return }
    try await rememberLeft(configuration)
    if configuration.publishing.directory != nil { services.copies?.mark?.begin() }
    Self.tellMark(of: store, services, at: clock.now())
  }

  private func rememberLeft() async -> StoreError? {
    do throws(StoreError) { try await rememberLeft(inForce.withLock { $0 }) } catch { return error }
    return nil
  }

  /// What documents deny that are configured no more: a denial ends by an allowance, and not with a file's name. And what people
  /// decided about hosts that another document speaks for since the last start.
  private func rememberLeft(_ configuration: ServerConfiguration) async throws(StoreError) {
    let files = Set(configuration.documents.map(\.file))
    var states: [String: DocumentState] = [:]
    for name in store.recordNames.sorted() {
      let isLeft = !files.contains(name)
      let record: StoredRecord?
      do throws(StoreError) { record = try await store.record(named: name) } catch {
        guard case .seal(let fault) = error else { throw error }
        // One that is configured tells it itself.
        guard isLeft else { continue }
        log.event(.error, "seal_broken", ["file": name, "reason": "\(fault)"])
        states[name] = await rememberUnread(name, for: configuration.documents)
        continue
      }
      guard let record, let state = try? DocumentState(decoding: record.bytes, file: name) else {
        continue
      }
      states[name] = state
      services.listings.withLock { $0[name] = DocumentListing(state) }
      guard isLeft else { continue }
      services.denials.withLock { $0.enter(state) }
      if !state.document.isEmpty { tellLeft(name, signed: state.signed) }
    }
    let records = states
    services.whenAnswered.withLock {
      $0 = { [weak self] in await self?.rememberCopies(beside: records) ?? false }
    }
    if await !rememberCopies(beside: records) {
      tellMoved(MovedHosts.messages(configuration.documents, records, in: Set(records.keys)))
    }
    services.whenBelieved.withLock { $0 = nil }
  }

  /// The same of a document that left and whose record is not believed, by the last one that would be served for it.
  private func rememberUnread(
    _ file: String, for documents: [DocumentConfiguration]
  ) async -> DocumentState? {
    let endpoints = documents.flatMap(\.endpoints)
    guard let state = await services.copies?.told(file, keepingOut: endpoints) else { return nil }
    services.listings.withLock { $0[file] = DocumentListing(state) }
    services.denials.withLock { $0.enter(state) }
    tellLeft(file, signed: state.signed)
    tellMoved(MovedHosts.unknown(documents, in: file, state.orphans.flatMap(\.patterns)))
    return state
  }

  /// The same of documents of which the store has nothing, or an older one, by their copies in `publish.dir`: what left is in no record
  /// where the store forgets, was lost, or went back. A denial stands in all documents, so only the newest copy or record tells whether
  /// it was allowed again since.
  ///
  /// - Returns: whether `publish.dir` answers. If not, it is asked again before a document begins that has no record.
  private func rememberCopies(beside records: [String: DocumentState]) async -> Bool {
    let documents = inForce.withLock(\.documents)
    let left = await services.copies?.all(but: Set(documents.map(\.file)), beside: records)?
      .filter { copy in records[copy.file].map { copy.signedCopy.isNewer(than: $0) } ?? true }
    guard let copies = services.copies, let left else { return false }
    var (states, newest) = (
      records, (Array(records.values).map(\.signed) + left.map(\.signed)).max()
    )
    for document in left.isEmpty ? [] : documents {
      let served = services.published.document(document.file)
      guard let copy = await copies.newest(document.file, beside: served) else { continue }
      newest = max(newest ?? copy.signed, copy.signed)
      guard records[document.file] == nil else { continue }
      // What it speaks for by now is no news.
      let keys = DocumentState().goingOn(from: copy.signedCopy, endpoints: document.endpoints)
        .keysByEndpoint
      states[document.file, default: DocumentState()].follow(
        document.endpoints.filter { keys[$0.id] != nil })
    }
    for copy in left {
      var state = records[copy.file] ?? DocumentState()
      let isKnown = !state.document.isEmpty
      state.goOn(asLeftBy: copy.signedCopy, keepingOut: documents.flatMap(\.endpoints))
      states[copy.file] = state
      services.listings.withLock { $0[copy.file] = DocumentListing(state) }
      if copy.signed == newest { services.denials.withLock { $0.enter(state) } }
      guard isKnown else {
        tellLeft(copy.file, signed: state.signed)
        continue
      }
      log.event(
        .error, "store_went_back",
        ["file": copy.file, "message": DocumentState.behindCopyMessage])
    }
    tellMoved(MovedHosts.messages(documents, states, in: Set(states.keys)))
    services.whenAnswered.withLock { $0 = nil }
    return true
  }

  /// Tells what another document speaks for by now, and a document whose record is not believed did before.
  func tellUnknown(_ documents: [DocumentConfiguration], _ coordinators: [DocumentCoordinator])
    async
  {
    for coordinator in coordinators where await coordinator.isUnknown {
      let patterns = await coordinator.known.orphans.flatMap(\.patterns)
      tellMoved(MovedHosts.unknown(documents, in: coordinator.file, patterns))
    }
  }

  func tellMoved(_ messages: [String]) { Self.tellMoved(messages, log) }

  private static func tellMoved(_ messages: [String], _ log: ServerLog) {
    for message in messages { log.event(.warn, "words_left", ["message": message]) }
  }

  /// The same for a server that takes over. It may have had an edit before the other one, where people went on deciding by the
  /// old configuration: the records do not know of the edit yet, and the coordinators here follow it already.
  static func tellMoved(
    by documents: [DocumentConfiguration], _ store: SealedStore, _ log: ServerLog
  ) async {
    let states = await states(of: [], in: store)
    tellMoved(MovedHosts.messages(documents, states, in: Set(states.keys)), log)
  }

  /// What these documents, and those that are configured no more, have.
  private static func states(
    of coordinators: [DocumentCoordinator], in store: SealedStore
  ) async -> [String: DocumentState] {
    var states: [String: DocumentState] = [:]
    for coordinator in coordinators { states[coordinator.file] = await coordinator.state }
    for name in store.recordNames where states[name] == nil {
      guard let record = try? await store.record(named: name) else { continue }
      states[name] = try? DocumentState(decoding: record.bytes, file: name)
    }
    return states
  }

  /// Tells that a document is served no more.
  func tellLeft(_ file: String, signed: Int64) {
    health.left(file, signed: signed)
    log.event(.warn, "document_left", ["file": file, "message": LeftDocuments.message(file)])
  }
}

extension RegistryService {
  /// Refuses a configuration by which clients would ask hosts that left, and that stay listed, for other CAs than before, or
  /// that moves hosts away from what people decided about them.
  ///
  /// - Returns: what is only to be told, since it was decided in documents that left: there nobody can decide otherwise now.
  /// - Throws: ``RegistryServiceError/terms(_:)``.
  @discardableResult
  func checkTerms(_ read: ServerConfiguration) async throws(RegistryServiceError) -> [String] {
    let before = Dictionary(
      inForce.withLock(\.documents).map { ($0.file, $0.endpoints) }, uniquingKeysWith: { $1 })
    let coordinators = duty.coordinators
    // All at once: a slow signature each, one after the other, would put an edit off for minutes.
    await withTaskGroup(of: Void.self) { group in
      for coordinator in coordinators {
        group.addTask { _ = await coordinator.settledState() }
      }
    }
    for coordinator in coordinators where await coordinator.isUnknown {
      let patterns = (before[coordinator.file] ?? []).flatMap(\.patterns)
      let unknown = MovedHosts.unknown(read.documents, in: coordinator.file, patterns)
      if let first = unknown.first { throw .terms(first) }
    }
    let states = await Self.states(of: coordinators, in: store)
    let live = Set(coordinators.map(\.file))
    if let moved = MovedHosts.messages(read.documents, states, in: live, areLive: true).first {
      throw .terms(moved)
    }
    for new in read.documents {
      guard let state = states[new.file] else { continue }
      // Or those of a document that comes back.
      let old = before[new.file] ?? state.watched
      // One that is in force already, with the same terms, keeps nobody from other edits.
      let known = state.conflicts(configuring: old, isOfOrphans: false)
      let odds = state.conflicts(configuring: new.endpoints, isOfOrphans: true)
        .filter { known[$0] != $1 }
      if let pair = odds.keys.min(by: { $0.lexicographicallyPrecedes($1) }) {
        throw .terms(DifferingTerms.message((one: pair[0], other: pair[1]), new.file))
      }
      if let lost = state.wordsLost(configuring: new.endpoints).first {
        throw .terms("in \(new.file), \(lost)")
      }
    }
    return MovedHosts.messages(read.documents, states, in: Set(states.keys).subtracting(live))
  }

  /// ``checkTerms(_:)`` again, right before an edit is taken in force: what people decide while it is checked, or made ready,
  /// would be acknowledged and lost. Whatever they ask for from now on waits for `services.edits` to be opened.
  func judge(_ read: ServerConfiguration) async throws(RegistryServiceError) {
    services.edits.close()
    try await checkTerms(read)
  }

  /// Tells where the configuration and what people decided are at odds.
  func tellOdds(
    _ configuration: ServerConfiguration, _ coordinators: [DocumentCoordinator]
  ) async {
    let (documents, approval) = (configuration.documents, configuration.tls.approval)
    let known = Dictionary(documents.map { ($0.file, $0) }, uniquingKeysWith: { first, _ in first })
    for coordinator in coordinators {
      guard let document = known[coordinator.file] else { continue }
      let state = await coordinator.state
      for message in DifferingTerms.messages(in: document, state) {
        log.event(.warn, "terms_differ", ["file": document.file, "message": message])
      }
      for message in OverruledApprovals.messages(in: document, state, approval) {
        log.event(.warn, "approval_differs", ["file": document.file, "message": message])
      }
      for id in TakenOutEndpoints.ids(in: document, state) {
        log.event(
          .warn, "endpoint_taken_out",
          [
            "file": document.file, "endpoint": id,
            "message": TakenOutEndpoints.message(id, document.file, state),
          ])
      }
    }
  }
}

/// Where clients ask for something else than the configuration says, because people set other terms or added an endpoint
/// for the same host. Differing terms within the configuration are refused; what people decided must not keep a server
/// from starting.
enum DifferingTerms {
  static func messages(in document: DocumentConfiguration, _ state: DocumentState) -> [String] {
    let inForce = state.endpoints(configured: document.endpoints)
    let terms = Dictionary(inForce.map { ($0.id, $0.terms) }, uniquingKeysWith: { one, _ in one })
    var messages: [String] = []
    for endpoint in document.endpoints where !endpoint.terms.isStandard {
      guard let own = terms[endpoint.id],
        !own.asksTheSame(as: endpoint.terms) || own.enforcement != endpoint.terms.enforcement
      else { continue }
      messages.append(
        "\(endpoint.id) in \(document.file) does not go by ca, match and enforce of the configuration: an"
          + " administrator set \(own); hint: change that by ssl-pinning admin terms")
    }
    let pairs =
      [HostTerms.conflict(among: inForce)].compactMap(\.self)
      + state.orphanConflicts(among: inForce)
    messages += pairs.map { message($0, document.file) }
    return messages
      + state.wordsLost(configuring: document.endpoints).map { "in \(document.file), \($0)" }
  }

  static func message(_ pair: (one: String, other: String), _ file: String) -> String {
    "in \(file), \(pair.one) and \(pair.other) speak of the same host with different ca or match, and"
      + " clients take the CAs of both and the stricter match; hint: give both the same, by ssl-pinning admin terms"
      + " if an administrator added the endpoint; remove a host that left if clients may forget it"
  }
}

/// Why the server does not start.
public enum RegistryServiceError: Error, Sendable {
  /// The signing key.
  case signer(DocumentSignerError)
  /// The anchors that endpoints are to be judged by.
  case anchors(AnchorsError)
  /// Somebody who is to be told cannot be.
  case receiver(ReceiverError)
  /// The store.
  case store(StoreError)
  /// The address.
  case listening(HTTPServerError)
  /// Terms that would have clients refuse hosts that left.
  case terms(String)
  /// It was started before.
  case alreadyStarted
}

extension RegistryServiceError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .signer(let error): error.description
    case .anchors(let error): error.description
    case .receiver(let error): error.description
    case .store(let error): error.description
    case .listening(let error): error.description
    case .terms(let message): message
    case .alreadyStarted: "the server was started before"
    }
  }
}

extension RegistryServiceError: ExplainedError {}

extension AdminTokenKey {
  /// The key that a configuration amounts to.
  ///
  /// - Throws: ``RegistryServiceError/signer(_:)``.
  init(
    _ configuration: ServerConfiguration, signer: DocumentSigner, log: ServerLog
  ) throws(RegistryServiceError) {
    if let secret = configuration.server.key {
      if let refusal = configuration.shortKeyRefusal {
        log.event(
          .warn, "server_key_short",
          [
            "message": "\(refusal.message): the administration is off; hint: "
              + ServerConfiguration.keyHint
          ])
      }
      self.init(secret: secret)
      return
    }
    guard !signer.key.isHeldByCommand else {
      // Nobody is let in: without `server.key` the administration is off.
      self.init(secret: Secret("\(UUID())\(UUID())"))
      return
    }
    do throws(SigningKeyError) { try self.init(signingKey: signer.key) } catch {
      throw .signer(.signingKey(path: configuration.tls.directory + "/prv.pem", error))
    }
  }
}
