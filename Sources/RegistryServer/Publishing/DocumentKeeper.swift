import Pinning
import TLSTools

/// Keeps one document true: enters looks into its ledgers, signs what changed, stores it, and only
/// then publishes it.
///
/// - Stored before published: what a client has seen survives any crash of this server.
/// - Signed once per change, and once a day without one so that its expiry moves on.
/// - Several servers may share the store. Whoever loses the race reads what the other wrote, unites
///   the ledgers, and tries again; a key that either confirmed is published by both.
/// - A store that fails leaves the published document as it is. What was learnt meanwhile is kept in
///   memory and stored with the next attempt.
actor DocumentKeeper {
  nonisolated let configuration: DocumentConfiguration

  private let rule: ConfirmationRule
  private let signer: DocumentSigner
  private let store: any RegistryStore
  private let published: PublishedDocuments
  private let health: ServiceHealth
  private let log: ServerLog

  private var ledgers: [String: DomainLedger] = [:]
  private var stored = StoredDocument(ledgers: [:])
  private var version: Int64 = 0
  private var writing: Task<Void, Never>?

  private var file: String { configuration.file }

  init(
    configuration: DocumentConfiguration, rule: ConfirmationRule, signer: DocumentSigner,
    store: any RegistryStore, published: PublishedDocuments, health: ServiceHealth, log: ServerLog
  ) {
    self.configuration = configuration
    self.rule = rule
    self.signer = signer
    self.store = store
    self.published = published
    self.health = health
    self.log = log
  }

  /// Reads what the store has and publishes it, signed again where configuration or key changed.
  ///
  /// - Throws: ``StoreError``: a server that cannot read its past must not begin a new one.
  func open(at now: Int64) async throws(StoreError) {
    try await reload()
    await settle(at: now)
  }

  /// Enters a look.
  ///
  /// - Returns: whether a key waits for more looks. By then everything that the look changed is
  ///   stored and published, unless the store failed.
  func enter(_ look: Look, of endpoint: WatchedEndpoint, at now: Int64) async -> Bool {
    var ledger = ledgers[endpoint.id] ?? DomainLedger()
    let events = ledger.enter(look, at: now, rule: rule, isListed: isListed(endpoint))
    ledgers[endpoint.id] = ledger
    for event in events { write(event, of: endpoint) }
    await settle(at: now)
    return ledger.isWaiting
  }

  /// What is due without a look: takes over what another server stored, and signs again when the
  /// document is a day old.
  func upkeep(at now: Int64) async {
    await writing?.value
    do throws(StoreError) {
      if let record = try await store.record(named: file), record.version != version {
        try adopt(record)
      }
    } catch { note(error) }
    await settle(at: now)
  }

  /// Stores all that is known, down to the times of the last looks.
  func close(at now: Int64) async { await settle(at: now, completely: true) }

  /// Waits until memory, store and published document agree, or the store fails. One writer at a
  /// time: looks that come in while it writes are written together afterwards.
  private func settle(at now: Int64, completely: Bool = false) async {
    while let running = writing { await running.value }
    guard isDue(at: now, completely: completely) else { return }
    let task = Task {
      await self.write(at: now, completely: completely)
      // Before the task ends: whoever waits for it must not find it still here, since waiting for an
      // ended task lets nobody else run.
      self.writing = nil
    }
    writing = task
    await task.value
  }

  private func write(at now: Int64, completely: Bool) async {
    for _ in 0..<8 {
      guard isDue(at: now, completely: completely) else { return }
      let current = published.document(file)
      do throws(DocumentKeeperFailure) {
        let next = needsSigning(at: now) ? try sign(at: now) : current
        let record = StoredDocument(
          ledgers: configuredLedgers, document: next?.bytes ?? [], signed: next?.signed ?? 0)
        switch try await replace(with: record) {
        case .replaced(let version):
          self.version = version
          stored = record
          health.clear(file)
          if let next, next.bytes != current?.bytes { publish(next) }
          return
        case .conflict: try await reloading()
        }
      } catch {
        note(error)
        return
      }
    }
    log.event(.warn, "store_contended", ["file": file])
  }

  private func isDue(at now: Int64, completely: Bool) -> Bool {
    if needsSigning(at: now) { return true }
    let current = configuredLedgers
    if completely { return current != stored.ledgers && !current.isEmpty }
    return current.contains { id, ledger in
      ledger.isWorthStoring(over: stored.ledgers[id] ?? DomainLedger(), at: now, rule: rule)
    }
  }

  private func needsSigning(at now: Int64) -> Bool {
    let entries = DocumentEntry.entries(of: configuration, ledgers: ledgers)
    guard !entries.isEmpty else { return false }
    guard let current = published.document(file) else { return true }
    return current.entries != entries || now - current.signed >= DocumentSigner.renewal
  }

  /// Whether the document already lists keys of other endpoints for a host that this one speaks of:
  /// then its first key joins a list that clients go by.
  private func isListed(_ endpoint: WatchedEndpoint) -> Bool {
    configuration.endpoints.contains { other in
      other.id != endpoint.id && ledgers[other.id]?.keys.isEmpty == false
        && other.patterns.contains { pattern in
          endpoint.patterns.contains { $0.overlaps(pattern) }
        }
    }
  }

  /// The ledgers of endpoints that are configured and have shown a key, without waiting keys.
  private var configuredLedgers: [String: DomainLedger] {
    let ids = Set(configuration.endpoints.map(\.id))
    return ledgers.filter { ids.contains($0.key) && !$0.value.keys.isEmpty }
      .mapValues { DomainLedger(keys: $0.keys) }
  }

  private func publish(_ document: PublishedDocument) {
    published.publish(document)
    log.event(
      .info, "document_published",
      [
        "file": file, "keys": "\(document.entries.count)", "etag": document.entityTag,
        "signed": RFC3339.text(document.signed),
      ])
  }

  private func sign(at now: Int64) throws(DocumentKeeperFailure) -> PublishedDocument? {
    let entries = DocumentEntry.entries(of: configuration, ledgers: ledgers)
    do throws(SigningKeyError) {
      // Never an older time than before: a clock that was set back must not shorten an expiry.
      return try signer.sign(
        entries, file: file, at: max(now, stored.signed, published.document(file)?.signed ?? now))
    } catch { throw .signing(error) }
  }

  private func replace(
    with record: StoredDocument
  ) async throws(DocumentKeeperFailure) -> StoreReplacement {
    do throws(StoreError) {
      return try await store.replace(file, version: version, with: record.encoded)
    } catch { throw .store(error) }
  }

  private func reloading() async throws(DocumentKeeperFailure) {
    do throws(StoreError) { try await reload() } catch { throw .store(error) }
  }

  private func reload() async throws(StoreError) {
    if let record = try await store.record(named: file) { try adopt(record) }
  }

  /// Takes over a record: its keys are united with those known here, and its document is published
  /// if it is what would be signed here.
  private func adopt(_ record: StoredRecord) throws(StoreError) {
    let read = try StoredDocument(decoding: record.bytes, file: file)
    version = record.version
    stored = read
    for (id, ledger) in read.ledgers {
      ledgers[id] = ledgers[id]?.merging(ledger) ?? ledger
    }
    let entries = DocumentEntry.entries(of: configuration, ledgers: ledgers)
    guard !read.document.isEmpty, read.signed >= published.document(file)?.signed ?? 0,
      let again = try? signer.sign(entries, file: file, at: read.signed),
      again.bytes == read.document, again.bytes != published.document(file)?.bytes
    else { return }
    publish(again)
  }

  private func note(_ failure: any Error) {
    health.report(file, "\(failure)")
    log.event(.error, "document_not_stored", ["file": file, "reason": "\(failure)"])
  }

  private func write(_ event: LedgerEvent, of endpoint: WatchedEndpoint) {
    log.event(
      event.level, event.name,
      [
        "file": file, "endpoint": endpoint.id, "message": "\(event)",
        "pin": event.pin?.base64 ?? "",
      ])
  }
}

/// Why a change is not published.
private enum DocumentKeeperFailure: Error, CustomStringConvertible {
  case store(StoreError)
  case signing(SigningKeyError)

  var description: String {
    switch self {
    case .store(let error): error.description
    case .signing(let error): error.description
    }
  }
}
