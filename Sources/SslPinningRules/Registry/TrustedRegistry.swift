import CanonicalJSON

/// The registry that a client believes, and the only way to come to believe another one.
///
/// - A document is believed only after its signatures were found good, over canonical forms as
///   received. A refused document changes nothing that is pinned: the value that refused it stays in
///   force. Only newer key sets are believed from it, so that withdrawn keys stay withdrawn.
/// - Root keys sign key sets, online keys sign statements; a statement belongs to the newest key set
///   that is known (`KeySetChain`).
/// - (epoch, version) never goes back. The same number with other canonical statement bytes is
///   refused; other signatures, spacing or key sets beside it are not other bytes.
/// - Where there was a statement once, no document without one is believed, unless a believed
///   statement says `retired`. The format-1 signature is then not looked at.
/// - A statement for another registry, or a document of another type, is refused.
/// - A new epoch begins a new count of versions: the way back from a stolen online key or a burnt
///   counter.
/// - A registry without one usable key is never believed: it would lock everybody out.
/// - A host that vanishes from a newer document keeps its last pins and is reported
///   (`VanishedHosts`).
/// - An expired statement is never newly believed. One that expires while it is in force is the
///   app's to judge (``WhenExpired``).
/// - Time is passed in. A statement's `issued` may lie in the future. It is the time floor while that
///   statement is in force (`TrustTime`): a newer version may lower it, so an `issued` far ahead, by
///   accident or theft, cuts nobody off from the document that puts it right.
/// - A pin that was active when its statement was issued never expires before the statement.
/// - Hosts that a statement enforces stay enforced for the rest of the epoch.
///
/// An example. An app ships one key, which is the root and the online key of set 0.
///
/// | What comes in | What becomes of it |
/// |---|---|
/// | version 7 of epoch 0, signed by the shipped key | believed, as the first |
/// | version 6 | refused: `rolledBack` |
/// | another version 7 | refused: `invalidStatement(.conflict)`, and a fork is told |
/// | the same list without its statement | refused: `statementStripped` |
/// | key set 1 with a new online key, and version 1 of epoch 1 signed by it | believed: the count begins anew |
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

  /// What is remembered of statements and key sets.
  struct Standing: Sendable {
    /// The key sets; `nil` before any document was judged.
    var chain: KeySetChain?
    /// The newest statement that was believed; the document's own, unless it was a retired one.
    var statement: Statement?
    /// What ``statement`` is called.
    var id: StatementID?
    /// The document that ``statement`` came in, as received.
    var statementBytes: [UInt8] = []
    /// Patterns that a statement of the epoch enforced.
    var enforced: Set<HostPattern> = []
    /// Where the epoch's history was found to branch; not stored.
    var fork: RegistryFork?

    /// Whether another statement, of the same epoch or not, branches off from what is believed.
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
        + gone.map { .vanished($0.pattern, since: $0.host.since) })
  }

  /// The newest statement that was believed, where there ever was one.
  public var statement: Statement? { standing.statement }

  /// The epoch of the newest key set that is believed; 0 is what the app ships.
  public var keySetEpoch: Int64 { standing.chain?.newest.epoch ?? 0 }

  /// Unix time in seconds from which on nothing new is accepted under that key set; `nil` means never.
  package var keySetExpires: Int64? { standing.chain?.newest.expires }

  /// Unix time in seconds from which on the registry counts as expired; `nil` where no statement
  /// vouches for it: format 1 never expires as a whole.
  public var expires: Int64? { document.statement?.expires }

  /// Where else the document is served, as the statement in force has it. With a new epoch, or a statement
  /// that names none, they are over; what is retired names none.
  public var mirrors: [RegistryMirror] { document.statement?.mirrors ?? [] }

  /// The same registry, confirmed by its server as unchanged at `clock` (Unix seconds). Hosts that
  /// vanished too long ago go.
  ///
  /// The clock counts as it is, also if it was ahead at the last confirmation: counting from the later
  /// of the two would hide the age of the registry until the clock had caught up.
  public func confirmed(at clock: Int64) -> TrustedRegistry {
    var vanished = self.vanished
    vanished.expire(under: document, at: clock, limits: limits)
    return TrustedRegistry(
      document: document, standing: standing, vanished: vanished, confirmed: clock, limits: limits)
  }
}

/// Coming to believe a document, its statement or the lack of one judged.
extension TrustedRegistry {
  /// Believes a first document that was fetched.
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

  /// Believes the document that an app ships as its first, expired or not: nothing older is believed
  /// from then on. Whether an expired one serves for verdicts is the policy's to say.
  ///
  /// Nobody confirmed it today: it counts as confirmed when its statement was issued, and without a
  /// statement never.
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

  /// Believes a first document; `confirmed`: when its server named it, if one did.
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

