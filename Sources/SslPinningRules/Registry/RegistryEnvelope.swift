import CanonicalJSON

/// A registry document as it came: parsed strictly, nothing believed yet.
///
///     { "payload": { "keys": [ … ] }, "signature": "<base64>", … }
///
/// - The signature is checked over the canonical form (RFC 8785) of the payload *as received*,
///   members that nobody here knows included; nothing is decoded from the payload before that.
/// - Members beside the payload are kept: format 2 puts its statement, the statement's signatures
///   and the key sets there, and format-1 clients never look at them.
public struct RegistryEnvelope: Sendable {
  /// The whole document, unknown members included.
  public let document: JSONObject
  /// The canonical form of the payload: the bytes that are signed.
  public let canonicalPayload: [UInt8]
  /// The signature over ``canonicalPayload``; empty where a document with a statement has none.
  public let signature: [UInt8]

  /// Not to be believed before a signature was found good over it.
  let payload: JSONObject

  /// Parses a document.
  ///
  /// - Throws: ``RegistryError``, never ``RegistryError/badSignature``.
  public init(
    parsing bytes: [UInt8], limits: RegistryLimits = .standard
  ) throws(RegistryError) {
    guard bytes.count <= limits.maximumBytes else { throw .tooLarge(limit: limits.maximumBytes) }
    let value: JSONValue
    do throws(JSONError) { value = try JSONValue(parsing: bytes) } catch { throw .malformed(error) }
    guard let document = value.objectValue else { throw .missingMember("payload") }
    guard let payloadValue = document["payload"], let payload = payloadValue.objectValue else {
      throw .missingMember("payload")
    }
    // Beside a statement the format-1 signature may be anything: it is not what is believed.
    let isFormat2 = document["statement"] != nil
    guard let signatureText = document["signature"]?.stringValue ?? (isFormat2 ? "" : nil) else {
      throw .missingMember("signature")
    }
    let signature = StrictBase64.decode(signatureText) ?? []
    if signature.isEmpty, !isFormat2 { throw .unreadableSignature }
    self.document = document
    self.payload = payload
    self.signature = signature
    canonicalPayload = payloadValue.canonicalBytes
  }

  /// The payload, once its signature was found good.
  ///
  /// - Throws: ``RegistryError/badSignature``.
  public func verifiedPayload(
    by verifier: some SignatureVerifier
  ) throws(RegistryError) -> JSONObject {
    guard verifier.isValid(signature: signature, over: canonicalPayload) else {
      throw .badSignature
    }
    return payload
  }
}

/// The part of a document that changes every day: `{"statement", "statementSignatures", "keySets"}`. The
/// payload is at hand already, or stands at its digest.
///
/// - Nothing here is believed. The part is completed to a document, and that one is judged like any other:
///   by its statement, whose digest binds the payload.
/// - A retired statement has no payload that it vouches for, so it is never met here: its client needs the
///   whole document.
public struct StatementPart: Sendable {
  /// SHA-256 of the canonical payload, in lower-case hex: what the statement says that it is about.
  public let payloadDigest: String
  private let document: JSONObject

  /// Reads a part; `nil` where it is a whole document.
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

  /// The document that the part belongs to.
  ///
  /// - Parameters:
  ///   - payload: what stands at ``payloadDigest``, as received; `nil`: the payload that is believed.
  ///   - trusted: what is believed: it has the key sets that the part leaves out, perhaps the payload.
  ///   - limits: sizes in bytes.
  /// - Returns: the document, to be judged; `nil` where the payload is not the one that is believed.
  /// - Throws: ``RegistryError``.
  public func document(
    payload: [UInt8]? = nil, completedBy trusted: TrustedRegistry,
    limits: RegistryLimits = .standard
  ) throws(RegistryError) -> [UInt8]? {
    if let payload { return whole(try Self.value(payload, limits), trusted) }
    guard trusted.stamp.payloadDigest == payloadDigest else { return nil }
    return whole(try Self.payload(of: trusted, limits), trusted)
  }

  /// What becomes of what is believed, whatever the part's payload is.
  ///
  /// - Parameters:
  ///   - trusted: what is believed.
  ///   - trust: what the app ships.
  ///   - clock: Unix time in seconds.
  ///   - road: who brought the part.
  /// - Returns: no refusal where the payload alone is left to be judged. The registry has no more than newer
  ///   key sets.
  public func update(
    of trusted: TrustedRegistry, under trust: RegistryTrust, at clock: Int64,
    by road: TrustedRegistry.Road
  ) -> RegistryUpdate {
    // The payload is the last that is looked at.
    let payload: JSONValue?
    do throws(RegistryError) { payload = try Self.payload(of: trusted, trust.limits) } catch {
      return RegistryUpdate(registry: trusted, refusal: error)
    }
    let update = trusted.update(with: whole(payload, trusted), under: trust, at: clock, by: road)
    guard let refusal = update.refusal else {
      return RegistryUpdate(registry: trusted, refusal: nil)
    }
    return RegistryUpdate(
      registry: update.registry, refusal: refusal == .otherPayload ? nil : refusal)
  }

  private static func payload(
    of trusted: TrustedRegistry, _ limits: RegistryLimits
  ) throws(RegistryError) -> JSONValue? {
    try RegistryEnvelope(parsing: trusted.document.bytes, limits: limits).document["payload"]
  }

  private func whole(_ payload: JSONValue?, _ trusted: TrustedRegistry) -> [UInt8] {
    var whole = JSONObject()
    whole["payload"] = payload
    for name in ["statement", "statementSignatures"] { whole[name] = document[name] }
    let known = trusted.standing.chain?.entries ?? []
    switch document["keySets"] {
    case nil: break
    case .array(let news):
      // The first says where the list begins; whatever it says, the walk compares or refuses.
      let first = news.first?.objectValue?["keySet"]?.objectValue?["epoch"]?.integerValue ?? 1
      let missing = Int(clamping: max(0, first - 1))
      whole["keySets"] = .array(known.prefix(missing) + news)
    case let other?: whole["keySets"] = other
    }
    return JSONValue.object(whole).canonicalBytes
  }
}
