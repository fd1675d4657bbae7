import CanonicalJSON

/// The keys that count in one epoch of a registry: the root role signs key sets, the online role signs
/// statements.
///
///     { "type": "keyset", "registry": "example.json", "epoch": 1,
///       "root": { "keys": [ { "alg": "EdDSA", "spki": "…" } ], "threshold": 1 },
///       "online": { "keys": [ … ], "threshold": 1 }, "expires": 1900000000 }
///
/// - Without `expires` a set never expires, so that a forgotten offline key locks nobody out.
/// - Unknown members are kept, and the signatures cover them.
public struct KeySet: Sendable {
  /// The registry that it is for.
  public let registry: String
  /// Its place in the chain; 0 is the set that the app ships.
  public let epoch: Int64
  /// Signs key sets.
  public let root: KeyRole
  /// Signs statements.
  public let online: KeyRole
  /// Unix time in seconds from which nothing new is accepted under the set; `nil` means never.
  public let expires: Int64?
  /// The set as received, or as published.
  public let json: JSONObject

  /// A key set to publish, or the one that the app ships.
  public init(
    registry: String, epoch: Int64, root: KeyRole, online: KeyRole, expires: Int64? = nil
  ) {
    (self.registry, self.epoch, self.root, self.online) = (registry, epoch, root, online)
    self.expires = expires
    var json: JSONObject = [
      "type": .string(Self.type), "registry": .string(registry),
      "epoch": JSONNumber(exactly: epoch).map(JSONValue.number) ?? .null,
      "root": root.json, "online": online.json,
    ]
    json["expires"] = expires.flatMap(JSONNumber.init(exactly:)).map(JSONValue.number)
    self.json = json
  }

  /// Reads a key set of this registry and epoch; the chain checks its signatures.
  package init(
    _ json: JSONObject, registry: String, epoch: Int64, crypto: some RegistryCrypto
  ) throws(DocumentFault) {
    try Self.checkName(of: json, registry: registry, epoch: epoch)
    self.registry = registry
    self.epoch = epoch
    root = try KeyRole(json["root"], "root", crypto: crypto)
    online = try KeyRole(json["online"], "online", crypto: crypto)
    expires = json["expires"] == nil ? nil : try json.requireInteger("expires")
    let unknown = try json.criticalMembers(beside: Self.baseMembers)
    guard unknown.isEmpty else { throw .unknownCritical(unknown) }
    self.json = json
  }

  /// Whether it says that it is this registry's key set of this epoch.
  static func checkName(
    of json: JSONObject, registry: String, epoch: Int64
  ) throws(DocumentFault) {
    try json.requireType(type)
    try json.requireRegistry(registry)
    let found = try json.requireInteger("epoch")
    guard found == epoch else { throw .epoch(found, expected: epoch) }
  }

  private static let type = "keyset"
  private static let baseMembers: Set = ["type", "registry", "epoch", "root", "online", "expires"]

  /// What the root keys sign.
  public var signedBytes: [UInt8] { DocumentSignature.Domain.keySet.bytes(over: json) }

  /// Whether the set is expired at `now` (Unix seconds); the second of the expiry itself counts.
  package func isExpired(at now: Int64) -> Bool { expires.map { now >= $0 } ?? false }

  /// The entry of `keySets`: the set and its signatures.
  public func entry(signedBy signatures: [DocumentSignature]) -> JSONValue {
    .object(["keySet": .object(json), "signatures": .array(signatures.map(\.json))])
  }
}

/// Keys, and how many of them must sign: `{"keys": […], "threshold": 2}`.
///
/// - Distinct keys count, not signatures. A duplicate key, and a threshold of zero or above the number of
///   keys, are refused.
/// - `also` has keys with algorithms that are too new for some clients, and a threshold of its own. A client
///   that knows all of their algorithms requires that threshold, too, of what comes in; others ignore it. So a
///   quantum-resistant key counts with the first client that knows its algorithm, and locks no older one out
///   (ADR 12). What a client believed before it knew the algorithm stays believed.
public struct KeyRole: Sendable {
  /// The keys; no two have the same id.
  public let keys: [RoleKey]
  /// How many of them must sign; at least 1, at most all.
  public let threshold: Int
  /// The keys that must sign in addition, if this client knows their algorithms.
  public let also: Also?

