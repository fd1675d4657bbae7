import CanonicalJSON

/// Whose signatures count in one epoch of a registry: the root role signs key sets, the online role
/// statements.
///
///     { "type": "keyset", "registry": "example.json", "epoch": 1,
///       "root": { "keys": [ { "alg": "EdDSA", "spki": "…" } ], "threshold": 1 },
///       "online": { "keys": [ … ], "threshold": 1 }, "expires": 1900000000 }
///
/// - Without `expires` a set never expires: a forgotten offline key locks nobody out.
/// - Members that nobody here knows are kept and covered by the signatures.
public struct KeySet: Sendable {
  /// The registry that it is for.
  public let registry: String
  /// Its place in the chain; 0 is what the app ships.
  public let epoch: Int64
  /// Signs key sets.
  public let root: KeyRole
  /// Signs statements.
  public let online: KeyRole
  /// Unix time in seconds from which on nothing new is accepted under the set; `nil` means never.
  public let expires: Int64?
  /// The set as received, or as it is published.
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

  /// Reads a key set of this registry and epoch; its signatures are the chain's to check.
  package init(
    _ json: JSONObject, registry: String, epoch: Int64, crypto: some RegistryCrypto
  ) throws(DocumentFault) {
    try json.requireType(Self.type)
    try json.requireRegistry(registry)
    let found = try json.requireInteger("epoch")
    guard found == epoch else { throw .epoch(found, expected: epoch) }
    self.registry = registry
    self.epoch = epoch
    root = try KeyRole(json["root"], "root", crypto: crypto)
    online = try KeyRole(json["online"], "online", crypto: crypto)
    expires = json["expires"] == nil ? nil : try json.requireInteger("expires")
    let unknown = try json.criticalMembers(beside: Self.baseMembers)
    guard unknown.isEmpty else { throw .unknownCritical(unknown) }
    self.json = json
  }

  static let type = "keyset"
  private static let baseMembers: Set = ["type", "registry", "epoch", "root", "online", "expires"]

  /// What the root keys sign.
  public var signedBytes: [UInt8] { DocumentSignature.Domain.keySet.bytes(over: json) }

  /// Whether the set is expired at `now` (Unix seconds); the second of the expiry itself counts.
  package func isExpired(at now: Int64) -> Bool { expires.map { now >= $0 } ?? false }

  /// The entry of `keySets`: the set and who signed it.
  public func entry(signedBy signatures: [DocumentSignature]) -> JSONValue {
    .object(["keySet": .object(json), "signatures": .array(signatures.map(\.json))])
  }
}
