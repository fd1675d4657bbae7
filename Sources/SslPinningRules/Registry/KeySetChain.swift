import CanonicalJSON

/// The key sets that a client believes, from what its app ships to the newest.
///
/// - Set n+1 needs the root threshold of set n *and* of set n+1, over distinct keys.
/// - The list in a document is the whole chain: its first entry is set 1, and no number is missing.
/// - An app may ship the root of a later set: where set 1 does not follow from what is shipped, the
///   walk begins at the first set that has exactly the shipped root and is signed by it and by its own
///   (the same key ids could stand there under algorithms that verify nothing, and lead nowhere). Nothing
///   in front of that is believed.
/// - A set that was believed once is never replaced by another of its number, nor are the signatures
///   that made it believed.
/// - A fault ends the walk; the sets before it are believed. So keys that were withdrawn stay
///   withdrawn, whatever stands behind.
struct KeySetChain: Sendable {
  /// Consecutive epochs, the oldest first.
  private var sets: [KeySet] = []
  /// The set whose keys count now.
  private(set) var newest: KeySet
  /// The list that led to ``newest``, as received: the walk can be repeated from it.
  private(set) var entries: [JSONValue] = []

  /// Only what the app ships.
  init(shipped: KeySet) {
    newest = shipped
    sets = [shipped]
  }

  /// The believed set of this epoch.
  func set(_ epoch: Int64) -> KeySet? { sets.first { $0.epoch == epoch } }

  /// Walks on along the list of a document.
  ///
  /// - Parameter hasStatement: whether a statement is believed. Its client has begun somewhere and goes on
  ///   from there: if it jumped, its own statement's key set would be gone, and with it the stored state.
  /// - Returns: what ended the walk before the list did.
  mutating func walk(
    _ list: JSONValue, under trust: RegistryTrust, hasStatement: Bool = false
  ) -> RegistryError? {
    guard let list = list.arrayValue else { return .invalidKeySet(epoch: 1, .member("keySets")) }
    let mayJump = newest.epoch == 0 && !hasStatement
    for (index, entry) in list.enumerated() {
      let epoch = Int64(index) + 1
      do throws(DocumentFault) {
        if epoch <= newest.epoch {
          try compare(entry, with: epoch)
        } else {
          try append(entry, epoch, under: trust)
        }
      } catch {
        guard mayJump, epoch == 1, let start = start(in: list, under: trust) else {
          return .invalidKeySet(epoch: epoch, error)
        }
        (newest, sets) = (start, [start])
      }
      // Only what is new is taken. Beside a set that is believed, this list may have signatures that nobody
      // looked at: stored, they would make the whole state worthless at the next start. So would members
      // that nobody signed: they could make the state larger than what is read again.
      if newest.epoch > entries.count {
        entries += list[entries.count..<Int(newest.epoch)].map(Self.stored)
      }
    }
    return nil
  }

  /// What is kept of an entry.
  private static func stored(_ entry: JSONValue) -> JSONValue {
    guard let members = entry.objectValue else { return .null }
    var kept = JSONObject()
    for name in ["keySet", "signatures"] { kept[name] = members[name] }
    return .object(kept)
  }

  /// What was believed once is not taken back; what was never looked at may be anything.
  private func compare(_ entry: JSONValue, with epoch: Int64) throws(DocumentFault) {
    guard let known = set(epoch) else { return }
    guard let json = entry.objectValue?["keySet"] else { throw .member("keySet") }
    guard json == .object(known.json) else { throw .conflict }
  }

  private mutating func append(
    _ entry: JSONValue, _ epoch: Int64, under trust: RegistryTrust
  ) throws(DocumentFault) {
    let (set, signatures) = try Self.read(entry, epoch, under: trust)
    let message = set.signedBytes
    guard newest.root.isMet(by: signatures, over: message) else {
      throw newest.root.fault(of: signatures, over: message, as: .root(epoch: newest.epoch))
    }
    guard set.root.isMet(by: signatures, over: message) else {
      throw set.root.fault(of: signatures, over: message, as: .ownRoot)
    }
    newest = set
    sets.append(set)
  }

  /// The first set with exactly the shipped root and its signatures.
  private func start(in list: [JSONValue], under trust: RegistryTrust) -> KeySet? {
    for (index, entry) in list.enumerated() {
      guard let (set, signatures) = try? Self.read(entry, Int64(index) + 1, under: trust),
        set.root.demandsTheSame(as: trust.shipped.root),
        trust.shipped.root.isMet(by: signatures, over: set.signedBytes),
        set.root.isMet(by: signatures, over: set.signedBytes)
      else { continue }
      return set
    }
    return nil
  }

  private static func read(
    _ entry: JSONValue, _ epoch: Int64, under trust: RegistryTrust
  ) throws(DocumentFault) -> (KeySet, [DocumentSignature]) {
    guard let json = entry.objectValue?["keySet"]?.objectValue else { throw .member("keySet") }
    let signatures = try DocumentSignature.list(entry.objectValue?["signatures"], "signatures")
    let set = try KeySet(json, registry: trust.registry, epoch: epoch, crypto: trust.crypto)
    return (set, signatures)
  }
}

/// Key sets that a client believes before it believes any document: those of first documents that it
/// refused. Without them, whoever serves an older document next could sign with keys that were withdrawn.
public struct LearnedKeySets: Sendable {
  let chain: KeySetChain?

  /// Nothing but what the app ships.
  public static let none = LearnedKeySets(chain: nil)

  /// The epoch of the newest; 0 is what the app ships.
  public var epoch: Int64 { chain?.newest.epoch ?? 0 }

  /// The longer of the two chains: both begin with what the app ships.
  public func merged(with other: LearnedKeySets) -> LearnedKeySets {
    other.epoch > epoch ? other : self
  }

  /// What to store while there is no registry.
  public var state: StoredState {
    StoredState(
      document: nil, statementDocument: nil, keySets: chain?.entries ?? [], confirmed: 0,
      enforced: [], vanished: [])
  }

  /// What a stored state proves of key sets, with or without a registry in it.
  public init(restoring state: StoredState, under trust: RegistryTrust) {
    var chain = KeySetChain(shipped: trust.shipped)
    _ = chain.walk(.array(state.keySets), under: trust)
    self.chain = chain
  }

  init(chain: KeySetChain?) { self.chain = chain }
}

/// What became of a document that came in before there was a registry.
public enum FirstDocument: Sendable {
  /// It is believed.
  case believed(TrustedRegistry)
  /// It is not; key sets of it may be believed all the same, and are worth storing.
  case refused(RegistryError, learned: LearnedKeySets)
}

extension TrustedRegistry {
  /// Judges a first document.
  ///
  /// - Parameters:
  ///   - bytes: the document as received.
  ///   - trust: what the app ships.
  ///   - learned: key sets of documents that were refused before.
  ///   - clock: Unix time in seconds.
  ///   - road: who brought the document.
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

  /// The same registry, with key sets that came in beside documents which were refused.
  ///
  /// What they withdrew stays withdrawn, though the registry in force may be older than they are.
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
