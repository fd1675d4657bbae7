import RegistryCore
import SslPinningPlatform
import SslPinningRules

/// A store whose documents' records are sealed under the signing key. See ``RegistryStore`` for the contract.
///
/// - What is read was written by a server with the key, under this name and version, in this store; anything
///   else is ``StoreError/seal(_:)`` and never content (``SealedRecord``).
/// - A record that is gone, and was stored before, is ``SealFault/vanished(record:)``, and no `nil`.
/// - Only a server whose `prv.pem` is the key in force writes or leads. Another one reads no content: a second
///   key at work would publish documents that clients refuse. A leader that finds itself out of force resigns.
/// - Sealed are documents, ``StoreIdentity`` and ``StoredProposals``. The history is not: it is shown to people, and decides nothing.
///   Reports (`.reports`) are not: they are counts of what anybody may send.
///
/// - The store's own record is the one seen last, or a newer one (``SealMark``). While a server runs it knows what
///   that was, and writes it again where the store lost it; at a start an older or missing one is refused.
///
/// Hazard: to a server without a mark, a store that has neither a seal nor a record is new, and one that has records
/// and no seal is believed once (``SealedStore/Opening/sealed(_:)``).
package final class SealedStore: RegistryStore {
  /// How ``open(documents:)`` found the store.
  package enum Opening: Sendable, Equatable {
    /// It had nothing: it is sealed from now on.
    case new
    /// It was sealed, by a server with the key in force.
    case known
    /// It had these records without a seal, and no seal at all: they were believed, and sealed.
    case sealed([String])
    /// It is not believed.
    case fault(SealFault)
  }

  private struct State {
    var keys: SealKeys
    var identity: StoreIdentity?
    /// The version under which the store has its own record now; 0 if it has none.
    var version: Int64 = 0
    /// Whether that record is older than ``identity``, or gone: it is to be written again.
    var isBehind = false
    /// Whether it was, and nobody asked since.
    var wentBack = false
    /// Why ``identity`` is not known, or not ours.
    var fault: SealFault?
    /// Names of records that were there, and that ``StoreIdentity/records`` lacks.
    var unlisted: Set<String> = []
    /// The listing of them that is under way.
    var listing: Task<Void, Never>?
    var leadership: (any StoreLeadership)?

    /// Whether there is a record of this name, or was.
    func has(_ name: String) -> Bool {
      unlisted.contains(name) || identity?.records.contains(name) ?? false
    }

    /// Whether a later record of the same store is known, and in force.
    func knows(laterThan found: SealMark.Seen) -> Bool {
      guard let identity, !isBehind, fault == nil else { return false }
      return identity.id == found.id && identity.seen(under: version).age > found.age
    }

    mutating func take(_ identity: StoreIdentity, version: Int64) {
      (self.identity, self.version, isBehind, fault) = (identity, version, false, nil)
      unlisted.subtract(identity.records)
    }
  }

  /// What is sealed.
  let base: any RegistryStore
  /// What was seen of it.
  package let mark: SealMark
  private let state: Locked<State>

  /// A sealed store; ``open(documents:)`` is next.
  package init(_ base: any RegistryStore, keys: SealKeys, mark: SealMark = SealMark(directory: nil))
  {
    (self.base, self.mark) = (base, mark)
    state = Locked(State(keys: keys))
  }

  /// The id of the store; `nil` before it is known.
  package var id: String? { state.withLock { $0.identity?.id } }

  /// The names of all records that it has or had, of documents that are configured no more as well.
  package var recordNames: Set<String> { state.withLock { $0.identity?.records ?? [] } }

  /// Whether a record of this name is sealed.
  static func isSealed(_ name: String) -> Bool {
    isListed(name) || name == StoreIdentity.recordName || name == StoredProposals.recordName
  }

  /// Whether the store's own record names it, so that it cannot vanish unnoticed: documents alone.
  private static func isListed(_ name: String) -> Bool { !name.hasPrefix(".") }

  // MARK: - Opening

  /// Finds out which store this is. A new one is given its identity, and one without a seal is sealed.
  ///
  /// - Parameter documents: the names of the documents that are configured.
  /// - Throws: ``StoreError``; a seal that is not good is ``Opening/fault(_:)``.
  package func open(documents: [String]) async throws(StoreError) -> Opening {
    if try await refresh() { return try await known() }
    var bare: [String] = []
    for name in documents {
      guard try await base.has(name) else { continue }
      // One that cannot be read is listed, and held: it is no first sight.
      let record = try await base.replaceable(name)
      guard !SealedRecord.isMarked(record?.bytes ?? []) else {
        return .fault(note(.vanished(record: StoreIdentity.recordName)))
      }
      bare.append(name)
    }
    var identity = StoreIdentity.new(under: state.withLock(\.keys.own))
    (identity.records, identity.isBeingSealed) = (Set(bare), !bare.isEmpty)
    guard try await write(identity, over: 0) else {
      // Another server was faster.
      _ = try await refresh()
      return try await known()
    }
    guard !bare.isEmpty else { return .new }
    try await sealBareRecords()
    return .sealed(bare)
  }

  /// What this server saw of a store that has nothing left: neither its own record, nor one that it or the
  /// configuration names. `nil` if it has something, or was never seen.
  ///
  /// - Parameter documents: the names of the documents that are configured.
  package func lost(_ documents: [String]) async throws(StoreError) -> SealMark.Seen? {
    guard let seen = mark.seen, StoreIdentity.isID(seen.id) else { return nil }
    for name in seen.records.union(documents).union([StoreIdentity.recordName]).sorted() {
      guard try await !base.has(name) else { return nil }
    }
    return seen
  }

  /// Begins a lost store again, under its id and above all that it had: a server that knows it goes on with it, and
  /// what was in it is older if it comes back.
  ///
  /// - Parameter now: Unix time in seconds, which no store went back as often as.
  /// - Returns: the age that its records are to be newer than; `nil` if another server was faster.
  package func beginAgain(
    _ seen: SealMark.Seen, at now: Int64
  ) async throws(StoreError) -> RecordAge? {
    var identity = StoreIdentity(
      id: seen.id, publicKeyDER: state.withLock(\.keys.own.publicKeyDER))
    identity.returns = max(seen.age.nextReturns, min(now, RecordAge.mostReturns - 1))
    guard try await write(identity, over: 0) else {
      _ = try await refresh()
      return nil
    }
    // Nothing of what it had is to be waited for.
    var marked = identity.seen(under: 1)
    (marked.copies, marked.copied) = (seen.copies, seen.copied)
    mark.note(marked, isOther: true, overUnread: false)
    return RecordAge(returns: identity.returns)
  }

  private func known() async throws(StoreError) -> Opening {
    let (fault, isBeingSealed) = state.withLock { ($0.fault, $0.identity?.isBeingSealed ?? false) }
    if let fault { return .fault(fault) }
    if isBeingSealed { try await sealBareRecords() }
    return .known
  }

  /// Seals what stands in the identity without a seal, and says that it is done.
  private func sealBareRecords() async throws(StoreError) {
    for name in state.withLock({ $0.identity?.records ?? [] }).sorted() {
      for _ in 0..<8 {
        guard let record = try await base.replaceable(name),
          !SealedRecord.isMarked(record.bytes)
        else { break }
        let bytes = try seal(record.bytes, name, over: record.version)
        let outcome = try await base.replace(name, version: record.version, with: bytes)
        if case .replaced = outcome { break }
      }
    }
    try await change { $0.isBeingSealed = false }
  }

  /// What is wrong with the seals of a store; nothing is written. `nil` if all is well or, in a store without a
  /// seal, would be sealed at a start.
  package func fault(of documents: [String]) async throws(StoreError) -> SealFault? {
    guard try await refresh() else { return nil }
    if let fault = state.withLock(\.fault) { return fault }
    for name in documents {
      do throws(StoreError) { _ = try await read(name) } catch {
        guard case .seal(let fault) = error else { throw error }
        return fault
      }
    }
    return nil
  }

  /// Reads the store's own record, and writes it again if the store lost it.
  ///
  /// - Returns: whether it was lost, or an older one in force, since somebody last asked.
  /// - Throws: ``StoreError``; ``StoreError/seal(_:)`` if the store is not believed.
  package func check() async throws(StoreError) -> Bool {
    _ = try await refresh()
    if let fault = state.withLock(\.fault) { throw .seal(fault) }
    if state.withLock(\.isBehind) { try await change { _ in } }
    return state.withLock { state in
      defer { state.wentBack = false }
      return state.wentBack
    }
  }

  // MARK: - Reading and writing

  /// The record as it stands, for whoever stands beside the server: verified if the store is sealed, and nothing
  /// is written. Ask ``fault(of:)`` first.
  package func standing(_ name: String) async throws(StoreError) -> StoredRecord? {
    guard state.withLock({ $0.identity != nil }) else { return try await base.record(named: name) }
    return try await read(name)
  }

  package func record(named name: String) async throws(StoreError) -> StoredRecord? {
    let record = try await read(name)
    if record != nil, Self.isListed(name) { await list(name) }
    return record
  }

  private func read(_ name: String) async throws(StoreError) -> StoredRecord? {
    guard Self.isSealed(name) else { return try await base.record(named: name) }
    if state.withLock({ $0.identity == nil || $0.fault != nil }) {
      _ = try await refresh()
      if let fault = state.withLock(\.fault) { throw .seal(fault) }
    }
    guard let record = try await stored(name) else {
      guard state.withLock({ $0.has(name) }) else { return nil }
      throw .seal(.vanished(record: name))
    }
    do throws(StoreError) { return try verified(record, name) } catch {
      // It may have been written under an identity that is newer than the one known here.
      guard case .seal = error else { throw error }
      _ = try await refresh()
      if let fault = state.withLock(\.fault) { throw .seal(fault) }
      return try verified(record, name)
    }
  }

  package func replace(
    _ name: String, version: Int64, with bytes: [UInt8], history: [[UInt8]]
  ) async throws(StoreError) -> StoreReplacement {
    guard Self.isSealed(name) else {
      return try await base.replace(name, version: version, with: bytes, history: history)
    }
    let sealed = try seal(bytes, name, over: version)
    let outcome = try await base.replace(name, version: version, with: sealed, history: history)
    // Once it is made: a name whose record never came to be would look like one that vanished.
    if case .replaced = outcome, Self.isListed(name) { await list(name) }
    return outcome
  }

  /// Seals what is to take the place of a version.
  private func seal(
    _ content: [UInt8], _ name: String, over version: Int64
  ) throws(StoreError) -> [UInt8] {
    let (keys, identity, fault) = state.withLock { ($0.keys, $0.identity, $0.fault) }
    if let fault { throw .seal(fault) }
    guard let identity else {
      throw .failed(operation: "sealing \(name)", reason: "it is not open")
    }
    let fields = SealedRecord.Fields(
      store: identity.id, key: keys.own.id, name: name,
      version: try StoredRecord.number(after: version, of: name), content: content)
    return try SealedRecord(fields, keys: keys.all).encoded
  }

  /// The content of a stored record.
  ///
  /// - Throws: ``StoreError/seal(_:)``.
  private func verified(_ record: StoredRecord, _ name: String) throws(StoreError) -> StoredRecord {
    let (keys, identity) = state.withLock { ($0.keys, $0.identity) }
    guard let sealed = SealedRecord(parsing: record.bytes), let inForce = sealed.keyInForce else {
      throw .seal(.broken(record: name, .unsealed))
    }
    guard sealed.tags.contains(where: { tag in keys.all.contains { $0.id == tag.key } }) else {
      throw .seal(.broken(record: name, .unknownKey(inForce)))
    }
    guard try sealed.verified(by: keys.all, name: name, version: record.version) != nil else {
      throw .seal(.broken(record: name, .changed))
    }
    guard sealed.store == identity?.id else { throw .seal(.broken(record: name, .otherStore)) }
    // Which key the store goes by says its own record, which is read again then.
    guard keys.all.contains(where: { $0.id == inForce }) else {
      throw .seal(.broken(record: name, .unknownKey(inForce)))
    }
    return StoredRecord(version: record.version, bytes: sealed.content)
  }

  // MARK: - Leading, and what else is passed on

  package func lead() async throws(StoreError) -> (any StoreLeadership)? {
    if state.withLock({ $0.fault != nil }) {
      _ = try await refresh()
      guard state.withLock({ $0.fault == nil }) else { return nil }
    }
    let leadership = try await base.lead()
    state.withLock { $0.leadership = leadership }
    return leadership
  }

  package func history(
    of name: String, before: Int64?, limit: Int
  ) async throws(StoreError) -> [StoredEntry] {
    try await base.history(of: name, before: before, limit: limit)
  }

  package func forgetHistory(of name: String, through number: Int64) async throws(StoreError) {
    try await base.forgetHistory(of: name, through: number)
  }

  package func changes() -> AsyncStream<String> { base.changes() }

  package var warning: String? { get async { await base.warning } }

  package func close() async { await base.close() }

  // MARK: - Keys

  /// Why these keys cannot be put in the place of those at work; `nil` if they can.
  ///
  /// - Throws: ``StoreError``: without the store nobody knows.
  package func refusal(of keys: SealKeys) async throws(StoreError) -> SealFault? {
    let own = state.withLock(\.keys.own.id)
    guard keys.own.id != own else { return nil }
    // What the seal of the store names, whoever it can be verified by here.
    let record = try await base.record(named: StoreIdentity.recordName)
    guard let record, let sealed = SealedRecord(parsing: record.bytes),
      try sealed.verified(
        by: keys.all, name: StoreIdentity.recordName, version: record.version) != nil,
      sealed.keyInForce == keys.own.id
    else { return .otherKey(inForce: own, own: keys.own.id) }
    return nil
  }

  /// Goes by these keys from now on.
  ///
  /// - Returns: whether `prv.pem` is another one than before.
  package func use(_ keys: SealKeys) async -> Bool {
    let before = state.withLock { state in
      defer {
        if state.keys != keys { (state.keys, state.identity, state.fault) = (keys, nil, nil) }
      }
      return state.keys.own.id
    }
    // A store that cannot be asked now is asked with the next call.
    _ = try? await refresh()
    return before != keys.own.id
  }

  // MARK: - The identity

  /// Reads the record with the identity again.
  ///
  /// - Returns: whether the store has one, or is known to have had one.
  private func refresh() async throws(StoreError) -> Bool {
    let name = StoreIdentity.recordName
    // Before the record: somebody may write a newer one, and mark that, while this one is on its way.
    let seen = mark.seen
    let standing: StoredRecord?
    do throws(StoreError) { standing = try await stored(name) } catch {
      guard case .seal(let fault) = error else { throw error }
      _ = note(fault)
      return true
    }
    guard let record = standing else {
      guard seen != nil || state.withLock({ $0.identity != nil }) else { return false }
      goBack(to: 0, .vanished(record: name), seen)
      return true
    }
    let keys = state.withLock(\.keys)
    guard let sealed = SealedRecord(parsing: record.bytes), let inForce = sealed.keyInForce else {
      _ = note(.broken(record: name, .unsealed))
      return true
    }
    guard try sealed.verified(by: keys.all, name: name, version: record.version) != nil else {
      let isKnown = sealed.tags.contains { tag in keys.all.contains { $0.id == tag.key } }
      _ = note(
        isKnown
          ? .broken(record: name, .changed) : .otherKey(inForce: inForce, own: keys.own.id))
      return true
    }
    guard let identity = StoreIdentity(decoding: sealed.content), identity.id == sealed.store,
      identity.key == inForce
    else {
      _ = note(.broken(record: name, .unreadable))
      return true
    }
    let found = identity.seen(under: record.version)
    switch seen?.refusal(ofStore: found.id, found.age) {
    case .older?: goBack(to: record.version, .broken(record: name, .older), seen)
    case let reason?: _ = note(.broken(record: name, reason))
    case nil where inForce != keys.own.id:
      _ = note(.otherKey(inForce: inForce, own: keys.own.id))
    case nil:
      state.withLock { state in
        state.unlisted.formUnion(seen?.records ?? [])
        // And then it is known here already.
        guard !state.knows(laterThan: found) else { return }
        state.take(identity, version: record.version)
      }
      mark.note(found)
    }
    return true
  }

  /// The store's own record is gone, or an older one is in force. A server that runs knows what it was.
  ///
  /// - Parameter fault: what it is to a server that does not.
  private func goBack(to version: Int64, _ fault: SealFault, _ seen: SealMark.Seen?) {
    let isKnown = state.withLock { state in
      guard let identity = state.identity, identity.id == seen?.id ?? identity.id else {
        return false
      }
      (state.version, state.isBehind, state.wentBack, state.fault) = (version, true, true, nil)
      state.unlisted.formUnion(seen?.records.subtracting(identity.records) ?? [])
      return true
    }
    if !isKnown { _ = note(fault) }
  }

  /// Notes that nothing of the store is believed here, and gives the leadership up.
  private func note(_ fault: SealFault) -> SealFault {
    let leadership = state.withLock { state in
      state.fault = fault
      return state.leadership.take()
    }
    if let leadership { Task { await leadership.resign() } }
    return fault
  }

  /// Has the identity name a record that is there; what fails is tried again when the record is next read. One
  /// writer at a time: names that come meanwhile are written together afterwards.
  private func list(_ name: String) async {
    // One that is under way may have begun before this name came.
    for _ in 0..<2 {
      let listing = state.withLock { state -> Task<Void, Never>? in
        let isListed = state.identity?.records.contains(name) ?? true
        guard !isListed || state.isBehind else { return nil }
        state.unlisted.insert(name)
        if let listing = state.listing { return listing }
        let listing = Task {
          try? await self.change { _ in }
          self.state.withLock { $0.listing = nil }
        }
        state.listing = listing
        return listing
      }
      guard let listing else { return }
      await listing.value
    }
  }

  /// Changes the identity, and lists what it lacks.
  private func change(_ edit: (inout StoreIdentity) -> Void) async throws(StoreError) {
    for _ in 0..<32 {
      let (before, version, unlisted, isBehind) = state.withLock {
        ($0.fault == nil ? $0.identity : nil, $0.version, $0.unlisted, $0.isBehind)
      }
      guard let before else { return }
      var next = before
      next.records.formUnion(unlisted)
      if isBehind {
        next.returns = (mark.seen?.age ?? RecordAge(returns: before.returns)).nextReturns
      }
      edit(&next)
      if next == before { return }
      if try await write(next, over: version) { return }
      _ = try await refresh()
    }
  }

  private func write(
    _ identity: StoreIdentity, over version: Int64
  ) async throws(StoreError) -> Bool {
    let name = StoreIdentity.recordName
    let keys = state.withLock(\.keys)
    let fields = SealedRecord.Fields(
      store: identity.id, key: keys.own.id, name: name,
      version: try StoredRecord.number(after: version, of: name), content: identity.encoded)
    let bytes = try SealedRecord(fields, keys: keys.all).encoded
    guard
      case .replaced(let version) = try await base.replace(name, version: version, with: bytes)
    else { return false }
    state.withLock { $0.take(identity, version: version) }
    // After the record: a mark that is ahead of the store would refuse it.
    mark.note(identity.seen(under: version))
    return true
  }
}
