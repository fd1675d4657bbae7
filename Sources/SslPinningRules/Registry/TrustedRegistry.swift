import CanonicalJSON

/// The registry that a client believes, and the only way to believe another one.
///
/// - A document is believed only after its signatures were verified over the canonical forms as received. A
///   refused document changes no pins: the registry that refused it stays in force. Only newer key sets are
///   believed from it, so that withdrawn keys stay withdrawn.
/// - Root keys sign key sets, online keys sign statements; a statement must belong to the newest known key set
///   (`KeySetChain`).
/// - (epoch, version) never goes back. The same number with other canonical statement bytes is refused;
///   other signatures, spacing or key sets beside it make no difference.
/// - After a statement, no document without one is believed, unless a believed statement says `retired`.
///   With a statement, the format-1 signature is ignored.
/// - A statement for another registry, or a document of another type, is refused.
/// - A new epoch begins a new count of versions, which repairs a stolen online key or a burnt counter.
/// - A registry without a usable key is never believed: it would lock everybody out.
/// - A host that vanishes from a newer document keeps its last pins and is reported
///   (`VanishedHosts`).
/// - An expired statement is never newly believed. If one expires while it is in force, the app decides
///   (``WhenExpired``).
/// - Time is passed in. A statement's `issued` may be in the future, and is the time floor while that statement is
///   in force (`TrustTime`). A newer version may lower it, so an `issued` far ahead, by accident or theft, keeps no
///   client from the document that repairs it.
/// - A pin that was active when its statement was issued never expires before the statement.
/// - Hosts that a statement enforces stay enforced for the rest of the epoch, whichever pattern lists them by then.
///
/// An example. An app ships one key, which is the root and the online key of set 0.
///
/// | Incoming | Result |
/// |---|---|
/// | version 7 of epoch 0, signed by the shipped key | believed, as the first |
/// | version 6 | refused: `rolledBack` |
/// | another version 7 | refused: `invalidStatement(.conflict)`, and a fork is reported |
/// | the same list without its statement | refused: `statementStripped` |
/// | key set 1 with a new online key, and version 1 of epoch 1 signed by it | believed: the count begins again |
/// | version 8 of epoch 0, signed by the shipped key | refused: set 1 has other online keys |
/// | key set 2 with a statement that its online key did not sign | refused; set 2 is believed |
/// | version 2 of epoch 1 | refused: set 2 has other online keys |
public struct TrustedRegistry: Sendable {
  /// The entries of the newest document, and after them those of vanished hosts.
  public let registry: Registry
  /// Which document this is, for verdicts.
  public let stamp: RegistryStamp

  let document: AcceptedDocument
  let standing: Standing
  let vanished: VanishedHosts
  let limits: RegistryLimits

  /// What is remembered about statements and key sets.
  struct Standing: Sendable {
    /// The key sets; `nil` before the first document.
    var chain: KeySetChain?
    /// The newest statement that was believed; the document's own, unless it was a retired one.
    var statement: Statement?
    /// The id of ``statement``.
    var id: StatementID?
    /// The document in which ``statement`` came, as received, and what of it is signed.
    var statementBytes: [UInt8] = []
    var statementSigned: [UInt8] = []
    /// Patterns that a statement of the epoch enforced.
    private(set) var enforced: Set<HostPattern> = []
    /// The fork found in the epoch's history; not stored.
    var fork: RegistryFork?

    /// The most patterns in ``enforced``.
    static let mostEnforced = 16_384

    /// Enforces patterns for the rest of the epoch, as many as there is room for: a thief of the online key makes their
    /// number as large as he likes, and memory and what is stored must not grow with it. The first stay, so that he
    /// cannot drive them out. (What the statement in force enforces is in its own settings.)
    mutating func enforce(_ patterns: some Sequence<HostPattern>) {
      for pattern in patterns where enforced.count < Self.mostEnforced { enforced.insert(pattern) }
    }

    /// The same for what was enforced before that.
    mutating func enforce(first patterns: some Sequence<HostPattern>) {
      let later = enforced
      enforced = []
      enforce(patterns)
      enforce(later)
    }

    /// Forgets what another epoch enforced, and its fork.
    mutating func beginEpoch() { (enforced, fork) = ([], nil) }

    /// The fork that another statement, of any epoch, reveals against the believed one.
    func fork(by other: StatementID, following previous: StatementID?) -> RegistryFork? {
      id.flatMap { RegistryFork(other, following: previous, from: $0) }
    }
  }

