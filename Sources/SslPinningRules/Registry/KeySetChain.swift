import CanonicalJSON

/// The key sets that a client believes, from the one that its app ships to the newest.
///
/// - Set n+1 needs the root threshold of set n *and* of set n+1, over distinct keys.
/// - The list in a document is the whole chain: its first entry is set 1, and no number is missing.
/// - An app may ship the root of a later set. If set 1 does not follow from the shipped root, the walk begins
///   at the first set that has exactly the shipped root and is signed by it and by its own. (The same key ids
///   could occur there with algorithms that verify nothing.) Nothing before that set is believed.
/// - A believed set is never replaced by another of its number, nor are the signatures that made it believed.
/// - Of an entry only that is kept for good which root keys signed, and their signatures: whoever hands out a document
///   can put anything beside them, and a state that cannot be read again would make the next start a first start.
/// - A fault ends the walk; the sets before it are believed. So withdrawn keys stay withdrawn, whatever
///   follows.
struct KeySetChain: Sendable {
  /// Consecutive epochs, the oldest first.
  private var sets: [KeySet] = []
  /// The newest set; its keys count.
  private(set) var newest: KeySet
  /// What of the list led to ``newest``, so that the walk can be repeated. Entries before the walk's beginning are empty.
  private(set) var entries: [JSONValue] = []

  /// Only what the app ships.
  init(shipped: KeySet) {
    newest = shipped
    sets = [shipped]
  }

  /// The believed set of this epoch.
  func set(_ epoch: Int64) -> KeySet? { sets.first { $0.epoch == epoch } }

  /// Continues the walk along a document's list.
  ///
  /// - Parameters:
  ///   - list: the document's `keySets`, or those of a stored state.
  ///   - trust: what the app ships.
  ///   - hasStatement: whether a statement is believed. Then the walk must continue where it is: after a
  ///     jump, the statement's own key set would be gone, and with it the stored state.
  ///   - wasBelieved: whether the list is a stored state's (``KeyRole/isMet(by:over:wasBelieved:)``).
  /// - Returns: the error that ended the walk early; `nil` if it reached the end of the list.
  mutating func walk(
    _ list: JSONValue, under trust: RegistryTrust, hasStatement: Bool = false,
    wasBelieved: Bool = false
  ) -> RegistryError? {
    guard let list = list.arrayValue else { return .invalidKeySet(epoch: 1, .member("keySets")) }
    let mayJump = newest.epoch == 0 && !hasStatement
    for (index, entry) in list.enumerated() {
      let epoch = Int64(index) + 1
      do throws(DocumentFault) {
        if epoch <= newest.epoch {
          try compare(entry, with: epoch)
        } else {
          try append(try SignedEntry(entry, epoch, under: trust, wasBelieved), under: trust)
        }
      } catch {
        guard mayJump, epoch == 1, let start = start(in: list, under: trust, wasBelieved)
        else {
          return .invalidKeySet(epoch: epoch, error)
        }
        (newest, sets) = (start, [start])
      }
      // Only take new entries. For a believed set, this list may have unchecked signatures: stored, they
      // would invalidate the whole state at the next start.
      while newest.epoch > entries.count {
        entries.append(proof(in: list[entries.count], Int64(entries.count) + 1, under: trust))
      }
    }
    return nil
  }

  /// What of an entry proves its set: the set, and the signatures that its own root keys made, or those before it.
  private func proof(in entry: JSONValue, _ epoch: Int64, under trust: RegistryTrust) -> JSONValue {
    guard let set = set(epoch),
      let signatures = try? DocumentSignature.list(
        entry.objectValue?["signatures"], "signatures")
    else { return .object([:]) }
    let roots = [self.set(epoch - 1)?.root ?? trust.shipped.root, set.root]
    let message = set.signedBytes
    return set.entry(
      signedBy: signatures.filter { signature in
        roots.contains { $0.keeps(signature, over: message) }
      })
  }

  /// Refuses an entry that contradicts a believed set; sets before the beginning of the walk may be anything.
  private func compare(_ entry: JSONValue, with epoch: Int64) throws(DocumentFault) {
    guard let known = set(epoch) else { return }
    guard let json = entry.objectValue?["keySet"] else { throw .member("keySet") }
    guard json == .object(known.json) else { throw .conflict }
  }

  private mutating func append(
    _ signed: SignedEntry, under trust: RegistryTrust
  ) throws(DocumentFault) {
    guard signed.meets(newest.root) else {
      throw newest.root.fault(
        of: signed.signatures, over: signed.message, as: .root(epoch: newest.epoch))
    }
    let set = try signed.keySet(under: trust)
    guard signed.meets(set.root) else {
      throw set.root.fault(of: signed.signatures, over: signed.message, as: .ownRoot)
    }
    newest = set
    sets.append(set)
  }

  /// The first set that has exactly the shipped root and is signed by it.
  private func start(
    in list: [JSONValue], under trust: RegistryTrust, _ wasBelieved: Bool
  ) -> KeySet? {
    for (index, entry) in list.enumerated() {
      guard let signed = try? SignedEntry(entry, Int64(index) + 1, under: trust, wasBelieved),
        signed.meets(trust.shipped.root), let set = try? signed.keySet(under: trust),
        set.root.demandsTheSame(as: trust.shipped.root), signed.meets(set.root)
      else { continue }
      return set
    }
    return nil
  }
}

