import CanonicalJSON
import RegistryCore
import RegistryStores
import SslPinningPlatform
import SslPinningRules

/// What an operator does about the seals of a store, beside the servers that run on it: they notice by themselves.
///
/// - ``adopt(_:believingUnverified:)`` puts `prv.pem` in force. What was sealed under the key before is verified by
///   `prv.old.pem`, and sealed under both; without that file nobody can tell an edited record from another.
/// - ``reset(_:to:at:)`` ends a broken seal, one record at a time.
/// - Everything is written by compare and swap, so nothing of a server that runs is lost, and each can be
///   done again where it broke off.
public struct StoreRepair: Sendable {
  /// What a record is to be after a reset.
  public enum Reset: Sendable, Equatable {
    /// What is in it, whoever wrote that.
    case take
    /// What the last signed document says, in the record or in `publish.dir`; without one, nothing: then what
    /// endpoints show is a first sight.
    case anew
  }

  private let base: any RegistryStore
  private let keys: SealKeys
  private let documents: [DocumentConfiguration]
  private let copies: LastCopies
  private let store: SealedStore
  private let signer: DocumentSigner

  /// Reads the keys, and opens the store. ``close()`` ends it.
  ///
  /// - Throws: ``RegistryServiceError``.
  public init(_ configuration: ServerConfiguration) throws(RegistryServiceError) {
    let signer: DocumentSigner
    do throws(DocumentSignerError) {
      signer = try DocumentSigner(
        directory: configuration.tls.directory, publishing: configuration.publishing)
    } catch { throw .signer(error) }
    keys = try RegistryService.sealKeys(of: signer, configuration)
    do throws(StoreError) { base = try configuration.storage.open() } catch { throw .store(error) }
    store = SealedStore(
      base, keys: keys, mark: RegistryService.mark(configuration, writing: .ifThere))
    documents = configuration.documents
    self.signer = signer
    copies = LastCopies(
      store: store, directory: configuration.publishing.directory, signer: { signer })
  }

  /// Lets go of the store.
  public func close() async { await base.close() }

  /// Has the store go by `prv.pem` from now on.
  ///
  /// - Parameters:
  ///   - id: the id of `prv.pem`, said by who means it.
  ///   - isBeliever: whether what no key here verifies is believed as it stands.
  /// - Returns: the names of records that were sealed anew.
  /// - Throws: ``StoreRepairError``.
  public func adopt(
    _ id: SPKIPin, believingUnverified isBeliever: Bool
  ) async throws(StoreRepairError) -> [String] {
    guard id == keys.own.id else { throw .otherKey(own: keys.own.id) }
    var identity = try await adoptIdentity(isBeliever)
    identity.records.formUnion(documents.map(\.file))
    var names: [String] = []
    for name in identity.records.sorted()
    where try await adopt(name, of: identity, isBeliever) { names.append(name) }
    return names
  }

  /// The documents whose statements `prv.pem` signs itself: whoever ships another key believes none of them.
  public func documentsWithoutKeySets() async -> [String] {
    var names: [String] = []
    for document in documents {
      guard let state = await standing(document.file), !state.document.isEmpty,
        StatementSigner.published(in: state.document).isEmpty
      else { continue }
      names.append(document.file)
    }
    return names
  }

  /// Ends the broken seal of a record. `.store` is the store's own: then which records there are is found out
  /// anew, of the documents that are configured.
  ///
  /// - Parameter now: Unix time in seconds, for the history.
  /// - Returns: what became of it, for people.
  /// - Throws: ``StoreRepairError``.
  public func reset(
    _ name: String, to reset: Reset, at now: Int64
  ) async throws(StoreRepairError) -> String {
    if name == StoreIdentity.recordName { return try await resetIdentity(reset, at: now) }
    guard let document = documents.first(where: { $0.file == name }) else {
      throw .noSuchDocument(name)
    }
    do throws(StoreError) {
      // The record itself is what is broken.
      if let fault = try await store.fault(of: []) { throw StoreError.seal(fault) }
    } catch { throw .store(error) }
    guard store.id != nil else { throw .unsealed }
    var (next, told) = try await state(of: document, after: reset)
    // Newer than what servers that run know of it.
    let before = await standing(name).map { RecordAge(returns: $0.returns) }
    next.returns = (before ?? .unknown(at: now)).nextReturns
    let content = next.encoded
    let entry = HistoryEntry(time: now, event: "record_reset", why: told, who: "store reset")
    let line = JSONValue.object(entry.json).canonicalBytes
    var isWritten = false
    do throws(StoreError) {
      // Also over one that cannot be read, whose version the store may know all the same.
      var version = try await base.replaceable(name)?.version ?? 0
      for _ in 0..<8 {
        let outcome = try await store.replace(
          name, version: version, with: content, history: [line])
        guard case .conflict(let current) = outcome else {
          isWritten = true
          break
        }
        version = current
      }
    } catch { throw .store(error) }
    guard isWritten else { throw .store(.busy) }
    // It may be older than the last document that was published.
    store.mark.lower(name, to: next.number)
    if let reason = store.mark.problem, let last = store.mark.written?.copies[name],
      next.number.map({ $0 < last }) ?? true
    {
      throw .notMarked(reason)
    }
    return told
  }