  init(
    document: AcceptedDocument, standing: Standing, vanished: VanishedHosts, confirmed: Int64,
    limits: RegistryLimits
  ) {
    self.document = document
    self.standing = standing
    self.vanished = vanished
    self.limits = limits
    stamp = RegistryStamp(
      version: document.statement?.number, payloadDigest: document.payloadDigest,
      confirmed: confirmed, fork: standing.fork)
    let gone = vanished.ordered
    registry = Registry(
      keys: document.registry.keys + gone.flatMap(\.host.last.keys),
      settings: document.registry.settings + gone.flatMap(\.host.last.settings),
      problems: document.registry.problems
        + gone.prefix(RegistryProblem.most).map { .vanished($0.pattern, since: $0.host.since) })
  }

  /// The newest statement that was believed, if there ever was one.
  public var statement: Statement? { standing.statement }

  /// The epoch of the newest believed key set; 0 is the set that the app ships.
  public var keySetEpoch: Int64 { standing.chain?.newest.epoch ?? 0 }

  /// Unix time in seconds from which nothing new is accepted under that key set; `nil` means never.
  package var keySetExpires: Int64? { standing.chain?.newest.expires }

  /// Unix time in seconds from which the registry counts as expired; `nil` if no statement vouches for it:
  /// format 1 never expires as a whole.
  public var expires: Int64? { document.statement?.expires }

  /// Other URLs of the document, according to the current statement. A new epoch, a statement without mirrors, or
  /// retirement ends them.
  public var mirrors: [RegistryMirror] { document.statement?.mirrors ?? [] }

  /// The same registry, confirmed by its server as unchanged at `clock` (Unix seconds). Hosts that vanished too
  /// long ago are dropped.
  ///
  /// The clock counts even if it is now behind the last confirmation: the later of the two would hide the
  /// registry's age until the clock has caught up.
  public func confirmed(at clock: Int64) -> TrustedRegistry {
    var vanished = self.vanished
    vanished.expire(under: document, at: clock, limits: limits)
    return TrustedRegistry(
      document: document, standing: standing, vanished: vanished, confirmed: clock, limits: limits)
  }
}

/// Believing a document, with or without a statement.
extension TrustedRegistry {
  /// Believes a fetched first document.
  ///
  /// - Parameters:
  ///   - bytes: the document as received.
  ///   - trust: what the app ships.
  ///   - clock: Unix time in seconds.
  /// - Throws: ``RegistryError``.
  public init(
    accepting bytes: [UInt8], under trust: RegistryTrust, at clock: Int64
  ) throws(RegistryError) {
    var judge = DocumentJudge(trust: trust, clock: clock)
    self = try Self.believing(
      try RegistryEnvelope(parsing: bytes, limits: trust.limits), bytes, by: &judge,
      confirmed: clock)
  }

  /// Believes the document that an app ships as its first one, even if it has expired: then nothing older is
  /// believed. Whether an expired document is used for verdicts is up to the policy.
  ///
  /// No server has confirmed it: it counts as confirmed at its statement's `issued`, and without a statement
  /// never.
  ///
  /// - Parameters:
  ///   - bytes: the document as a server publishes it.
  ///   - trust: what the app ships beside it.
  ///   - clock: Unix time in seconds.
  /// - Throws: ``RegistryError``.
  public init(
    bundled bytes: [UInt8], under trust: RegistryTrust, at clock: Int64
  ) throws(RegistryError) {
    var judge = DocumentJudge(trust: trust, clock: clock, origin: .bundled)
    self = try Self.believing(
      try RegistryEnvelope(parsing: bytes, limits: trust.limits), bytes, by: &judge,
      confirmed: nil)
  }

  /// Believes a first document; `confirmed` is the time at which its server confirmed it, if it did.
  static func believing(
    _ envelope: RegistryEnvelope, _ bytes: [UInt8], by judge: inout DocumentJudge,
    confirmed: Int64?
  ) throws(RegistryError) -> TrustedRegistry {
    let limits = judge.trust.limits
    let document = try judge.judge(envelope, bytes: bytes)
    return TrustedRegistry(
      document: document, standing: judge.standing, vanished: VanishedHosts(),
      confirmed: confirmed ?? judge.standing.statement?.issued ?? 0, limits: limits)
  }

