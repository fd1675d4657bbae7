import CanonicalJSON

/// What the online keys sign about a registry, beside the payload that format-1 clients read:
///
///     { "type": "statement", "registry": "example.json", "epoch": 1, "version": 7,
///       "issued": 1800000000, "expires": 1807776000, "payloadDigest": "<base64 of SHA-256>",
///       "hosts": [ … ], "denied": [ "<pin>" ], "removed": [ "old.example.com" ] }
///
/// - Read strictly: a statement that is only partly readable is refused. The previous one stays in force, so
///   strictness locks nobody out.
/// - Unknown members are kept, and the signatures cover them.
/// - With `"retired": true` the registry goes back to format 1: then the format-1 signature vouches for the
///   payload, and once the statement is believed, neither `payloadDigest` nor `expires` binds any more. Its
///   hosts and denied keys stay in force. Because of that power, the root keys sign it, not the online keys.
/// - Any other statement is valid for at most ``longestLife``, so that a thief of an online key cannot choose
///   the year.
/// - `critical` names members that must not be ignored.
public struct Statement: Sendable {
  /// The registry that it is for.
  public let registry: String
  /// Its number: the epoch of the key set whose online keys sign it, and the version in that epoch.
  public let number: RegistryStamp.Version
  /// Unix time in seconds.
  public let issued: Int64
  /// Unix time in seconds from which it no longer counts.
  public let expires: Int64
  /// SHA-256 of the canonical payload.
  public let payloadDigest: [UInt8]
  /// CA pins and settings; at most one for each pattern.
  public let hosts: [HostSettings]
  /// Keys that are refused anywhere in a chain.
  public let denied: [SPKIPin]
  /// Hosts that may vanish from the registry.
  public let removed: [HostPattern]
  /// Whether the registry goes back to format 1.
  public let isRetired: Bool
  /// The statement that this one follows, if its publisher says so.
  public let previous: StatementID?
  /// Other URLs of the document; they count while this statement is in force.
  public let mirrors: [RegistryMirror]
  /// The statement as received, or as published.
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

  /// Reads a statement of this registry; its signatures are checked separately.
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

  /// Whether an unverified statement claims to be retired: then the root keys must have signed it.
  static func saysRetired(_ json: JSONObject) -> Bool { json["retired"] == .bool(true) }

  static let type = "statement"

  /// What the online keys sign.
  public var signedBytes: [UInt8] { DocumentSignature.Domain.statement.bytes(over: json) }

  /// Whether the statement is expired at `now` (Unix seconds); the second of the expiry itself
  /// counts. There is no tolerance: statements are valid for weeks and signed every day.
  public func isExpired(at now: Int64) -> Bool { now >= expires }
}

extension StatementID {
  /// The id of a statement.
  package init(of statement: Statement, crypto: some RegistryCrypto) {
    self.init(
      number: statement.number,
      digest: crypto.sha256(JSONValue.object(statement.json).canonicalBytes))
  }

  /// Reads what ``json`` gave.
  package init(_ json: JSONValue) throws(DocumentFault) {
    guard let json = json.objectValue else { throw .member("previous") }
    let number = RegistryStamp.Version(
      epoch: try json.requireInteger("epoch"), version: try json.requireInteger("version"))
    self.init(number: number, digest: try json.requireDigest("digest"))
  }

  /// As it stands in the next statement.
  package var json: JSONValue {
    func integer(_ value: Int64) -> JSONValue {
      JSONNumber(exactly: value).map(JSONValue.number) ?? .null
    }
    return .object([
      "epoch": integer(number.epoch), "version": integer(number.version),
      "digest": .string(StrictBase64.encode(digest)),
    ])
  }
}

/// A statement's settings for the hosts that one pattern matches, which format 1 cannot express:
/// `{"domainName": "*.example.com", "ca": ["<pin>"], "match": "any", "enforce": true}`.
public struct HostSettings: Hashable, Sendable {
  /// The hosts.
  public let pattern: HostPattern
  /// Pins of certificates above the leaf.
  public let ca: [SPKIPin]
  /// How leaf and CA pins combine; both must match unless the entry says `any`.
  public let match: PolicyEntry.Match
  /// Whether the hosts are enforced even if the app only reports. `false` leaves that to the app: a statement
  /// tightens and never loosens.
  public let enforces: Bool
  /// Critical members that are unknown here: the hosts are refused.
  public let unknownCritical: [String]

  /// Settings.
  public init(
    _ pattern: HostPattern, ca: [SPKIPin] = [], match: PolicyEntry.Match = .all,
    enforces: Bool = false
  ) {
    (self.pattern, self.ca, self.match, self.enforces) = (pattern, ca, match, enforces)
    unknownCritical = []
  }

