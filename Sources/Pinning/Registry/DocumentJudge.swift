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
  /// Whether the document began a new epoch.
  private(set) var beginsEpoch = false
  /// For what was believed before, or ships with the app: then it may have expired meanwhile.
  private let mayBeExpired: Bool

  init(
    trust: RegistryTrust, clock: Int64, standing: TrustedRegistry.Standing = .init(),
    mayBeExpired: Bool = false
  ) {
    self.trust = trust
    self.clock = clock
    self.standing = standing
    self.mayBeExpired = mayBeExpired
  }

  /// Believes a document, or says why not.
  mutating func judge(
    _ envelope: RegistryEnvelope, bytes: [UInt8]
  ) throws(RegistryError) -> AcceptedDocument {
    var chain = standing.chain ?? KeySetChain(shipped: trust.shipped)
    let fault = envelope.document["keySets"].flatMap { chain.walk($0, under: trust) }
    standing.chain = chain
    guard let json = envelope.document["statement"] else { return try unstated(envelope, bytes) }
    if let fault { throw fault }
    let statement = try read(json, envelope, by: chain.newest)
    try checkNumber(of: statement)
    try checkTime(of: statement, under: chain.newest)
    let settings = statement.hosts
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
    let registry = try Registry(payload: payload, settings: settings)
    remember(statement, bytes)
    return AcceptedDocument(
      bytes: bytes, payloadDigest: hex(trust.crypto.sha256(envelope.canonicalPayload)),
      registry: registry, statement: statement.isRetired ? nil : statement)
  }

  /// Whether the online keys that count now signed the document's statement too. Documents of
  /// format 1 have none, and time alone decides about them.
  func isVouchedFor(_ document: AcceptedDocument) -> Bool {
    guard let statement = document.statement else { return true }
    guard let chain = standing.chain, let envelope = try? RegistryEnvelope(parsing: document.bytes),
      let signatures = try? DocumentSignature.list(
        envelope.document["statementSignatures"], "statementSignatures")
    else { return false }
    return chain.newest.online.isMet(by: signatures, over: statement.signedBytes)
  }

  /// A document without a statement.
  private func unstated(
    _ envelope: RegistryEnvelope, _ bytes: [UInt8]
  ) throws(RegistryError) -> AcceptedDocument {
    if let held = standing.statement {
      guard held.isRetired else { throw .statementStripped }
    } else if trust.requiresStatement {
      throw .statementRequired
    }
    guard let key = trust.format1Key else { throw .noFormat1Key }
    let payload = try envelope.verifiedPayload(by: key)
    return AcceptedDocument(
      bytes: bytes, payloadDigest: hex(trust.crypto.sha256(envelope.canonicalPayload)),
      registry: try Registry(payload: payload, settings: standing.statement?.hosts ?? []),
      statement: nil)
  }

  private func read(
    _ json: JSONValue, _ envelope: RegistryEnvelope, by keys: KeySet
  ) throws(RegistryError) -> Statement {
    do throws(DocumentFault) {
      guard let json = json.objectValue else { throw .member("statement") }
      let signatures = try DocumentSignature.list(
        envelope.document["statementSignatures"], "statementSignatures")
      guard
        keys.online.isMet(
          by: signatures, over: DocumentSignature.Domain.statement.bytes(over: json))
      else { throw .notSigned(by: "the online keys of epoch \(keys.epoch)") }
      let statement = try Statement(json, registry: trust.registry)
      guard statement.number.epoch == keys.epoch else {
        throw .epoch(statement.number.epoch, expected: keys.epoch)
      }
      return statement
    } catch { throw .invalidStatement(error) }
  }

  private func checkNumber(of statement: Statement) throws(RegistryError) {
    guard let held = standing.statement else { return }
    guard statement.number >= held.number else {
      throw .rolledBack(to: statement.number, from: held.number)
    }
    guard statement.number > held.number || statement.json == held.json else {
      throw .invalidStatement(.conflict)
    }
  }

  private func checkTime(of statement: Statement, under keys: KeySet) throws(RegistryError) {
    let held = standing.statement
    // A retired statement that is believed may stand in the document for ever.
    let isKnown = held?.number == statement.number
    guard !mayBeExpired, !(isKnown && statement.isRetired) else { return }
    let floor = held?.number.epoch == statement.number.epoch ? standing.issuedFloor : .min
    let now = max(clock, floor, statement.issued)
    if let end = keys.expires, keys.isExpired(at: now) {
      throw .keySetExpired(epoch: keys.epoch, at: end)
    }
    guard !statement.isExpired(at: now) else { throw .statementExpired(at: statement.expires) }
  }

  private mutating func remember(_ statement: Statement, _ bytes: [UInt8]) {
    let held = standing.statement
    beginsEpoch = held.map { $0.number.epoch != statement.number.epoch } ?? false
    if beginsEpoch {
      standing.issuedFloor = .min
      standing.enforced = []
    }
    standing.issuedFloor = max(standing.issuedFloor, statement.issued)
    standing.enforced.formUnion(statement.hosts.filter(\.enforces).map(\.pattern))
    standing.statement = statement
    standing.statementBytes = bytes
  }
}