  /// Evaluates a document that arrived.
  ///
  /// - Parameters:
  ///   - bytes: the document as received.
  ///   - trust: what the app ships.
  ///   - clock: Unix time in seconds.
  ///   - road: how the document arrived.
  /// - Returns: the registry to continue with, and why the document was refused, if it was.
  public func update(
    with bytes: [UInt8], under trust: RegistryTrust, at clock: Int64, by road: Road = .server
  ) -> RegistryUpdate {
    let envelope: RegistryEnvelope
    do throws(RegistryError) {
      envelope = try RegistryEnvelope(parsing: bytes, limits: trust.limits)
    } catch { return RegistryUpdate(registry: self, refusal: error) }
    return update(with: envelope, bytes, under: trust, at: clock, by: road)
  }

  func update(
    with envelope: RegistryEnvelope, _ bytes: [UInt8], under trust: RegistryTrust, at clock: Int64,
    by road: Road
  ) -> RegistryUpdate {
    if let refusal = road.refusal(of: envelope, believing: statement, under: trust) {
      return RegistryUpdate(registry: self, refusal: refusal)
    }
    var judge = DocumentJudge(trust: trust, clock: clock, standing: standing)
    do throws(RegistryError) {
      let next = try judge.judge(envelope, bytes: bytes)
      return RegistryUpdate(registry: replaced(by: next, judge, at: clock, by: road), refusal: nil)
    } catch {
      var standing = self.standing
      standing.chain = judge.standing.chain
      standing.fork = judge.standing.fork
      let same = TrustedRegistry(
        document: document, standing: standing, vanished: vanished, confirmed: stamp.confirmed,
        limits: limits)
      return RegistryUpdate(registry: same, refusal: error)
    }
  }

  private func replaced(
    by next: AcceptedDocument, _ judge: DocumentJudge, at clock: Int64, by road: Road
  ) -> TrustedRegistry {
    // Of several copies of one statement, keep the first (`DocumentJudge`).
    let isCopy = document.statement.map { $0.json == next.statement?.json } ?? false
    let next = isCopy ? document : next
    var vanished = self.vanished
    vanished.replace(document, by: next, at: clock, limits: limits)
    if judge.beginsEpoch { vanished.keep(where: judge.standing.vouches) }
    return TrustedRegistry(
      document: next, standing: judge.standing, vanished: vanished,
      confirmed: confirmation(of: next, at: clock, by: road), limits: limits)
  }

  private func confirmation(
    of next: AcceptedDocument, at clock: Int64, by road: Road
  ) -> Int64 {
    switch road {
    case .server: clock
    // Never later than the signed time, or an old copy would pass for a fresh confirmation.
    case .mirror, .hand:
      max(
        stamp.knownConfirmation(at: clock),
        next.statement.map { min($0.issued, clock) } ?? 0)
    }
  }

  /// How a document arrived.
  public enum Road: Sendable {
    /// From the registry's own URL: its current document.
    case server
    /// From a mirror. The same rules apply, and one more: it needs a statement that is not retired, since nothing
    /// else binds its list and shows its age. It confirms nothing.
    case mirror
    /// From anybody: a push message, a file, a printed code. The rules of mirrors apply; moreover, if no statement
    /// is believed yet, the app must ship a minimum.
    case hand

    /// Why a document that arrived this way is refused without further checks.
    func refusal(
      of envelope: RegistryEnvelope, believing statement: Statement?, under trust: RegistryTrust
    ) -> RegistryError? {
      if self == .server { return nil }
      guard let own = envelope.member("statement") else { return .statementRequired }
      // Any document beside a retired statement would be accepted, even one that is years old.
      if own.objectValue.map(Statement.saysRetired) ?? false { return .statementRequired }
      return self == .hand && statement == nil && trust.minimum == nil ? .minimumRequired : nil
    }
  }
}

/// Evaluates one document against what is known, and keeps what must be remembered from it.
///
/// The order matters: key sets first, since they are believed even if the rest is refused; then the
/// statement's signatures, before anything in it counts; then its number, its time, and the payload's
/// digest.
struct DocumentJudge {
  let trust: RegistryTrust
  let clock: Int64
  /// What is remembered; ``judge(_:bytes:)`` updates it.
  private(set) var standing: TrustedRegistry.Standing
  /// Whether the document began a new epoch, or is the first with a statement.
  private(set) var beginsEpoch = false
  private let origin: Origin

