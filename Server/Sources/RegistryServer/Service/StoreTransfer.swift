import Foundation
import RegistryCore
import RegistryStores
import SslPinningPlatform
import SslPinningRules

/// Copies a store into a file, and a file into a store of any type.
///
/// - A file has the records with their seals: only what a server with the signing key wrote, all of one store, goes into
///   a file or comes out of one.
/// - What comes out is sealed anew, and newer than all that is known of the store (``RecordAge``, ``SealMark``): no
///   server takes it for records that somebody played back.
/// - A file that is older than something known here is refused, unless that is what is meant: denials, staged keys and
///   all else that people decided since would be lost. Known are the records that it would replace, the mark in
///   `tls.dir`, and the copies in `publish.dir`.
/// - Nothing is written while a server leads: it would go on from what it knows. The store's own record comes last,
///   so a store that was empty is believed once it is complete. What broke off can be done again.
public struct StoreTransfer: Sendable {
  /// What a file has.
  public struct Summary: Sendable, Equatable {
    /// The id of the store.
    public var store = ""
    /// The documents, in order.
    public var documents: [String] = []
    /// How many entries their histories have that were copied.
    public var entries = 0
    /// What the store has without a seal, and could not be read: it is not in the file.
    public var leftOut: [String] = []
  }

  private let base: any RegistryStore
  private let keys: SealKeys
  private let storage: StorageConfiguration
  private let files: [String]
  private let store: SealedStore
  private let copies: LastCopies

  /// Opens the store that is configured. ``close()`` ends it.
  ///
  /// - Parameter mustExist: whether a store on this machine that is not there is an error, and is not made.
  /// - Throws: ``RegistryServiceError``.
  public init(
    _ configuration: ServerConfiguration, mustExist: Bool
  ) throws(RegistryServiceError) {
    let signer: DocumentSigner
    do throws(DocumentSignerError) {
      signer = try DocumentSigner(
        directory: configuration.tls.directory, publishing: configuration.publishing)
    } catch { throw .signer(error) }
    keys = try RegistryService.sealKeys(of: signer, configuration)
    storage = configuration.storage
    if mustExist, let path = storage.path, access(path, F_OK) != 0 {
      throw .store(.cannotOpen(path: path, errno: errno))
    }
    do throws(StoreError) { base = try storage.open() } catch { throw .store(error) }
    store = SealedStore(
      base, keys: keys, mark: RegistryService.mark(configuration, writing: .ifThere))
    files = configuration.documents.map(\.file)
    copies = LastCopies(
      store: nil, directory: configuration.publishing.directory, signer: { signer })
  }

  /// Lets go of the store.
  public func close() async { await base.close() }

  // MARK: - Into a file

  /// Writes all that the store has into a new file; servers may run.
  ///
  /// - Throws: ``StoreTransferError``; then there is no file.
  public func backUp(to path: String) async throws(StoreTransferError) -> Summary {
    try await asking { () throws(StoreError) in
      if let fault = try await store.fault(of: []) { throw StoreError.seal(fault) }
    }
    guard store.id != nil else { throw .unsealed }
    let sealed = store.recordNames.union(files).union([StoreIdentity.recordName])
    let (backup, leftOut) = try await asking {
      () async throws(StoreError) -> (SQLiteBackup, Set<String>) in
      // A copy in SQLite has a page that cannot be read as well, and does not say whose it is.
      for name in sealed.sorted() { _ = try await store.stored(name) }
      var leftOut: Set<String> = []
      for name in Self.plainNames where try await base.isUnreadable(name) { leftOut.insert(name) }
      let backup = try SQLiteBackup(path)
      if case .sqlite(let own) = storage, leftOut.isEmpty {
        try backup.copy(own)
      } else {
        try await backup.copy(sealed.union(Self.plainNames).subtracting(leftOut), of: base)
      }
      return (backup, leftOut)
    }
    // As it was written: a copy that a server would not believe is no backup.
    let source = try await asking { () throws(StoreError) in try backup.opened() }
    var summary = try await contents(of: source).summary
    summary.leftOut = leftOut.sorted()
    try await asking { () throws(StoreError) in
      for name in summary.documents {
        summary.entries += try await source.history(of: name, before: nil, limit: .max).count
      }
    }
    await source.close()
    try await asking { () throws(StoreError) in try backup.takePlace() }
    return summary
  }

