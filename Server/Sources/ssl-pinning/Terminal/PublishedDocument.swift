import CanonicalJSON
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// A document that `sign` goes on from: its input, `--previous`, or what `--out` takes the place of.
///
/// Published files lie where others write, too: in a web root, on a CDN, under a sync job. Signed again
/// unseen, whatever was put there would be ours. So such a document must be the work of the keys at hand.
struct PublishedDocument {
  let json: JSONObject
  /// What messages call it.
  let place: String

  /// `nil` for a bare payload: whoever passes one answers for what is in it.
  init?(_ json: JSONValue, _ place: String) {
    guard let json = json.objectValue, json["payload"] != nil else { return nil }
    (self.json, self.place) = (json, place)
  }

  var hasStatement: Bool { json["statement"] != nil }

  /// Whether its statement says that the registry goes back to format 1, whoever signed it.
  var isRetired: Bool { json["statement"]?.objectValue?["retired"] == .bool(true) }

  /// The statement's name for the registry, not to be believed before ``check(format1Key:onlineKeys:chain:)``.
  var registry: String? { json["statement"]?.objectValue?["registry"]?.stringValue }

  /// The number of its statement, without asking who signed it.
  var number: RegistryStamp.Version? {
    get throws(CommandFailure) { try statement(of: registry ?? "")?.number }
  }

  /// The document as it is written.
  private var bytes: [UInt8] { JSONValue.object(json).canonicalBytes + [UInt8(ascii: "\n")] }

  /// Its statement, without asking who signed it.
  func statement(of registry: String) throws(CommandFailure) -> Statement? {
    do throws(DocumentFault) {
      return try json["statement"].map { (json) throws(DocumentFault) in
        guard let json = json.objectValue else { throw .member("statement") }
        return try Statement(json, registry: registry)
      }
    } catch { throw .no("the statement of \(place) cannot be gone on from: \(error)") }
  }

  /// Refuses what other keys made, or what was changed since; what is expired will do.
  ///
  /// - Parameters:
  ///   - format1Key: must have signed the payload.
  ///   - onlineKeys: those that sign now; none if no statement is made. Without a chain each of them must
  ///     have signed the statement.
  ///   - chain: key sets that the operator vouches for. Those in a document anybody can make up.
  func check(
    format1Key: SigningKey?, onlineKeys: [TrustSigningKey] = [], chain: KeySetList? = nil
  ) throws(CommandFailure) {
    do {
      let key = try format1Key.map { try VerificationKey(bytes: $0.publicKeyDER) }
      if let key { _ = try RegistryEnvelope(parsing: bytes).verifiedPayload(by: key) }
      guard hasStatement, !onlineKeys.isEmpty else {
        guard key != nil else { throw RegistryError.noFormat1Key }
        return
      }
      let own = try json["keySets"].map { try KeySetList($0) }
      if let own {
        guard let chain, chain.goesOn(from: own) else { throw DocumentFault.conflict }
      }
      let trust = try trust(format1Key: format1Key, onlineKeys: onlineKeys, chain: chain)
      _ = try TrustedRegistry(bundled: bytes, under: trust, at: 0)
    } catch {
      let cause = Self.cause(error)
      let hint =
        onlineKeys.isEmpty
        ? "an edited payload is signed if it is given alone, {\"keys\": …}"
        : "give an edited payload alone, {\"keys\": …}, and with --previous the document as it was"
          + " published; --key-sets where its keys are not these"
      throw .no("\(place) is not as these keys signed it: \(cause); hint: \(hint)")
    }
  }

  /// Refuses a document that clients would refuse: those that begin with it, and those that believe `last`,
  /// which was checked.
  ///
  /// - Parameter clock: Unix time in seconds.
  func checkAsClients(
    after last: PublishedDocument?, format1Key: SigningKey?, onlineKeys: [TrustSigningKey],
    chain: KeySetList?, at clock: Int64
  ) throws(CommandFailure) {
    do {
      let first = try trust(format1Key: format1Key, onlineKeys: onlineKeys, chain: chain)
      _ = try TrustedRegistry(accepting: bytes, under: first, at: clock)
      guard let last else { return }
      let trust = try last.trust(format1Key: format1Key, onlineKeys: onlineKeys, chain: chain)
      let held = try TrustedRegistry(bundled: last.bytes, under: trust, at: clock)
      if let refusal = held.update(with: bytes, under: trust, at: clock).refusal { throw refusal }
    } catch {
      throw .no(
        "clients would refuse \(place): \(Self.cause(error)); hint: nothing was written, so what they have"
          + " stays in force")
    }
  }

  /// Hints for readers of a registry are none for its publisher.
  private static func cause(_ error: any Error) -> String {
    "\(error)".components(separatedBy: "; hint: ")[0]
  }

  /// What an app may ship that believes the document.
  private func trust(
    format1Key: SigningKey?, onlineKeys: [TrustSigningKey], chain: KeySetList?
  ) throws -> RegistryTrust {
    // Its own set 1 counts only as far as the operator's chain has it: anybody can make one up.
    let own = try json["keySets"].map { try KeySetList($0) }
    let isVouchedFor = chain?.goesOn(from: own) == true
    let shipped =
      try (isVouchedFor ? own?.sets.first?.keySet.root : nil)
      ?? Self.shipped(before: chain, format1Key: format1Key, onlineKeys: onlineKeys)
    return RegistryTrust(
      registry: registry ?? "", shipped: shipped,
      format1Key: try format1Key.map { try VerificationKey(bytes: $0.publicKeyDER) },
      requiresStatement: hasStatement, crypto: PlatformRegistryCrypto())
  }

  /// The keys that an app may ship and that sign before the first key set: with a chain the key of format 1
  /// and the root keys of set 1, any one of which the operator's chain vouches for.
  private static func shipped(
    before chain: KeySetList?, format1Key: SigningKey?, onlineKeys: [TrustSigningKey]
  ) throws(DocumentFault) -> KeyRole {
    guard chain != nil || onlineKeys.isEmpty else {
      return try KeyRole(keys: onlineKeys.map(\.roleKey), threshold: onlineKeys.count)
    }
    var keys = chain?.sets.first?.keySet.root.keys ?? []
    if let key = format1Key?.trustKey.roleKey, !keys.contains(where: { $0.id == key.id }) {
      keys.append(key)
    }
    return try KeyRole(keys: keys, threshold: 1)
  }

  /// What it lists, and the statement that is in force there.
  func list(under statement: Statement?) -> StatedList? {
    guard let payload = json["payload"]?.objectValue else { return nil }
    return StatedList(payload, under: statement)
  }
}
