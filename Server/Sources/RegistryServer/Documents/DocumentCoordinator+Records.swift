import CanonicalJSON
import RegistryCore
import RegistryStores
import SslPinningRules

/// What the coordinator takes over from the store.
extension DocumentCoordinator {
  /// Takes over the record in force. What is believed for the first time is compared with the newest document that
  /// was published: it may be an older record, and nothing else remembers.
  ///
  /// - Returns: whether it was newer than what was known.
  func reload(at now: Int64) async throws(StoreError) -> Bool {
    let isNewer = try await takeOver(at: now)
    guard !isBelieved else { return isNewer }
    isBelieved = true
    guard let copy = documentAhead(of: stored) else { return isNewer }
    if let lost = services.lostStore.withLock({ $0 }), version == 0 {
      newest = max(newest, lost)
      state.watchHosts(of: copy.signedCopy, beside: endpoints)
      refreshEndpoints()
      state.raise(
        ServerAlert(kind: .storeLost, message: DocumentState.lostStoreMessage, since: now))
    }
    state = state.goingOn(from: copy.signedCopy, endpoints: endpoints)
    state.returns = newest.nextReturns
    (isDirty, isAhead, isStoreBehind, mustSign) = (true, true, true, true)
    refreshEndpoints()
    tell(of: copy, version: version)
    return isNewer
  }

  /// Takes over the record in force: what it says of probes is united with what is known here, and
  /// its document is published if this server's key signed it.
  ///
  /// - Returns: whether it was newer than what was known.
  private func takeOver(at now: Int64) async throws(StoreError) -> Bool {
    let known = version
    let record: StoredRecord?
    do throws(StoreError) { record = try await services.store.record(named: file) } catch {
      guard case .seal(let fault) = error else { throw error }
      // What vanished while this server runs it knows.
      guard fault == .vanished(record: file), newest > RecordAge() else {
        await hold(fault, at: now)
        throw error
      }
      record = nil
    }
    release()
    let found = record?.bytes.hashValue
    guard record?.version ?? 0 != version || found != fingerprint else { return false }
    var theirs = DocumentState()
    if let record { theirs = try DocumentState(decoding: record.bytes, file: file) }
    let age = RecordAge(returns: theirs.returns, version: record?.version ?? 0)
    guard age > newest else {
      // Nobody was faster: the question was asked when the newer one was known already.
      if version == known {
        fingerprint = found
        goBack(to: theirs, version: age.version)
      }
      return false
    }
    let entries = try await storedEntries()
    guard age > newest else { return false }
    history.reconcile(with: entries, theirs: theirs, base: stored)
    (version, fingerprint, newest) = (age.version, found, age)
    state = state.merging(theirs, base: stored)
    stored = theirs
    if (state.denied, state.allowed) != (theirs.denied, theirs.allowed) {
      (isDirty, isStoreBehind) = (true, true)
    }
    refreshEndpoints()
    mustSign = true
    guard
      let document = services.signer.recognise(theirs.document, file: file, signed: theirs.signed)
    else { return true }
    let current = services.published.document(file)
    guard current.map(document.isNewer) ?? true || current?.bytes == document.bytes else {
      return true
    }
    let content = content(state, endpoints)
    if content.isSaid(by: document.bytes) {
      services.published.prepare(content, for: document)
      mustSign = services.signer.hasNewKeySets(for: file, after: theirs)
    }
    // What else the record says is no reason to publish the same again.
    if current?.bytes != document.bytes { publish(document) }
    return true
  }

  /// The store lost what it had acknowledged, or has an older backup in force, while this server ran: what
  /// is known here goes on top of what it has now. Otherwise no write would ever name the right version.
  private func goBack(to theirs: DocumentState, version: Int64) {
    services.log.event(
      .error, "store_went_back",
      [
        "file": file, "version": "\(version)", "known": "\(newest.version)",
        "message": DocumentState.wentBackMessage,
      ])
    state = state.goingOn(from: theirs, after: newest)
    (stored, self.version) = (theirs, version)
    (isDirty, isAhead, isStoreBehind, mustSign) = (true, true, true, true)
    refreshEndpoints()
  }

  /// The entries of the store among which those may be that are to be written; none where there is no
  /// doubt.
  private func storedEntries() async throws(StoreError) -> [HistoryEntry] {
    var (entries, last) = ([HistoryEntry](), nil as Int64?)
    while history.isUnsure {
      let page = try await services.store.history(of: file, before: last, limit: 200)
      entries += HistoryEntry.read(page)
      guard let end = page.last, let oldest = entries.last, !history.isBehind(oldest) else { break }
      last = end.number
    }
    return entries
  }
}
