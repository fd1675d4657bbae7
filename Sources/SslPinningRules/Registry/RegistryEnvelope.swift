import CanonicalJSON

/// A registry document as received: parsed strictly, but not verified.
///
///     { "payload": { "keys": [ … ] }, "signature": "<base64>", … }
///
/// - The signature is checked over the canonical form (RFC 8785) of the payload *as received*, including
///   unknown members; nothing is decoded from the payload before that.
/// - Members beside the payload are kept: format 2 puts its statement, the statement's signatures and the
///   key sets there, and format-1 clients ignore them.
public struct RegistryEnvelope: Sendable {
  /// The canonical form of the payload: the bytes that are signed.
  public let canonicalPayload: [UInt8]
  /// The signature over ``canonicalPayload``; empty if a document with a statement has none.
  public let signature: [UInt8]

  /// Must not be used before a signature over it was verified.
  let payload: JSONView
  private let whole: JSONView

  /// Parses a document.
  ///
  /// - Throws: ``RegistryError``, never ``RegistryError/badSignature``.
  public init(
    parsing bytes: [UInt8], limits: RegistryLimits = .standard
  ) throws(RegistryError) {
    guard bytes.count <= limits.maximumBytes else { throw .tooLarge(limit: limits.maximumBytes) }
    do throws(JSONError) { whole = try JSONView(parsing: bytes) } catch { throw .malformed(error) }
    guard let payload = whole["payload"], payload.isObject else { throw .missingMember("payload") }
    // Beside a statement the format-1 signature may be anything: it is not used.
    let isFormat2 = whole["statement"] != nil
    guard let signatureText = whole["signature"]?.stringValue ?? (isFormat2 ? "" : nil) else {
      throw .missingMember("signature")
    }
    let signature = StrictBase64.decode(signatureText) ?? []
    if signature.isEmpty, !isFormat2 { throw .unreadableSignature }
    self.payload = payload
    self.signature = signature
    canonicalPayload = payload.canonicalBytes
  }

  /// Parses a document that was believed before.
  ///
  /// It was within the limit of its time, or of another process of the app. The present limit is for what comes in: a state that
  /// cannot be read again would make the next start a first start, which believes any older document. Whoever reads the state
  /// bounds it as a whole.
  init(believed bytes: [UInt8]) throws(RegistryError) {
    try self.init(parsing: bytes, limits: RegistryLimits(maximumBytes: bytes.count))
  }

  /// The whole document, including unknown members.
  public var document: JSONObject { whole.value.objectValue ?? [:] }

  /// A member beside the payload; not verified.
  func member(_ name: String) -> JSONValue? { whole[name]?.value }

  /// What is signed, and the signatures, in canonical form: all that is remembered of an older document. What stands beside that
  /// nobody signed. Whoever hands out documents could make it as long as he likes, and those of other vanished hosts would have no
  /// room.
  ///
  /// - Parameters:
  ///   - statement: the document's own, if it has one. Unless it is retired, the format-1 signature says nothing.
  ///   - role: who signed the statement. Of the signatures of others, whose keys may be those of an epoch to come, the first stay.
  func signedPart(_ statement: Statement? = nil, by role: KeyRole? = nil) -> [UInt8] {
    func member(_ name: String, _ value: [UInt8]) -> [UInt8] {
      [UInt8](",\"\(name)\":".utf8) + value
    }
    var text = [UInt8](#"{"payload":"#.utf8) + canonicalPayload
    if statement?.isRetired ?? true {
      text += member("signature", JSONValue.string(StrictBase64.encode(signature)).canonicalBytes)
    }
    if let statement, let role {
      let own = Set((role.keys + (role.also?.keys ?? [])).map(\.writtenID))
      func isOwn(_ signature: DocumentSignature) -> Bool {
        own.contains([UInt8](signature.keyID.utf8))
      }
      let entries = self.member("statementSignatures")
      let all = (try? DocumentSignature.list(entries, "statementSignatures")) ?? []
      let others = all.filter { !isOwn($0) && $0.isWithin(1024) }
      let kept =
        all.filter { isOwn($0) && $0.isWithin(8192) } + others.prefix(Self.mostOthers)
      text += member("statement", JSONValue.object(statement.json).canonicalBytes)
      text += member("statementSignatures", JSONValue.array(kept.map(\.json)).canonicalBytes)
    }
    return text + [UInt8(ascii: "}")]
  }

  private static let mostOthers = 16

  /// The payload, after its signature was verified.
  ///
  /// - Throws: ``RegistryError/badSignature``.
  public func verifiedPayload(
    by verifier: some SignatureVerifier
  ) throws(RegistryError) -> JSONView {
    guard verifier.isValid(signature: signature, over: canonicalPayload) else {
      throw .badSignature
    }
    return payload
  }
}

/// The part of a document that changes every day: `{"statement", "statementSignatures", "keySets"}`. The
/// client already has the payload, or fetches it by its digest.
///
/// - Nothing here is believed. The part is completed to a document, which is verified like any other by its
///   statement, whose digest binds the payload.
/// - A retired statement vouches for no payload, so it never comes as a part: its client needs the whole
///   document.
public struct StatementPart: Sendable {
  /// SHA-256 of the canonical payload that the statement is about, in lower-case hex.
  public let payloadDigest: String
  private let document: JSONObject