  /// The origin of the document.
  enum Origin {
    /// It has just arrived.
    case fetched
    /// It ships with the app, and may have expired since.
    case bundled
    /// It was believed before; since then it may have expired, or its keys may have been withdrawn.
    case stored
  }

  init(
    trust: RegistryTrust, clock: Int64, standing: TrustedRegistry.Standing = .init(),
    origin: Origin = .fetched
  ) {
    self.trust = trust
    self.clock = clock
    self.standing = standing
    self.origin = origin
  }

  /// Believes a document, or says why not.
  mutating func judge(
    _ envelope: RegistryEnvelope, bytes: [UInt8]
  ) throws(RegistryError) -> AcceptedDocument {
    var chain = standing.chain ?? KeySetChain(shipped: trust.shipped)
    // A stored document's own key sets are as somebody sent them. Those that were believed from it stand in the state.
    let fault =
      origin == .stored
      ? nil
      : envelope.member("keySets").flatMap {
        chain.walk($0, under: trust, hasStatement: standing.statement != nil)
      }
    standing.chain = chain
    guard let json = envelope.member("statement") else { return try unstated(envelope, bytes) }
    if let fault { throw fault }
    let keys = keys(for: json, in: chain)
    let statement = try read(json, envelope, by: keys)
    try checkNumber(of: statement)
    try trust.checkMinimum(
      of: statement, epoch: standing.statement?.number.epoch, origin, at: clock)
    try checkTime(of: statement, under: keys)
    let payload: JSONView
    if statement.isRetired {
      guard let key = trust.format1Key else { throw .noFormat1Key }
      payload = try envelope.verifiedPayload(by: key)
    } else {
      payload = envelope.payload
      guard trust.crypto.sha256(envelope.canonicalPayload) == statement.payloadDigest else {
        throw .otherPayload
      }
    }
    let registry = try Registry(payload: payload, settings: statement.hosts)
    let signed = envelope.signedPart(statement, by: statement.isRetired ? keys.root : keys.online)
    remember(statement, bytes, signed)
    return AcceptedDocument(
      bytes: bytes, signed: signed, digest: trust.crypto.sha256(signed),
      payloadDigest: hex(trust.crypto.sha256(envelope.canonicalPayload)),
      registry: registry, statement: statement.isRetired ? nil : statement,
      number: statement.number, removed: Set(statement.removed),
      newestDate: statement.isRetired ? AcceptedDocument.newestDate(of: payload) : nil)
  }

  /// The key set whose online keys must have signed: the newest, except for a statement that was believed
  /// before a newer set arrived.
  private func keys(for statement: JSONValue, in chain: KeySetChain) -> KeySet {
    guard origin == .stored, let epoch = statement.objectValue?["epoch"]?.integerValue else {
      return chain.newest
    }
    return chain.set(epoch) ?? chain.newest
  }

  /// An older document from a stored state, if something still vouches for it.
  ///
  /// - Its statement, or the retired one beside it, is of the epoch in force, or that epoch's online keys signed its own
  ///   statement, too. Where nobody believes a statement, it has none either.
  /// - So nobody brings back by writing to the disk what an epoch, or the first statement, had ended: the signature of
  ///   format 1 says nothing of when.
  ///
  /// - Parameter retired: the document of the retired statement beside which it was believed.
  func older(_ bytes: [UInt8], beside retired: [UInt8]? = nil) -> AcceptedDocument? {
    guard let envelope = try? RegistryEnvelope(believed: bytes) else { return nil }
    var standing = TrustedRegistry.Standing()
    standing.chain = self.standing.chain
    var judge = DocumentJudge(
      trust: trust.ofOlderDocuments, clock: clock, standing: standing, origin: .stored)
    let isStated = envelope.member("statement") != nil
    if !isStated, let retired, let beside = try? RegistryEnvelope(believed: retired) {
      _ = try? judge.judge(beside, bytes: retired)
    }
    // The current statement must not interfere.
    guard
      let document = isStated
        ? try? judge.judge(envelope, bytes: bytes) : try? judge.unstated(envelope, bytes)
    else { return nil }
    let isOfEpoch =
      judge.standing.statement?.number.epoch == self.standing.statement?.number.epoch
    return isOfEpoch || self.standing.vouches(for: document) ? document.asOlder : nil
  }

