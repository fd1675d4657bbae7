import CanonicalJSON

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