  /// Keys that must sign in addition to a role's own.
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
  ///
  /// - Parameter wasBelieved: whether it is read back from a stored state. Then `also` is not asked: an earlier version of the
  ///   app, which did not know the algorithms, may have believed a copy without those signatures, or with false ones that
  ///   it could not check. Whoever hands out documents decides that, without any key. If the state did not count, the
  ///   update of the app would begin anew, and he could hand out any older document then.
  package func isMet(
    by signatures: [DocumentSignature], over message: [UInt8], wasBelieved: Bool = false
  ) -> Bool {
    quorums.prefix(wasBelieved ? 1 : 2).allSatisfy { keys, threshold in
      Self.count(keys, upTo: threshold, signatures, over: message) >= threshold
    }
  }

  /// What is wrong if ``isMet(by:over:)`` is false.
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

  /// The groups that this client can count: first the role's own keys, then `also` if it knows the algorithm of each
  /// key there; with some unknown it could not tell whether enough had signed.
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
      // There is one signature per key id; reading the list has checked that.
      guard let verifier = key.verifier,
        let own = signatures.first(where: { $0.keyID.utf8.elementsEqual(key.writtenID) }),
        let signature = own.signature, verifier.isValid(signature: signature, over: message)
      else { continue }
      valid += 1
    }
    return valid
  }

  /// Whether a signature is one of the role's, or may be to a client that knows its key's algorithm.
  func keeps(_ signature: DocumentSignature, over message: [UInt8]) -> Bool {
    guard let bytes = signature.signature,
      let key = (keys + (also?.keys ?? [])).first(where: {
        signature.keyID.utf8.elementsEqual($0.writtenID)
      })
    else { return false }
    guard let verifier = key.verifier else { return bytes.count <= Self.longestUnknown }
    return verifier.isValid(signature: bytes, over: message)
  }

  /// The most bytes of a signature that this client cannot check: more than the longest of FIPS 205, 49 856.
  private static let longestUnknown = 65_536

  /// Whether both require the same keys and threshold; `also` may differ, since one may be newer.
  func demandsTheSame(as other: KeyRole) -> Bool {
    threshold == other.threshold && Set(keys.map(\.id)) == Set(other.keys.map(\.id))
  }
}

/// A key of a role: `{"alg": "ES256", "spki": "<base64 of the DER>"}`.
///
/// - The entry fixes the algorithm; the id is the SHA-256 of the SubjectPublicKeyInfo.
/// - A key with an unknown algorithm verifies nothing, but is no fault of the key set: newer clients may know
///   it. A known algorithm with a key of another type is a fault.
public struct RoleKey: Sendable {
  /// The algorithm as written.
  public let algorithm: String
  /// SubjectPublicKeyInfo in DER.
  public let spki: [UInt8]
  /// SHA-256 of ``spki``.
  public let id: SPKIPin
  /// ``id`` in base64, as signatures write it. Bytes, since texts are equal to Swift that are not the same: `K` and U+212A.
  let writtenID: [UInt8]

  /// `nil` for an unknown algorithm.
  let verifier: (any SignatureVerifier)?

  /// A key.
  ///
  /// - Throws: ``DocumentFault/unusableKey(_:)``.
  public init(
    algorithm: String, spki: [UInt8], crypto: some RegistryCrypto
  ) throws(DocumentFault) {
    guard let id = SPKIPin(digest: crypto.sha256(spki)) else { throw .member("spki") }
    (self.algorithm, self.spki, self.id) = (algorithm, spki, id)
    writtenID = [UInt8](id.base64.utf8)
    guard let known = SignatureAlgorithm(rawValue: algorithm) else {
      verifier = nil
      return
    }
    guard let verifier = crypto.verifier(known, spki: spki) else { throw .unusableKey(id) }
    self.verifier = verifier
  }

  init(_ json: JSONValue, crypto: some RegistryCrypto) throws(DocumentFault) {
    guard let algorithm = json.objectValue?["alg"]?.stringValue else { throw .member("alg") }
    guard let text = json.objectValue?["spki"]?.stringValue,
      let spki = StrictBase64.decode(text), !spki.isEmpty
    else { throw .member("spki") }
    try self.init(algorithm: algorithm, spki: spki, crypto: crypto)
  }

  var json: JSONValue {
    .object(["alg": .string(algorithm), "spki": .string(StrictBase64.encode(spki))])
  }
}