  /// Strict, unlike an entry of the payload: reading CA pins only in part would drop a requirement.
  package init(_ json: JSONValue) throws(DocumentFault) {
    guard let entry = json.objectValue else { throw .member("hosts") }
    pattern = try HostPattern(member: entry["domainName"], "hosts.domainName")
    ca = entry["ca"] == nil ? [] : try SPKIPin.list(entry["ca"], "hosts.ca")
    switch entry["match"] {
    case nil, .string("all"): match = .all
    case .string("any"): match = .any
    default: throw .member("hosts.match")
    }
    switch entry["enforce"] {
    case nil: enforces = false
    case .bool(let enforces): self.enforces = enforces
    default: throw .member("hosts.enforce")
    }
    unknownCritical = try entry.criticalMembers(beside: Self.baseMembers)
  }

  private static let baseMembers: Set = ["domainName", "ca", "match", "enforce"]

  /// As a statement has it.
  package var json: JSONValue {
    .object([
      "domainName": .string(pattern.description), "ca": .array(ca.map { .string($0.base64) }),
      "match": .string(match == .any ? "any" : "all"), "enforce": .bool(enforces),
    ])
  }
}

extension HostPattern {
  init(member json: JSONValue?, _ name: String) throws(DocumentFault) {
    guard let text = json?.stringValue else { throw .member(name) }
    do throws(HostNameError) { self = try HostPattern(text) } catch { throw .member(name) }
  }
}

extension SPKIPin {
  /// All pins of a list, or an error.
  static func list(_ json: JSONValue?, _ name: String) throws(DocumentFault) -> [SPKIPin] {
    guard let texts = json?.arrayValue else { throw .member(name) }
    var pins: [SPKIPin] = []
    for text in texts {
      guard let text = text.stringValue, let pin = try? SPKIPin(base64: text) else {
        throw .member(name)
      }
      pins.append(pin)
    }
    return pins
  }
}

/// Another URL of a registry's document, named by its statement; used if the app's own URL does not answer.
///
/// - `https` only, without user, query or fragment, so that a statement can name places but not requests.
/// - At most ``most`` in a statement, to limit where a thief of an online key can send every client.
public struct RegistryMirror: Hashable, Sendable, CustomStringConvertible {
  /// The most mirrors that a statement may name.
  public static let most = 8
  static let longest = 2048

  /// The URL as the statement has it.
  public let description: String

  /// Reads a mirror's URL: `https://host[:port]/path` in printable ASCII, 2048 bytes at most.
  ///
  /// - Throws: ``DocumentFault/member(_:)``.
  public init(_ text: String) throws(DocumentFault) {
    let scheme = "https://"
    let bytes = Array(text.utf8)
    guard bytes.count <= Self.longest, bytes.starts(with: scheme.utf8),
      bytes.allSatisfy({ (0x21...0x7e).contains($0) && !#"@?#\"<>^`{|}"#.utf8.contains($0) })
    else { throw .member("mirrors") }
    let rest = text.dropFirst(scheme.count)
    guard let slash = rest.firstIndex(of: "/"), rest.index(after: slash) < rest.endIndex,
      Self.isAuthority(rest[..<slash])
    else { throw .member("mirrors") }
    description = text
  }

  /// The mirrors of a statement; empty if it names none.
  static func list(_ json: JSONValue?) throws(DocumentFault) -> [RegistryMirror] {
    guard let json else { return [] }
    guard let list = json.arrayValue, list.count <= most else { throw .member("mirrors") }
    var mirrors: [RegistryMirror] = []
    for element in list {
      guard let text = element.stringValue else { throw .member("mirrors") }
      let mirror = try RegistryMirror(text)
      guard !mirrors.contains(mirror) else { throw .member("mirrors") }
      mirrors.append(mirror)
    }
    return mirrors
  }

  private static func isAuthority(_ text: Substring) -> Bool {
    var host = text
    // After the bracket of an IPv6 address, or after a name.
    if let colon = text.lastIndex(of: ":"), !text[colon...].contains("]") {
      let port = text[text.index(after: colon)...]
      // Only the canonical spelling of a port: `:080` would be another text for the same URL.
      guard let number = UInt16(port), number > 0, "\(number)" == port else { return false }
      host = text[..<colon]
    }
    let isAddress6 = host.utf8.contains(UInt8(ascii: ":"))
    return isAddress6 == host.hasPrefix("[") && (try? HostName(String(host))) != nil
  }
}