  /// What is believed after a document came in.
  ///
  /// - Parameters:
  ///   - bytes: the document as received.
  ///   - trust: what the app ships.
  ///   - clock: Unix time in seconds.
  ///   - road: who brought the document.
  /// - Returns: the registry to go on with, and why the document was refused where it was.
  public func update(
    with bytes: [UInt8], under trust: RegistryTrust, at clock: Int64, by road: Road = .server
  ) -> RegistryUpdate {
    let envelope: RegistryEnvelope
    do throws(RegistryError) {
      envelope = try RegistryEnvelope(parsing: bytes, limits: trust.limits)
    } catch { return RegistryUpdate(registry: self, refusal: error) }
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
    // Of copies of one statement the first stays (`DocumentJudge`).
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
    // Never later than what is signed: or a copy that somebody kept would pass for today's news.
    case .mirror, .hand:
      max(
        stamp.knownConfirmation(at: clock),
        next.statement.map { min($0.issued, clock) } ?? 0)
    }
  }

  /// Who brought a document.
  public enum Road: Sendable {
    /// The registry's own URL: what it says today.
    case server
    /// A mirror. Judged by the same rules, with one more: it has a statement that is not retired, since
    /// nothing else binds its list and tells a new one from an old one. It confirms nothing.
    case mirror
    /// Anybody: a push message, a file, a code on paper. As from a mirror; moreover, where no statement is
    /// believed yet, the app ships a minimum.
    case hand

    /// Why a document that came this way is not even looked at.
    func refusal(
      of envelope: RegistryEnvelope, believing statement: Statement?, under trust: RegistryTrust
    ) -> RegistryError? {
      if self == .server { return nil }
      guard let own = envelope.document["statement"] else { return .statementRequired }
      // Whatever stands beside a retired one, and be it years old, has the same right to.
      if own.objectValue.map(Statement.saysRetired) ?? false { return .statementRequired }
      return self == .hand && statement == nil && trust.minimum == nil ? .minimumRequired : nil
    }
  }
}

/// What became of a document that came in.
public struct RegistryUpdate: Sendable {
  /// What is believed now. Where the document was refused: the same registry as before, though
  /// newer key sets of the document may be believed already, and are then worth storing.
  public let registry: TrustedRegistry
  /// Why the document is not believed; `nil` where it is.
  public let refusal: RegistryError?
}

/// Judges one document against what is known already, and keeps what is to be remembered of it.
///
/// The order matters: key sets first, since they are believed even where the rest is not; then the
/// statement's signatures, before anything of it decides anything; then its number, its time, and
/// what it says of the payload.
struct DocumentJudge {
  let trust: RegistryTrust
  let clock: Int64
  /// What is remembered; brought up to date by ``judge(_:bytes:)``.
  private(set) var standing: TrustedRegistry.Standing
  /// Whether the document began a new epoch, or is the first with a statement.
  private(set) var beginsEpoch = false
  private let origin: Origin

  /// Where the document is from.
  enum Origin {
    /// It came in just now.
    case fetched
    /// It ships with the app, and may have expired since.
    case bundled
    /// It was believed before, and may have expired since, or its keys been withdrawn.
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
    let fault = envelope.document["keySets"].flatMap {
      chain.walk($0, under: trust, hasStatement: standing.statement != nil)
    }
    standing.chain = chain
    guard let json = envelope.document["statement"] else { return try unstated(envelope, bytes) }
    if let fault { throw fault }
    let keys = keys(for: json, in: chain)
    let statement = try read(json, envelope, by: keys)
    try checkNumber(of: statement)
    try checkMinimum(of: statement)
    try checkTime(of: statement, under: keys)
    let payload: JSONObject
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
    remember(statement, bytes)
    return AcceptedDocument(
      bytes: bytes, payloadDigest: hex(trust.crypto.sha256(envelope.canonicalPayload)),
      registry: registry, statement: statement.isRetired ? nil : statement,
      removed: Set(statement.removed),
      newestDate: statement.isRetired ? AcceptedDocument.newestDate(of: payload) : nil)
  }

  /// Whose online keys must have signed: the newest set's, but for a statement that was believed
  /// before a newer set came in.
  private func keys(for statement: JSONValue, in chain: KeySetChain) -> KeySet {
    guard origin == .stored, let epoch = statement.objectValue?["epoch"]?.integerValue else {
      return chain.newest
    }
    return chain.set(epoch) ?? chain.newest
  }