  /// What a record has, whoever wrote it; `nil` if it has nothing that can be read.
  private func standing(_ name: String) async -> DocumentState? {
    await store.unverified(name).flatMap { try? DocumentState(decoding: $0, file: name) }
  }

  private func state(
    of document: DocumentConfiguration, after reset: Reset
  ) async throws(StoreRepairError) -> (state: DocumentState, told: String) {
    switch reset {
    case .take:
      guard let state = await standing(document.file) else { throw .gone(document.file) }
      return (state, "what the record has is believed, whoever wrote it")
    case .anew:
      guard await copies.find(document.file).isAnswered else { throw .store(LastCopies.silence) }
      let copy = await copies.servable(document.file, isOtherKey: false, isOlderMeant: true)
      // A person means it: also if the newest key set was made since.
      guard let copy, LastCopies.isVouched(copy, by: signer, canBeBehind: true) else {
        return (
          DocumentState(),
          "there is no signed document: what endpoints show is a first sight"
        )
      }
      // What it lists of others was added by people, or left: it stays listed, and is watched.
      var begun = DocumentState()
      begun.keepOut(document.endpoints, of: copy.signedCopy)
      begun.watchHosts(of: copy.signedCopy, beside: document.endpoints)
      var state = begun.goingOn(
        from: copy.signedCopy, endpoints: begun.endpoints(configured: document.endpoints))
      state.beganFrom = copy.number
      return (
        state,
        "the record begins anew from the document that was signed at"
          + " \(RFC3339.text(copy.signed))"
      )
    }
  }

  // MARK: - The store's own record

  private func adoptIdentity(_ isBeliever: Bool) async throws(StoreRepairError) -> StoreIdentity {
    let name = StoreIdentity.recordName
    for _ in 0..<8 {
      let record = try await asking { () throws(StoreError) in try await base.record(named: name) }
      guard let record else { throw .unsealed }
      guard let sealed = SealedRecord(parsing: record.bytes),
        var identity = StoreIdentity(decoding: sealed.content)
      else { throw .store(.seal(.broken(record: name, .unreadable))) }
      let verifier = try await asking { () throws(StoreError) in
        try sealed.verified(by: keys.all, name: name, version: record.version)
      }
      if verifier == nil {
        if isUnderKeyHere(sealed) { throw .store(.seal(.broken(record: name, .changed))) }
        guard isBeliever else { throw .unverifiable(identity.key) }
      }
      let found = identity.seen(under: record.version)
      if let reason = store.mark.seen?.refusal(ofStore: found.id, found.age) {
        throw .store(.seal(.broken(record: name, reason)))
      }
      if verifier != nil, identity.key == keys.own.id { return identity }
      identity.publicKeyDER = keys.own.publicKeyDER
      let next = identity
      let isWritten = try await asking { () throws(StoreError) in
        try await write(name, next.encoded, over: record.version, of: next)
      }
      if isWritten { return identity }
    }
    throw .store(.busy)
  }

  private func isUnderKeyHere(_ sealed: SealedRecord) -> Bool {
    sealed.tags.contains { tag in keys.all.contains { $0.id == tag.key } }
  }

  private func asking<Value>(
    _ call: () async throws(StoreError) -> Value
  ) async throws(StoreRepairError) -> Value {
    do throws(StoreError) { return try await call() } catch { throw .store(error) }
  }

  /// Writes the store's own record anew, and a mark of it in the place of the one before.
  private func resetIdentity(_ reset: Reset, at now: Int64) async throws(StoreRepairError) -> String
  {
    let name = StoreIdentity.recordName
    if reset == .anew {
      let isTaken = try await asking { () async throws(StoreError) -> Bool in
        for document in documents where try await base.has(document.file) { return true }
        return false
      }
      if isTaken { throw .identityIsTaken }
      // Before anything is written: what is begun without the copies would end denials.
      for document in documents where await !copies.find(document.file).isAnswered {
        throw .store(LastCopies.silence)
      }
    }
    let identity = try await asking { () throws(StoreError) in
      reset == .take ? try await foundIdentity() : .new(under: keys.own)
    }
    try await asking { () throws(StoreError) in
      let number = try await base.overwrite(name) { next throws(StoreError) in
        try sealed(name, identity.encoded, under: next, of: identity)
      }
      store.mark.note(identity.seen(under: number), isOther: true)
    }
    if let reason = store.mark.problem, let seen = store.mark.seen,
      store.mark.written?.refusal(ofStore: seen.id, seen.age) != nil
    {
      throw .notMarked(reason)
    }
    guard reset == .anew else {
      return "the store is \(identity.id), and has \(identity.records.count) documents"
    }
    for document in documents { _ = try await self.reset(document.file, to: .anew, at: now) }
    return "the store is the new one \(identity.id); each document begins anew from its copy in"
      + " publish.dir, or from nothing"
  }