  /// A document without a statement.
  private func unstated(
    _ envelope: RegistryEnvelope, _ bytes: [UInt8]
  ) throws(RegistryError) -> AcceptedDocument {
    if let held = standing.statement {
      guard held.isRetired else { throw .statementStripped }
      try trust.checkMinimum(of: held, epoch: nil, origin, at: clock)
    } else if trust.requiresStatement || trust.minimum != nil && origin != .stored {
      throw .statementRequired
    }
    guard let key = trust.format1Key else { throw .noFormat1Key }
    let payload = try envelope.verifiedPayload(by: key)
    let signed = envelope.signedPart()
    return AcceptedDocument(
      bytes: bytes, signed: signed, digest: trust.crypto.sha256(signed),
      payloadDigest: hex(trust.crypto.sha256(envelope.canonicalPayload)),
      registry: try Registry(payload: payload, settings: standing.statement?.hosts ?? []),
      statement: nil, number: standing.statement?.number,
      removed: Set(standing.statement?.removed ?? []),
      retiredBytes: standing.statement == nil ? nil : standing.statementSigned,
      newestDate: AcceptedDocument.newestDate(of: payload))
  }

  private func read(
    _ json: JSONValue, _ envelope: RegistryEnvelope, by keys: KeySet
  ) throws(RegistryError) -> Statement {
    do throws(DocumentFault) {
      guard let json = json.objectValue else { throw .member("statement") }
      let signatures = try DocumentSignature.list(
        envelope.member("statementSignatures"), "statementSignatures")
      let signed = DocumentSignature.Domain.statement.bytes(over: json)
      let (role, signers): (KeyRole, DocumentFault.Signers) =
        Statement.saysRetired(json)
        ? (keys.root, .root(epoch: keys.epoch)) : (keys.online, .onlineKeys(epoch: keys.epoch))
      guard role.isMet(by: signatures, over: signed, wasBelieved: origin == .stored) else {
        throw role.fault(of: signatures, over: signed, as: signers)
      }
      let statement = try Statement(json, registry: trust.registry)
      guard statement.number.epoch == keys.epoch else {
        throw .epoch(statement.number.epoch, expected: keys.epoch)
      }
      return statement
    } catch .unknownCritical(let names) { throw .clientTooOld(names) } catch {
      throw .invalidStatement(error)
    }
  }

  private mutating func checkNumber(of statement: Statement) throws(RegistryError) {
    guard let held = standing.statement else { return }
    guard statement.number >= held.number else {
      throw .rolledBack(to: statement.number, from: held.number)
    }
    guard statement.number > held.number || statement.json == held.json else {
      standing.fork = fork(by: statement) ?? standing.fork
      throw .invalidStatement(.conflict)
    }
  }

  private func checkTime(of statement: Statement, under keys: KeySet) throws(RegistryError) {
    let held = standing.statement
    // A believed retired statement may stay in the document for ever.
    let isKnown = held?.number == statement.number
    guard origin == .fetched, !(isKnown && statement.isRetired) else { return }
    // A statement issued after the end of its key set breaks that set's rules, whatever the clock here
    // says. No other statement's time counts: it could block the one that repairs it.
    if let end = keys.expires, keys.isExpired(at: max(clock, statement.issued)) {
      throw .keySetExpired(epoch: keys.epoch, at: end)
    }
    guard !statement.isExpired(at: clock) else { throw .statementExpired(at: statement.expires) }
  }

  private mutating func remember(_ statement: Statement, _ bytes: [UInt8], _ signed: [UInt8]) {
    let held = standing.statement
    beginsEpoch = held?.number.epoch != statement.number.epoch
    if beginsEpoch { standing.beginEpoch() }
    standing.fork = fork(by: statement) ?? standing.fork
    standing.id = StatementID(of: statement, crypto: trust.crypto)
    // Of several copies of one statement, keep the first: a later copy may lack signatures, and a signature by a
    // withdrawn key alone would no longer count. A retired statement occurs in many documents.
    if let held, held.json == statement.json, !statement.isRetired { return }
    standing.enforce(statement.hosts.filter(\.enforces).map(\.pattern))
    standing.statement = statement
    (standing.statementBytes, standing.statementSigned) = (bytes, signed)
  }

  private func fork(by statement: Statement) -> RegistryFork? {
    standing.fork(
      by: StatementID(of: statement, crypto: trust.crypto), following: statement.previous)
  }
}