/// An entry of `keySets` of which only the name has been read. Its keys are read once a believed root has signed
/// it: whoever cannot sign must not have a client read the tens of thousands for which a document has room.
private struct SignedEntry {
  let signatures: [DocumentSignature]
  /// What the signatures are over.
  let message: [UInt8]
  private let json: JSONObject
  private let epoch: Int64
  private let wasBelieved: Bool

  init(
    _ entry: JSONValue, _ epoch: Int64, under trust: RegistryTrust, _ wasBelieved: Bool
  ) throws(DocumentFault) {
    guard let json = entry.objectValue?["keySet"]?.objectValue else { throw .member("keySet") }
    signatures = try DocumentSignature.list(entry.objectValue?["signatures"], "signatures")
    try KeySet.checkName(of: json, registry: trust.registry, epoch: epoch)
    message = DocumentSignature.Domain.keySet.bytes(over: json)
    (self.json, self.epoch, self.wasBelieved) = (json, epoch, wasBelieved)
  }

  func meets(_ role: KeyRole) -> Bool {
    role.isMet(by: signatures, over: message, wasBelieved: wasBelieved)
  }

  func keySet(under trust: RegistryTrust) throws(DocumentFault) -> KeySet {
    try KeySet(json, registry: trust.registry, epoch: epoch, crypto: trust.crypto)
  }
}

/// Key sets that a client believes before any document: those of refused first documents. Without them, an
/// attacker who serves an older document next could sign with withdrawn keys.
public struct LearnedKeySets: Sendable {
  let chain: KeySetChain?

  /// Only what the app ships.
  public static let none = LearnedKeySets(chain: nil)

  /// The epoch of the newest set; 0 is the set that the app ships.
  public var epoch: Int64 { chain?.newest.epoch ?? 0 }

  /// The longer of the two chains; both begin with the set that the app ships.
  public func merged(with other: LearnedKeySets) -> LearnedKeySets {
    other.epoch > epoch ? other : self
  }

  /// What to store while there is no registry.
  public var state: StoredState {
    StoredState(
      document: nil, statementDocument: nil, keySets: chain?.entries ?? [], confirmed: 0,
      enforced: [], vanished: [])
  }

  /// The key sets that a stored state proves, with or without a registry in it.
  public init(restoring state: StoredState, under trust: RegistryTrust) {
    var chain = KeySetChain(shipped: trust.shipped)
    _ = chain.walk(.array(state.keySets), under: trust, wasBelieved: true)
    self.chain = chain
  }

  init(chain: KeySetChain?) { self.chain = chain }
}

/// The result of a document that arrived.
public struct RegistryUpdate: Sendable {
  /// What is believed now. If the document was refused, that is the same registry as before, maybe with
  /// newer key sets from the document, which should then be stored.
  public let registry: TrustedRegistry
  /// Why the document was refused; `nil` if it is believed.
  public let refusal: RegistryError?
}

/// The result of a document that arrived before there was a registry.
public enum FirstDocument: Sendable {
  /// It is believed.
  case believed(TrustedRegistry)
  /// It is refused, but its key sets may be believed and should then be stored.
  case refused(RegistryError, learned: LearnedKeySets)
}

extension TrustedRegistry {
  /// Evaluates a first document.
  ///
  /// - Parameters:
  ///   - bytes: the document as received.
  ///   - trust: what the app ships.
  ///   - learned: key sets of documents that were refused before.
  ///   - clock: Unix time in seconds.
  ///   - road: how the document arrived.
  public static func first(
    _ bytes: [UInt8], under trust: RegistryTrust, knowing learned: LearnedKeySets = .none,
    at clock: Int64, by road: Road = .server
  ) -> FirstDocument {
    var judge = DocumentJudge(
      trust: trust, clock: clock, standing: Standing(chain: learned.chain))
    do throws(RegistryError) {
      let envelope = try RegistryEnvelope(parsing: bytes, limits: trust.limits)
      if let refusal = road.refusal(of: envelope, believing: nil, under: trust) { throw refusal }
      return .believed(
        try believing(envelope, bytes, by: &judge, confirmed: road == .server ? clock : nil))
    } catch {
      return .refused(error, learned: LearnedKeySets(chain: judge.standing.chain ?? learned.chain))
    }
  }

  /// The same registry with key sets learned from refused documents.
  ///
  /// Keys that they withdrew stay withdrawn, even if this registry is older.
  /// They are ignored if they lack the key set of the current statement, since the state could not be restored without it.
  public func knowing(_ learned: LearnedKeySets) -> TrustedRegistry {
    guard learned.epoch > keySetEpoch, let chain = learned.chain,
      standing.statement.map({ chain.set($0.number.epoch) != nil }) ?? true
    else { return self }
    var standing = self.standing
    standing.chain = chain
    return TrustedRegistry(
      document: document, standing: standing, vanished: vanished, confirmed: stamp.confirmed,
      limits: limits)
  }
}