  /// What is in a store beside documents, without a seal.
  private static let plainNames: Set<String> = [ReportCollector.recordName]

  /// What a file has, verified.
  private struct Contents {
    var identity: StoreIdentity
    var age: RecordAge
    var records: [String: DocumentRecord] = [:]

    var summary: Summary { Summary(store: identity.id, documents: records.keys.sorted()) }
  }

  /// All that a file has, if a server with the signing key would believe it.
  private func contents(of source: SQLiteStore) async throws(StoreTransferError) -> Contents {
    let found: Contents?
    do throws(StoreError) { found = try await verified(source) } catch {
      guard case .seal(let fault) = error else { throw .store(error) }
      throw .file(fault)
    }
    guard let found else { throw .unsealed }
    return found
  }

  private func verified(_ source: SQLiteStore) async throws(StoreError) -> Contents? {
    let sealed = SealedStore(source, keys: keys)
    if let fault = try await sealed.fault(of: []) { throw .seal(fault) }
    guard let own = try await identity(in: source) else { return nil }
    var contents = Contents(identity: own.identity, age: own.age)
    // Those that the store's own record names as well: one that is missing was removed.
    contents.identity.records.formUnion(try await source.names().filter { !$0.hasPrefix(".") })
    for name in contents.identity.records {
      guard let record = try await sealed.standing(name) else { continue }
      contents.records[name] = try Self.document(record, name)
    }
    return contents
  }

  private static func document(
    _ record: StoredRecord, _ name: String
  ) throws(StoreError) -> DocumentRecord {
    var document = DocumentRecord()
    document.state = try DocumentState(decoding: record.bytes, file: name)
    document.version = record.version
    return document
  }

  /// A store's own record; `nil` if there is none that the keys here verify.
  private func identity(
    in store: any RegistryStore
  ) async throws(StoreError) -> (identity: StoreIdentity, age: RecordAge)? {
    let name = StoreIdentity.recordName
    guard let record = try await store.replaceable(name),
      let sealed = SealedRecord(parsing: record.bytes),
      try sealed.verified(by: keys.all, name: name, version: record.version) != nil,
      let identity = StoreIdentity(decoding: sealed.content)
    else { return nil }
    return (identity, identity.seen(under: record.version).age)
  }

  // MARK: - Out of a file

  /// Puts what a file has into the store.
  ///
  /// - Parameters:
  ///   - mustBeEmpty: whether a store that has something is left as it is.
  ///   - isOlderMeant: whether a file counts that is older than what is known, or of another store.
  ///   - now: Unix time in seconds: what is restored is newer than a record that cannot be read.
  /// - Throws: ``StoreTransferError``.
  public func restore(
    from path: String, mustBeEmpty: Bool, isOlderMeant: Bool, at now: Int64
  ) async throws(StoreTransferError) -> Summary {
    guard storage != .memory else { throw .keepsNothing }
    let source = try await asking { () throws(StoreError) in try SQLiteStore(backup: path) }
    let contents = try await contents(of: source)
    let leadership = try await asking { () throws(StoreError) in try await base.lead() }
    guard let leadership else { throw .isInUse }
    let outcome: Result<Summary, StoreTransferError>
    do throws(StoreTransferError) {
      let present = try await found(beside: contents, at: now)
      if mustBeEmpty, let name = present.firstOther { throw StoreTransferError.notEmpty(name) }
      if !isOlderMeant, let reason = await newer(than: contents, present) {
        throw StoreTransferError.older(reason)
      }
      outcome = .success(try await write(contents, of: source, over: present))
    } catch { outcome = .failure(error) }
    await leadership.resign()
    await source.close()
    return try outcome.get()
  }