  /// An older document from a stored state, if it is still vouched for: by its statement where it
  /// carries one, whatever else is in it.
  ///
  /// - Parameter retired: the document of the retired statement that it was believed beside.
  func older(_ bytes: [UInt8], beside retired: [UInt8]? = nil) -> AcceptedDocument? {
    guard let envelope = try? RegistryEnvelope(parsing: bytes, limits: trust.limits) else {
      return nil
    }
    var standing = TrustedRegistry.Standing()
    standing.chain = self.standing.chain
    var judge = DocumentJudge(
      trust: trust.ofOlderDocuments, clock: clock, standing: standing, origin: .stored)
    if envelope.document["statement"] == nil {
      // The statement that is believed now must not be in the way.
      if let retired, let beside = try? RegistryEnvelope(parsing: retired, limits: trust.limits) {
        _ = try? judge.judge(beside, bytes: retired)
      }
      return try? judge.unstated(envelope, bytes)
    }
    guard let document = try? judge.judge(envelope, bytes: bytes) else { return nil }
    // Beside a retired one, time alone decides, as it does without any.
    return document.statement == nil || self.standing.vouches(for: document) ? document : nil
  }

  /// A document without a statement.
  private func unstated(
    _ envelope: RegistryEnvelope, _ bytes: [UInt8]
  ) throws(RegistryError) -> AcceptedDocument {
    if let held = standing.statement {
      guard held.isRetired else { throw .statementStripped }
    } else if trust.requiresStatement || trust.minimum != nil && origin != .stored {
      throw .statementRequired
    }
    guard let key = trust.format1Key else { throw .noFormat1Key }
    let payload = try envelope.verifiedPayload(by: key)
    return AcceptedDocument(
      bytes: bytes, payloadDigest: hex(trust.crypto.sha256(envelope.canonicalPayload)),
      registry: try Registry(payload: payload, settings: standing.statement?.hosts ?? []),
      statement: nil, removed: Set(standing.statement?.removed ?? []),
      retiredBytes: standing.statement == nil ? nil : standing.statementBytes,
      newestDate: AcceptedDocument.newestDate(of: payload))
  }

  private func read(
    _ json: JSONValue, _ envelope: RegistryEnvelope, by keys: KeySet
  ) throws(RegistryError) -> Statement {
    do throws(DocumentFault) {
      guard let json = json.objectValue else { throw .member("statement") }
      let signatures = try DocumentSignature.list(
        envelope.document["statementSignatures"], "statementSignatures")
      let signed = DocumentSignature.Domain.statement.bytes(over: json)
      let (role, signers): (KeyRole, DocumentFault.Signers) =
        Statement.saysRetired(json)
        ? (keys.root, .root(epoch: keys.epoch)) : (keys.online, .onlineKeys(epoch: keys.epoch))
      guard role.isMet(by: signatures, over: signed) else {
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

  /// What an app ships keeps out old documents that come in. What this client believed before is stored, and
  /// stays: an app that is updated while its registry cannot be reached would have nothing to start with. And
  /// within the epoch of a statement that is believed the numbers count alone, so that an `issued` that was
  /// ahead when the app was built holds up nothing: nobody gains by the step, since he could as well have
  /// kept the client where it was. An epoch before the minimum's is over, whatever was believed of it.
  private func checkMinimum(of statement: Statement) throws(RegistryError) {
    guard let minimum = trust.minimum, origin != .stored else { return }
    guard RegistryMinimum(statement) < minimum else { return }
    let epoch = statement.number.epoch
    if epoch >= minimum.epoch, epoch == standing.statement?.number.epoch { return }
    throw .olderThanShipped(minimum)
  }

  private func checkTime(of statement: Statement, under keys: KeySet) throws(RegistryError) {
    let held = standing.statement
    // A retired statement that is believed may stand in the document for ever.
    let isKnown = held?.number == statement.number
    guard origin == .fetched, !(isKnown && statement.isRetired) else { return }
    // What claims to be signed after the end of its key set was not signed by its rules, whatever the
    // clock here says. No other statement's time counts: it could hold up the one that mends it.
    if let end = keys.expires, keys.isExpired(at: max(clock, statement.issued)) {
      throw .keySetExpired(epoch: keys.epoch, at: end)
    }
    guard !statement.isExpired(at: clock) else { throw .statementExpired(at: statement.expires) }
  }

  private mutating func remember(_ statement: Statement, _ bytes: [UInt8]) {
    let held = standing.statement
    beginsEpoch = held?.number.epoch != statement.number.epoch
    if beginsEpoch { (standing.enforced, standing.fork) = ([], nil) }
    standing.fork = fork(by: statement) ?? standing.fork
    standing.id = StatementID(of: statement, crypto: trust.crypto)
    // Of copies of one statement the first stays: a later one may have lost signatures on its way, and what
    // a withdrawn key signed alone is not vouched for any more. A retired one stands in many documents.
    if let held, held.json == statement.json, !statement.isRetired { return }
    standing.enforced.formUnion(statement.hosts.filter(\.enforces).map(\.pattern))
    standing.statement = statement
    standing.statementBytes = bytes
  }

  private func fork(by statement: Statement) -> RegistryFork? {
    standing.fork(
      by: StatementID(of: statement, crypto: trust.crypto), following: statement.previous)
  }
}