  /// Reads a part; `nil` if it is a whole document.
  ///
  /// - Throws: ``RegistryError/tooLarge(limit:)``, ``RegistryError/malformed(_:)`` and
  ///   ``RegistryError/missingMember(_:)``.
  public init?(
    parsing bytes: [UInt8], limits: RegistryLimits = .standard
  ) throws(RegistryError) {
    let value = try Self.value(bytes, limits)
    guard let document = value.objectValue else { throw .missingMember("statement") }
    if document["payload"] != nil { return nil }
    guard let statement = document["statement"]?.objectValue, !Statement.saysRetired(statement)
    else { throw .missingMember("statement") }
    let digest: [UInt8]
    do throws(DocumentFault) { digest = try statement.requireDigest("payloadDigest") } catch {
      throw .invalidStatement(error)
    }
    payloadDigest = hex(digest)
    self.document = document
  }

  fileprivate static func value(
    _ bytes: [UInt8], _ limits: RegistryLimits
  ) throws(RegistryError) -> JSONValue {
    guard bytes.count <= limits.maximumBytes else { throw .tooLarge(limit: limits.maximumBytes) }
    do throws(JSONError) { return try JSONValue(parsing: bytes) } catch { throw .malformed(error) }
  }

  /// The whole document of the part.
  ///
  /// - Parameters:
  ///   - payload: the payload with ``payloadDigest``, as received; `nil`: use the believed one.
  ///   - trusted: the believed registry, which has the key sets that the part leaves out, and maybe the payload.
  ///   - limits: sizes in bytes.
  /// - Returns: the document, still to be verified; `nil` if the believed payload has another digest.
  /// - Throws: ``RegistryError``.
  public func document(
    payload: [UInt8]? = nil, completedBy trusted: TrustedRegistry,
    limits: RegistryLimits = .standard
  ) throws(RegistryError) -> [UInt8]? {
    if let payload { return whole(try Self.value(payload, limits), trusted) }
    guard trusted.stamp.payloadDigest == payloadDigest else { return nil }
    return whole(try Self.payload(of: trusted), trusted)
  }

  /// Checks everything but the payload.
  ///
  /// - Parameters:
  ///   - trusted: the believed registry.
  ///   - trust: what the app ships.
  ///   - clock: Unix time in seconds.
  ///   - road: how the part arrived.
  /// - Returns: no refusal if only the payload remains to be checked. The registry has newer key sets at most.
  public func update(
    of trusted: TrustedRegistry, under trust: RegistryTrust, at clock: Int64,
    by road: TrustedRegistry.Road
  ) -> RegistryUpdate {
    // The payload is checked last. If it is not the believed one, an empty one takes its place. What the client itself adds has
    // no limit. Otherwise a thief's long list would hold up the part that ends it.
    let isBelieved = trusted.stamp.payloadDigest == payloadDigest
    let (bytes, envelope): ([UInt8], RegistryEnvelope)
    do throws(RegistryError) {
      bytes = whole(isBelieved ? try Self.payload(of: trusted) : .object([:]), trusted)
      envelope = try RegistryEnvelope(believed: bytes)
    } catch { return RegistryUpdate(registry: trusted, refusal: error) }
    let update = trusted.update(with: envelope, bytes, under: trust, at: clock, by: road)
    guard let refusal = update.refusal else {
      return RegistryUpdate(registry: trusted, refusal: nil)
    }
    return RegistryUpdate(
      registry: update.registry, refusal: refusal == .otherPayload ? nil : refusal)
  }

  private static func payload(of trusted: TrustedRegistry) throws(RegistryError) -> JSONValue? {
    try RegistryEnvelope(believed: trusted.document.bytes).payload.value
  }

  private func whole(_ payload: JSONValue?, _ trusted: TrustedRegistry) -> [UInt8] {
    var whole = JSONObject()
    whole["payload"] = payload
    for name in ["statement", "statementSignatures"] { whole[name] = document[name] }
    let known = trusted.standing.chain?.entries ?? []
    switch document["keySets"] {
    case nil: break
    case .array(let news):
      // The first entry says where the list begins; if it lies, the walk finds out and refuses.
      let first = news.first?.objectValue?["keySet"]?.objectValue?["epoch"]?.integerValue ?? 1
      let missing = Int(clamping: max(0, first - 1))
      whole["keySets"] = .array(known.prefix(missing) + news)
    case let other?: whole["keySets"] = other
    }
    return JSONValue.object(whole).canonicalBytes
  }
}