  /// What the store has where the file is to go.
  private struct Present {
    /// The store's own record, as far as the keys here verify it.
    var own: (identity: StoreIdentity, age: RecordAge)?
    /// The documents of the same store, likewise.
    var records: [String: DocumentRecord] = [:]
    /// How often each document had gone back, as far as anybody can read it.
    var returns: [String: Int64] = [:]
    /// Whether the store's own record was sealed under a key that is not here.
    var isUnderOtherKey = false
    /// A document of the same store in which nothing is known here: a newer server may have written it.
    var firstUnknown: String?
    /// What there is beside a transfer that broke off.
    var firstOther: String?
  }

  private func found(
    beside contents: Contents, at now: Int64
  ) async throws(StoreTransferError) -> Present {
    try await asking { () throws(StoreError) in
      var present = Present()
      present.own = try await identity(in: base)
      if try await base.has(StoreIdentity.recordName) {
        present.firstOther = StoreIdentity.recordName
        // Here and below, one that nothing may replace throws, before anything is written.
        let isDamaged = try await base.isDamaged(StoreIdentity.recordName)
        let record = isDamaged ? nil : try await base.record(named: StoreIdentity.recordName)
        let tags = record.flatMap { SealedRecord(parsing: $0.bytes) }?.tags ?? []
        present.isUnderOtherKey =
          !tags.isEmpty && !tags.contains { tag in keys.all.contains { $0.id == tag.key } }
      }
      for name in contents.identity.records.union(files).sorted() {
        if try await base.isDamaged(name) {
          present.firstOther = present.firstOther ?? name
          present.returns[name] = RecordAge.unknown(at: now).returns
          continue
        }
        guard let record = try await base.record(named: name) else { continue }
        let sealed = SealedRecord(parsing: record.bytes)
        let content = sealed?.content ?? record.bytes
        let state = try? DocumentState(decoding: content, file: name)
        present.returns[name] = state?.returns ?? RecordAge.unknown(at: now).returns
        guard let sealed, sealed.store == contents.identity.id,
          try sealed.verified(by: keys.all, name: name, version: record.version) != nil
        else {
          present.firstOther = present.firstOther ?? name
          continue
        }
        present.records[name] = try? Self.document(
          StoredRecord(version: record.version, bytes: sealed.content), name)
        if present.records[name] == nil {
          present.firstOther = present.firstOther ?? name
          present.firstUnknown = present.firstUnknown ?? name
        }
      }
      return present
    }
  }

  /// What is known here that the file lacks, for people; `nil` if there is nothing.
  private func newer(than contents: Contents, _ present: Present) async -> String? {
    let id = contents.identity.id
    let seen = store.mark.seen
    switch seen?.refusal(ofStore: id, contents.age) {
    case .otherStore: return "it is of another store than the one that this server saw last"
    case .markUnreadable:
      return "what this server saw last cannot be read (sealed-store in tls.dir)"
    case .some: return "this server saw a newer state of the store (sealed-store in tls.dir)"
    case nil: break
    }
    if present.isUnderOtherKey { return "the store that is there is sealed under another key" }
    if let own = present.own {
      guard own.identity.id == id else { return "the store that is there is another one" }
      if let name = own.identity.records.subtracting(contents.identity.records).min() {
        return "the store has \(name), and the file does not"
      }
    }
    if let name = present.firstUnknown {
      return "the store has a \(name) that this program cannot read"
    }
    for (name, record) in contents.records.sorted(by: { $0.key < $1.key }) {
      if let there = present.records[name], there.isNewer(than: record) {
        return "the store has a newer record of \(name)"
      }
      let found = await copies.find(name)
      guard found.isAnswered else {
        return "publish.dir does not answer, and may have a newer \(name)"
      }
      if let copy = found.copy, copy.signedCopy.isNewer(than: record.state.signedCopy) {
        return "publish.dir has a newer \(name)"
          + (copies.isVouched(copy) ? "" : ", under other keys than those in tls.dir")
      }
      if let last = seen?.copies[name], record.state.number.map({ $0 < last }) ?? true {
        return "this server published a newer \(name) (sealed-store in tls.dir)"
      }
    }
    return nil
  }

