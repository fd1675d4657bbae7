import CanonicalJSON
import Pinning
import TLSTools

/// A statement that is about to be signed. Says no where every client would refuse it.
struct StatementPlan {
  /// The members that an operator sets.
  static let settings = ["hosts", "denied", "removed"]
  /// The members of one of its hosts.
  static let hostSettings = ["domainName", "ca", "match", "enforce"]

  let registry: String
  /// The chain; `nil` where the keys that the app ships sign statements themselves.
  let keySets: KeySetList?
  /// The statement published last.
  let last: Statement?
  /// Members that take the place of what the last statement says.
  let settings: JSONObject
  /// `nil` for the next.
  let version: Int64?
  /// Unix time in seconds.
  let issued: Int64
  /// In seconds.
  let lifetime: Int64
  let isRetired: Bool

  /// Refuses keys whose signatures would not be enough.
  func check(
    _ onlineKeys: [(path: String, key: TrustSigningKey)], format1Key: SigningKey?
  ) throws(CommandFailure) {
    if isRetired, format1Key == nil {
      throw .usage("--retired goes back to format 1, which --key signs")
    }
    var seen: Set<SPKIPin> = []
    for (path, key) in onlineKeys where !seen.insert(key.roleKey.id).inserted {
      throw .usage("\(path) is given twice: a key that signs twice makes clients refuse it")
    }
    guard let keySets, let newest = keySets.newest?.keySet else { return }
    if let shortage = keySets.shortages.first {
      throw .no("\(shortage); hint: keys sign-set adds the missing ones")
    }
    let role = newest.online
    for (path, key) in onlineKeys where !role.keys.contains(where: { $0.id == key.roleKey.id }) {
      throw .no("\(path) is no online key of key set \(newest.epoch)")
    }
    guard onlineKeys.count >= role.threshold else {
      throw .no(
        "key set \(newest.epoch) asks for \(role.threshold) online keys, and"
          + " \(onlineKeys.count) sign")
    }
    guard !newest.isExpired(at: issued) else {
      throw .no("key set \(newest.epoch) is expired; hint: keys sign-set makes the next")
    }
  }

  /// The document to sign. A date ahead must not end pins that count today; a pin whose time is over ends
  /// as its `expire` says, and signing goes on: a list that nobody signs any more ends for all hosts.
  ///
  /// - Parameter clock: Unix time in seconds.
  func document(
    of payload: JSONObject, at clock: Int64
  ) throws(CommandFailure) -> RegistryDocument {
    let terms = try terms()
    for key in (try? Registry(payload: payload, settings: terms.hosts))?.keys ?? [] {
      guard let end = key.expires, end < terms.issued else { continue }
      guard clock <= end else {
        Console.say("warning: a pin of \(key.pattern) is over since \(dateText(end))")
        continue
      }
      throw .no(
        "the pin of \(key.pattern) expires on \(dateText(end)), before its statement is issued"
          + " on \(dateText(terms.issued)): it would end at once; hint: a later expire, or an"
          + " earlier --issued, or leave the entry out")
    }
    return RegistryDocument(
      registry: registry, payload: payload, terms: terms,
      keySets: keySets?.json.arrayValue ?? [])
  }

  private func terms() throws(CommandFailure) -> RegistryDocument.Terms {
    // Read back as strictly as clients read it: what they would refuse is refused here.
    var json = Statement(
      registry: registry, number: try number(), issued: issued, expires: issued + lifetime,
      payloadDigest: [UInt8](repeating: 0, count: 32), isRetired: isRetired
    ).json
    for name in Self.settings {
      if let value = settings[name] ?? last?.json[name] { json[name] = value }
    }
    let statement: Statement
    do throws(DocumentFault) { statement = try Statement(json, registry: registry) } catch {
      throw .no("the statement cannot be: \(error)")
    }
    if isRetired, !statement.hosts.isEmpty {
      Console.say("warning: hosts stay in force although retired; hint: --statement, \"hosts\": []")
    }
    return RegistryDocument.Terms(
      number: statement.number, issued: issued, expires: statement.expires,
      hosts: statement.hosts, denied: statement.denied, removed: statement.removed,
      isRetired: isRetired)
  }

  private func number() throws(CommandFailure) -> RegistryStamp.Version {
    let epoch = keySets?.newest?.keySet.epoch ?? 0
    guard let last = last?.number else { return .init(epoch: epoch, version: version ?? 1) }
    guard epoch >= last.epoch else {
      throw .no(
        "the statement published last is of epoch \(last.epoch), and the newest key set is"
          + " \(epoch); hint: --key-sets")
    }
    guard epoch == last.epoch else { return .init(epoch: epoch, version: version ?? 1) }
    let next = version ?? last.version + 1
    guard next > last.version else {
      throw .no("version \(next) is not above \(last.version), published last: clients refuse it")
    }
    guard next <= JSONNumber.greatestInteger else {
      throw .no("no version is left in epoch \(epoch); hint: keys sign-set begins a new epoch")
    }
    return .init(epoch: epoch, version: next)
  }
}
