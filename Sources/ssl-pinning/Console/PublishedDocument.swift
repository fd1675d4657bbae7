import CanonicalJSON
import Pinning
import PinningPlatform
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

  /// The statement's name for the registry, not to be believed before ``check(format1Key:onlineKeys:chain:)``.
  private var registry: String { json["statement"]?.objectValue?["registry"]?.stringValue ?? "" }

  /// Refuses what other keys made, or what was changed since; what is expired will do.
  ///
  /// - Parameters:
  ///   - format1Key: must have signed the payload.
  ///   - onlineKeys: those that sign now; none where no statement is made.
  ///   - chain: key sets that the operator has from elsewhere. Those in a document anybody can make up:
  ///     without a chain, each of `onlineKeys` must have signed the statement.
  func check(
    format1Key: SigningKey?, onlineKeys: [TrustSigningKey] = [], chain: KeySetList? = nil
  ) throws(CommandFailure) {
    do {
      let bytes = JSONValue.object(json).canonicalBytes
      let key = try format1Key.map { try VerificationKey(bytes: $0.publicKeyDER) }
      if let key { _ = try RegistryEnvelope(parsing: bytes).verifiedPayload(by: key) }
      guard hasStatement, !onlineKeys.isEmpty else {
        guard key != nil else { throw RegistryError.noFormat1Key }
        return
      }
      let given = try KeyRole(keys: onlineKeys.map(\.roleKey), threshold: onlineKeys.count)
      let own = try json["keySets"].map { try KeySetList($0) }
      var shipped = own?.sets.first?.keySet.root ?? given
      if let chain {
        guard chain.goesOn(from: own) else { throw DocumentFault.conflict }
        // Before the first key set the keys that the app ships sign.
        if own == nil, let format1Key {
          shipped = try KeyRole(keys: [format1Key.trustKey.roleKey], threshold: 1)
        }
      }
      let trust = RegistryTrust(
        registry: registry, shipped: shipped, format1Key: key, requiresStatement: true,
        crypto: PlatformRegistryCrypto())
      let believed = try TrustedRegistry(bundled: bytes, under: trust, at: 0)
      guard chain == nil, let statement = believed.statement else { return }
      let signatures = try DocumentSignature.list(
        json["statementSignatures"], "statementSignatures")
      guard given.isMet(by: signatures, over: statement.signedBytes) else {
        throw RegistryError.invalidStatement(
          .notSigned(by: .onlineKeys(epoch: statement.number.epoch)))
      }
    } catch {
      // Hints for readers of a registry are none for its publisher.
      let cause = "\(error)".components(separatedBy: "; hint: ")[0]
      let hint =
        onlineKeys.isEmpty
        ? "an edited payload is signed if it is given alone, {\"keys\": …}"
        : "give an edited payload alone, {\"keys\": …}, and with --previous the document as it was"
          + " published; --key-sets where its keys are not these"
      throw .no("\(place) is not as these keys signed it: \(cause); hint: \(hint)")
    }
  }

  /// The hosts that it lists.
  func patterns(under statement: Statement?) -> Set<HostPattern> {
    guard let payload = json["payload"]?.objectValue else { return [] }
    return (try? Registry(payload: payload, settings: statement?.hosts ?? []))?.patterns ?? []
  }
}