  private func write(
    _ contents: Contents, of source: SQLiteStore, over present: Present
  ) async throws(StoreTransferError) -> Summary {
    var summary = contents.summary
    let id = contents.identity.id
    try await asking { () throws(StoreError) in
      for name in summary.documents {
        guard var state = contents.records[name]?.state else { continue }
        state.returns =
          RecordAge(returns: max(state.returns, present.returns[name] ?? 0)).nextReturns
        let history = try await missing(name, from: source)
        summary.entries += history.count
        try await write(name, state.encoded, of: id, history: history)
      }
      for name in Self.plainNames {
        // Counts of what anybody may send: those that are there are the newer ones.
        if try await base.has(name), try await !base.isDamaged(name) { continue }
        guard let record = try await source.record(named: name) else { continue }
        try await base.overwrite(name) { _ in record.bytes }
      }
    }
    let seen = store.mark.seen.flatMap { $0.id == id ? $0 : nil }
    let own = present.own.flatMap { $0.identity.id == id ? $0 : nil }
    var identity = contents.identity
    identity.records.formUnion(own?.identity.records ?? [])
    let newest = [contents.age, own?.age, seen?.age].compactMap(\.self).max() ?? contents.age
    identity.returns = newest.nextReturns
    let written = identity
    let version = try await asking { () throws(StoreError) in
      try await write(StoreIdentity.recordName, written.encoded, of: id)
    }
    var marked = written.seen(under: version)
    (marked.copies, marked.copied) = (seen?.copies ?? [:], seen?.copied ?? [:])
    // Newer ones were refused, or an older state is meant.
    for (name, record) in contents.records { marked.lower(name, to: record.state.number) }
    // One that came since the file was written is gone with the state before.
    for name in Set(marked.copies.keys).union(marked.copied.keys).subtracting(written.records) {
      marked.lower(name, to: nil)
    }
    // It counts also if this server saw another store last: that was refused, or meant.
    store.mark.note(marked, isOther: true)
    if let reason = store.mark.problem { throw .notMarked(reason) }
    return summary
  }

  /// The entries of a history that the store does not have yet, oldest first.
  private func missing(
    _ name: String, from source: SQLiteStore
  ) async throws(StoreError) -> [[UInt8]] {
    var there: [[UInt8]: Int] = [:]
    do throws(StoreError) {
      for entry in try await base.wholeHistory(of: name) { there[entry.bytes, default: 0] += 1 }
    } catch {
      // With a record that cannot be read goes what it says of its history.
      guard case .damaged = error, try await base.replaceable(name) == nil else { throw error }
    }
    return try await source.wholeHistory(of: name).map(\.bytes).filter { entry in
      guard let count = there[entry], count > 0 else { return true }
      there[entry] = count - 1
      return false
    }
  }

  /// Seals and stores a record, with its history a part at a time: no store takes all of a long one at once.
  @discardableResult
  private func write(
    _ name: String, _ content: [UInt8], of id: String, history: [[UInt8]] = []
  ) async throws(StoreError) -> Int64 {
    var (rest, version) = (history[...], Int64(0))
    repeat {
      let part = Array(rest.prefix(StoredEntry.page))
      rest = rest.dropFirst(part.count)
      version = try await base.overwrite(name, history: part) { next throws(StoreError) in
        let fields = SealedRecord.Fields(
          store: id, key: keys.own.id, name: name, version: next, content: content)
        return try SealedRecord(fields, keys: keys.all).encoded
      }
    } while !rest.isEmpty
    return version
  }

  private func asking<Value>(
    _ call: () async throws(StoreError) -> Value
  ) async throws(StoreTransferError) -> Value {
    do throws(StoreError) { return try await call() } catch { throw .store(error) }
  }
}

