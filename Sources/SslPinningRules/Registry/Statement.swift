import CanonicalJSON

/// What the online keys say of a registry, beside the payload that format-1 clients read:
///
///     { "type": "statement", "registry": "example.json", "epoch": 1, "version": 7,
///       "issued": 1800000000, "expires": 1807776000, "payloadDigest": "<base64 of SHA-256>",
///       "hosts": [ … ], "denied": [ "<pin>" ], "removed": [ "old.example.com" ] }
///
/// - Read strictly: a statement that can be read only in part is not read at all. The one before it
///   stays in force, so strictness locks nobody out.
/// - Members that nobody here knows are kept and covered by the signatures.
/// - With `"retired": true` the registry goes back to format 1: the payload is then the format-1
///   signature's to vouch for, and neither `payloadDigest` nor `expires` binds any more once the
///   statement is believed. Hosts and denied keys stay in force as it says. It is the strongest word
///   there is: the root keys sign it, not the online keys.
/// - Any other lives for ``longestLife`` at most: whoever steals an online key chooses no year.
/// - `critical` names members that must not be ignored.
public struct Statement: Sendable {
  /// The registry that it is for.
  public let registry: String
  /// Its number: the epoch of the key set whose online keys sign it, and the version within.
  public let number: RegistryStamp.Version
  /// Unix time in seconds.
  public let issued: Int64
  /// Unix time in seconds from which on it no longer counts.
  public let expires: Int64
  /// SHA-256 of the canonical payload.
  public let payloadDigest: [UInt8]
  /// CA pins and settings; no pattern stands twice.
  public let hosts: [HostSettings]
  /// Keys that are refused wherever they stand.
  public let denied: [SPKIPin]
  /// Hosts that may vanish.
  public let removed: [HostPattern]
  /// Whether the registry goes back to format 1.
  public let isRetired: Bool
  /// The statement that this one follows, where its publisher tells.
  public let previous: StatementID?
  /// Where else the document is served; they count while this statement is in force.
  public let mirrors: [RegistryMirror]
  /// The statement as received, or as it is published.
  public let json: JSONObject

  /// A statement to publish.
  public init(
    registry: String, number: RegistryStamp.Version, issued: Int64, expires: Int64,
    payloadDigest: [UInt8], hosts: [HostSettings] = [], denied: [SPKIPin] = [],
    removed: [HostPattern] = [], isRetired: Bool = false, previous: StatementID? = nil,
    mirrors: [RegistryMirror] = []
  ) {
    self.registry = registry
    self.number = number
    (self.issued, self.expires, self.payloadDigest) = (issued, expires, payloadDigest)
    (self.hosts, self.denied, self.removed) = (hosts, denied, removed)
    self.isRetired = isRetired
    self.previous = previous
    self.mirrors = mirrors
    func integer(_ value: Int64) -> JSONValue {
      JSONNumber(exactly: value).map(JSONValue.number) ?? .null
    }
    var json: JSONObject = [
      "type": .string(Self.type), "registry": .string(registry),
      "epoch": integer(number.epoch), "version": integer(number.version),
      "issued": integer(issued), "expires": integer(expires),
      "payloadDigest": .string(StrictBase64.encode(payloadDigest)),
      "hosts": .array(hosts.map(\.json)), "denied": .array(denied.map { .string($0.base64) }),
      "removed": .array(removed.map { .string($0.description) }),
    ]
    if isRetired { json["retired"] = .bool(true) }
    json["previous"] = previous?.json
    if !mirrors.isEmpty { json["mirrors"] = .array(mirrors.map { .string($0.description) }) }
    self.json = json
  }

  /// Reads a statement of this registry; its signatures are checked apart.
  package init(_ json: JSONObject, registry: String) throws(DocumentFault) {
    try json.requireType(Self.type)
    try json.requireRegistry(registry)
    self.registry = registry
    self.json = json
    number = RegistryStamp.Version(
      epoch: try json.requireInteger("epoch"), version: try json.requireInteger("version"))
    issued = try json.requireInteger("issued")
    expires = try json.requireInteger("expires")
    guard expires > issued else { throw .expiresBeforeIssue }
    payloadDigest = try json.requireDigest("payloadDigest")
    previous = try json["previous"].map { (json) throws(DocumentFault) in try StatementID(json) }
    mirrors = try RegistryMirror.list(json["mirrors"])
    var hosts: [HostSettings] = []
    for entry in try json.requireArray("hosts") { hosts.append(try HostSettings(entry)) }
    guard Set(hosts.map(\.pattern)).count == hosts.count else { throw .member("hosts") }
    self.hosts = hosts
    denied = try SPKIPin.list(json["denied"], "denied")
    var removed: [HostPattern] = []
    for entry in try json.requireArray("removed") {
      removed.append(try HostPattern(member: entry, "removed"))
    }
    self.removed = removed
    switch json["retired"] {
    case nil: isRetired = false
    case .bool(let retired): isRetired = retired
    default: throw .member("retired")
    }
    guard isRetired || expires - issued <= Self.longestLife else {
      throw .livesTooLong(days: Self.longestLife / 86400)
    }
    let unknown = try json.criticalMembers(beside: Self.baseMembers)
    guard unknown.isEmpty else { throw .unknownCritical(unknown) }
  }

  /// The most seconds between `issued` and `expires`: 400 days.
  public static let longestLife: Int64 = 400 * 86400

  private static let baseMembers: Set = [
    "type", "registry", "epoch", "version", "issued", "expires", "payloadDigest", "hosts", "denied",
    "removed", "retired", "previous", "mirrors",
  ]

  /// Whether a statement that nobody has verified says that it is a retired one: then the root keys must
  /// have signed it.
  static func saysRetired(_ json: JSONObject) -> Bool { json["retired"] == .bool(true) }

  static let type = "statement"

  /// What the online keys sign.
  public var signedBytes: [UInt8] { DocumentSignature.Domain.statement.bytes(over: json) }

  /// Whether the statement is expired at `now` (Unix seconds); the second of the expiry itself
  /// counts. There is no tolerance: statements live for weeks and are signed anew every day.
  public func isExpired(at now: Int64) -> Bool { now >= expires }
}
