import CanonicalJSON

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