  /// What the store's own record is to say, as far as others and the mark tell: the id that all records go by, and
  /// every name. A record that is gone is no first sight, even if its name was removed as well.
  private func foundIdentity() async throws(StoreError) -> StoreIdentity {
    var (identity, ids) = (StoreIdentity.new(under: keys.own), Set<String>())
    for document in documents {
      guard try await base.has(document.file) else { continue }
      // One that cannot be read stays held until it is reset itself.
      identity.records.insert(document.file)
      guard let record = try await base.replaceable(document.file) else { continue }
      if let sealed = try verified(record, document.file) { ids.insert(sealed.store) }
    }
    var known = store.mark.seen.flatMap { StoreIdentity.isID($0.id) ? $0 : nil }
    if let record = try await base.replaceable(StoreIdentity.recordName),
      let sealed = try verified(record, StoreIdentity.recordName),
      let found = StoreIdentity(decoding: sealed.content)?.seen(under: record.version)
    {
      known = known.map {
        ids.contains(found.id) && $0.id != found.id ? found : $0.raised(to: found)
      }
      known = known ?? found
    }
    if let id = ids.count == 1 ? ids.first : known?.id { identity.id = id }
    guard let known, known.id == identity.id else { return identity }
    identity.records.formUnion(known.records)
    identity.returns = known.age.nextReturns
    return identity
  }

  private func verified(
    _ record: StoredRecord, _ name: String
  ) throws(StoreError) -> SealedRecord? {
    guard let sealed = SealedRecord(parsing: record.bytes),
      try sealed.verified(by: keys.all, name: name, version: record.version) != nil
    else { return nil }
    return sealed
  }

  // MARK: - Sealing

  /// Seals a record under the keys here.
  ///
  /// - Returns: whether that was to be done, and could be. A record that somebody changed is left as it is: the
  ///   servers tell it.
  private func adopt(
    _ name: String, of identity: StoreIdentity, _ isBeliever: Bool
  ) async throws(StoreRepairError) -> Bool {
    do throws(StoreError) {
      for _ in 0..<8 {
        // One that is sound and cannot be read now is sealed, too, or nobody could read it once the old key is gone.
        guard try await !base.isDamaged(name), let record = try await base.record(named: name),
          let sealed = SealedRecord(parsing: record.bytes)
        else { return false }
        let verifier = try sealed.verified(by: keys.all, name: name, version: record.version)
        if verifier == nil {
          guard isBeliever, !isUnderKeyHere(sealed) else { return false }
        }
        if verifier != nil, sealed.tags.map(\.key) == keys.all.map(\.id) { return false }
        if try await write(name, sealed.content, over: record.version, of: identity) { return true }
      }
      throw StoreError.busy
    } catch { throw .store(error) }
  }

  private func write(
    _ name: String, _ content: [UInt8], over version: Int64, of identity: StoreIdentity
  ) async throws(StoreError) -> Bool {
    let next = try StoredRecord.number(after: version, of: name)
    let bytes = try sealed(name, content, under: next, of: identity)
    guard case .replaced = try await base.replace(name, version: version, with: bytes) else {
      return false
    }
    return true
  }

  private func sealed(
    _ name: String, _ content: [UInt8], under version: Int64, of identity: StoreIdentity
  ) throws(StoreError) -> [UInt8] {
    let fields = SealedRecord.Fields(
      store: identity.id, key: keys.own.id, name: name, version: version, content: content)
    return try SealedRecord(fields, keys: keys.all).encoded
  }
}

/// Why the seals of a store were left as they are.
public enum StoreRepairError: Error, Equatable, Sendable {
  /// The id that was said is not that of `prv.pem`.
  case otherKey(own: SPKIPin)
  /// The store has no seal.
  case unsealed
  /// No key here verifies what was sealed under this one.
  case unverifiable(SPKIPin)
  /// No document of this name is configured.
  case noSuchDocument(String)
  /// There is no record to take, or none that can be read.
  case gone(String)
  /// The store has documents, so it is no new one.
  case identityIsTaken
  /// The record is written, and the server's mark of the one before stays, which refuses it; the system's reason.
  case notMarked(String)
  /// The store.
  case store(StoreError)
}

extension StoreRepairError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .otherKey(let own): "prv.pem is \(own.base64); hint: is it the one that you mean?"
    case .unsealed:
      "the store has no seal; hint: ssl-pinning up gives it one, unless it had one before"
    case .unverifiable(let key):
      "the store is sealed under \(key.base64), and nothing here can verify that; hint: put the key before"
        + " beside prv.pem as prv.old.pem or, if it is lost, --unverified believes what the store has"
    case .noSuchDocument(let name):
      "no document \(name) is configured; hint: the file's name, as in keys, or .store"
    case .gone(let name): "\(name) has no record that can be read; hint: --anew"
    case .identityIsTaken:
      "the store has documents, so it is no new one; hint: --take"
    case .notMarked(let reason):
      "the record is written, and servers go on refusing it: \(reason); hint: remove"
        + " \(SealMark.fileName) in tls.dir, or do this again as a user who can write there"
    case .store(let error): error.description
    }
  }
}

extension StoreRepairError: ExplainedError {}