extension RegistryStore {
  /// All entries of a record's history, oldest first.
  fileprivate func wholeHistory(of name: String) async throws(StoreError) -> [StoredEntry] {
    var entries: [StoredEntry] = []
    while true {
      let page = try await history(
        of: name, before: entries.last?.number, limit: StoredEntry.page)
      guard !page.isEmpty else { return entries.reversed() }
      entries += page
    }
  }
}

extension DocumentRecord {
  /// Whether it was written after `other`, and says something else.
  fileprivate func isNewer(than other: DocumentRecord) -> Bool {
    let (own, theirs) = (
      RecordAge(returns: state.returns, version: version),
      RecordAge(returns: other.state.returns, version: other.version)
    )
    var same = other.state
    same.returns = state.returns
    return own > theirs && state.encoded != same.encoded
  }
}

extension DocumentState {
  /// The document that it has.
  fileprivate var signedCopy: SignedCopy {
    SignedCopy(bytes: document, signed: signed, number: number)
  }
}

extension StorageConfiguration {
  /// Where a store on this machine is.
  fileprivate var path: String? {
    switch self {
    case .sqlite(let path), .fileSystem(let path): path
    case .memory, .postgres, .redis: nil
    }
  }
}

/// Why a store was not copied. Nothing was written then, but for what each case says.
public enum StoreTransferError: Error, Equatable, Sendable {
  /// The store has no seal: no server has opened it.
  case unsealed
  /// What the file has is not as a server with the signing key wrote it.
  case file(SealFault)
  /// `storage.type` is `memory`.
  case keepsNothing
  /// A server leads.
  case isInUse
  /// The store has this record already.
  case notEmpty(String)
  /// Something newer is known; what it is.
  case older(String)
  /// All is written, and this server's mark could not be; the system's reason.
  case notMarked(String)
  /// The store, or the file. A part may be written.
  case store(StoreError)
}

extension StoreTransferError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .unsealed:
      "there is no seal, so no server has written it; hint: ssl-pinning up makes a store"
    case .file(let fault):
      "the file is not as a server with prv.pem wrote it: \(fault.cause); hint: the prv.pem that was"
        + " in force then, or another backup"
    case .keepsNothing: "storage.type is memory, which keeps nothing; hint: name another one"
    case .isInUse:
      "a server works on this store; hint: stop it. One that was killed lets go within ten seconds"
    case .notEmpty(let name):
      "the store has \(name) already; hint: a new database or, to put this in its place, ssl-pinning store restore"
    case .older(let reason):
      "the file is not the newest state: \(reason). What people decided since, denials and staged keys too, would be"
        + " lost; hint: a newer backup or, if this one is meant, --older"
    case .notMarked(let reason):
      "all is written, and servers here go on refusing it: \(reason); hint: remove \(SealMark.fileName) in tls.dir, or"
        + " do this again as a user who can write there"
    case .store(let error):
      error.description.contains("; hint: ")
        ? error.description
        : "\(error); hint: is the file whole, and may this user read and write both?"
    }
  }
}

extension StoreTransferError: ExplainedError {}

extension SealFault {
  /// The description up to its consequence: a file has other remedies than a store.
  fileprivate var cause: String {
    let text = description
    return text.firstRange(of: ": ").map { String(text[..<$0.lowerBound]) } ?? text
  }
}

extension StorageConfiguration {
  /// Opens the store that is configured.
  func open() throws(StoreError) -> any RegistryStore {
    switch self {
    case .memory: MemoryStore()
    case .sqlite(let path): try SQLiteStore(path: path)
    case .fileSystem(let directory): try FileSystemStore(directory: directory)
    case .postgres(let dsn, let pool, let isInsecure):
      try PostgresStore(dsn: dsn, pool: pool, isInsecure: isInsecure)
    case .redis(let dsn, let pool, let isInsecure):
      try RedisStore(dsn: dsn, pool: pool, isInsecure: isInsecure)
    }
  }
}
