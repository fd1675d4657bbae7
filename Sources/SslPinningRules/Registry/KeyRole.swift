import CanonicalJSON

/// So many of these keys must sign: `{"keys": […], "threshold": 2}`.
///
/// - Distinct keys count, never signatures. A key that stands twice, a threshold of zero and one
///   that all keys together cannot reach are refused.
/// - `also` names keys of an algorithm that is too new for some clients, with a threshold of their own. Who
///   knows the algorithms of all of them sees that threshold met, too; who does not goes by the others. So
///   a key that resists quantum computers counts from the first client on that knows it, and locks no
///   older one out (ADR 12).
public struct KeyRole: Sendable {
  /// The keys; no two have the same id.
  public let keys: [RoleKey]
  /// How many of them must sign; at least 1, at most all.
  public let threshold: Int
  /// Who must sign besides, as far as this client can tell.
  public let also: Also?

  /// Keys that must sign besides a role's own.
  public struct Also: Sendable {
    /// The keys; no two have the same id.
    public let keys: [RoleKey]
    /// How many of them must sign; at least 1, at most all.
    public let threshold: Int
  }

  /// A role.
  ///
  /// - Throws: ``DocumentFault/duplicateKey(_:)`` and ``DocumentFault/threshold(_:keys:)``.
  public init(keys: [RoleKey], threshold: Int) throws(DocumentFault) {
    try self.init(keys: keys, threshold: threshold, also: nil)
  }

  private init(keys: [RoleKey], threshold: Int, also: Also?) throws(DocumentFault) {
    try Self.check(keys, threshold, beside: also?.keys ?? [])
    self.keys = keys
    self.threshold = threshold
    self.also = also
  }

  private static func check(
    _ keys: [RoleKey], _ threshold: Int, beside others: [RoleKey] = []
  ) throws(DocumentFault) {
    var seen = Set(others.map(\.id))
    for key in keys {
      guard seen.insert(key.id).inserted else { throw .duplicateKey(key.id) }
    }
    guard (1...max(1, keys.count)).contains(threshold), !keys.isEmpty else {
      throw .threshold(Int64(threshold), keys: keys.count)
    }
  }

  init(_ json: JSONValue?, _ name: String, crypto: some RegistryCrypto) throws(DocumentFault) {
    let (keys, threshold) = try Self.read(json, name, crypto: crypto)
    var also: Also?
    if let json = json?.objectValue?["also"] {
      let (keys, threshold) = try Self.read(json, "also", crypto: crypto)
      guard json.objectValue?["also"] == nil else { throw .member("also") }
      try Self.check(keys, threshold)
      also = Also(keys: keys, threshold: threshold)
    }
    try self.init(keys: keys, threshold: threshold, also: also)
  }

  private static func read(
    _ json: JSONValue?, _ name: String, crypto: some RegistryCrypto
  ) throws(DocumentFault) -> (keys: [RoleKey], threshold: Int) {
    guard let role = json?.objectValue, let entries = role["keys"]?.arrayValue else {
      throw .member(name)
    }
    guard let threshold = role["threshold"]?.integerValue else { throw .member("threshold") }
    var keys: [RoleKey] = []
    for entry in entries { keys.append(try RoleKey(entry, crypto: crypto)) }
    guard let count = Int(exactly: threshold) else {
      throw .threshold(threshold, keys: keys.count)
    }
    return (keys, count)
  }

  var json: JSONValue {
    func quorum(_ keys: [RoleKey], _ threshold: Int) -> JSONObject {
      [
        "keys": .array(keys.map(\.json)),
        "threshold": JSONNumber(exactly: Int64(threshold)).map(JSONValue.number) ?? .null,
      ]
    }
    var json = quorum(keys, threshold)
    json["also"] = also.map { .object(quorum($0.keys, $0.threshold)) }
    return .object(json)
  }

  /// Whether enough of the keys signed `message`.
  package func isMet(by signatures: [DocumentSignature], over message: [UInt8]) -> Bool {
    quorums.allSatisfy { keys, threshold in
      Self.count(keys, upTo: threshold, signatures, over: message) >= threshold
    }
  }

  /// What is wrong where ``isMet(by:over:)`` says no.
  func fault(
    of signatures: [DocumentSignature], over message: [UInt8], as signers: DocumentFault.Signers
  ) -> DocumentFault {
    for (keys, threshold) in quorums {
      let count = Self.count(keys, upTo: threshold, signatures, over: message)
      guard count < threshold else { continue }
      return count == 0
        ? .notSigned(by: signers)
        : .tooFewSignatures(of: signers, count: count, threshold: threshold)
    }
    return .notSigned(by: signers)
  }

  /// Those that this client can count: the role's own keys, and the others if it knows the algorithm of
  /// each. Of some it could not tell whether the rest had signed.
  package var quorums: [(keys: [RoleKey], threshold: Int)] {
    guard let also, also.keys.allSatisfy({ $0.verifier != nil }) else {
      return [(keys, threshold)]
    }
    return [(keys, threshold), (also.keys, also.threshold)]
  }

  /// How many of the keys signed, counted up to the threshold.
  private static func count(
    _ keys: [RoleKey], upTo threshold: Int, _ signatures: [DocumentSignature],
    over message: [UInt8]
  ) -> Int {
    var valid = 0
    for key in keys where valid < threshold {
      // One signature per key id: the list was read so.
      guard let verifier = key.verifier,
        let own = signatures.first(where: { $0.keyID.utf8.elementsEqual(key.id.base64.utf8) }),
        let signature = own.signature, verifier.isValid(signature: signature, over: message)
      else { continue }
      valid += 1
    }
    return valid
  }

  /// Whether both ask for the same keys in the same number; what one asks for besides may be newer than
  /// the other.
  func demandsTheSame(as other: KeyRole) -> Bool {
    threshold == other.threshold && Set(keys.map(\.id)) == Set(other.keys.map(\.id))
  }
}
