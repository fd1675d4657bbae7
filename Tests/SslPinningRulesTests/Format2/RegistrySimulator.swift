import CanonicalJSON
import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

/// Keys that sign, by number: Ed25519 the even ones, P-256 the odd ones.
enum SimulatedKeys {
  static let all: [TrustSigningKey] = (0..<12).compactMap { number in
    try? TrustSigningKey(file: file("\(number).pem"))
  }

  static func file(_ name: String) -> URL {
    Vectors.root.appending(path: "registry/keys/\(name)")
  }

  static func key(_ number: Int) throws -> TrustSigningKey {
    try #require(all.indices.contains(number) ? all[number] : nil)
  }

  static func roleKey(_ number: Int) throws -> RoleKey { try key(number).roleKey }

  static func role(_ numbers: [Int], threshold: Int = 1) throws -> KeyRole {
    try KeyRole(keys: try numbers.map(roleKey), threshold: threshold)
  }

  static func signatures(
    _ numbers: [Int], over message: [UInt8]
  ) throws -> [DocumentSignature] {
    try numbers.map { number in
      DocumentSignature(by: try roleKey(number).id, try key(number).sign(message))
    }
  }
}

/// A registry in memory that publishes what a test tells it to: honest by default, and with every
/// part open to be made dishonest.
struct RegistrySimulator {
  static let start: Int64 = 1_800_000_000
  static let day: Int64 = 86400

  var name = "example.json"
  var epoch: Int64 = 0
  var version: Int64 = 1
  var issued = start
  var lifetime = 90 * day
  var pins: [(host: String, pin: UInt8)] = [("a.example", 1)]
  /// Further members of every entry of the payload, such as `,"expire":5`.
  var entryMembers = ""
  var hosts: [HostSettings] = []
  var denied: [UInt8] = []
  var removed: [String] = []
  var isRetired = false
  /// Who signs the statement.
  var online = [0]
  /// Who signs one that retires the registry.
  var root = [0]
  /// The chain's entries.
  var keySets: [JSONValue] = []
  /// Whether the statement is left out.
  var isStripped = false
  var extraStatementMembers: [(String, JSONValue)] = []
  /// Signs the payload; a key that anybody can compute unless told otherwise.
  var format1Key: SigningKey?

  /// The payload's text, where it is not made of ``pins``.
  var payloadText: String?

  /// The payload's text.
  var payload: String {
    payloadText ?? "{\"keys\":["
      + pins.map { SignedDocument.entry($0.host, $0.pin, entryMembers) }.joined(separator: ",")
      + "]}"
  }

  /// The statement as the settings stand.
  func statement() throws -> JSONObject {
    var json = Statement(
      registry: name, number: .init(epoch: epoch, version: version), issued: issued,
      expires: issued + lifetime,
      payloadDigest: Digest.sha256(try canonicalize([UInt8](payload.utf8))), hosts: hosts,
      denied: denied.map(SPKIPin.test), removed: try removed.map { try HostPattern($0) },
      isRetired: isRetired
    ).json
    for (name, value) in extraStatementMembers { json[name] = value }
    return json
  }

  /// Signatures of the keys that have to sign.
  func signatures(over statement: JSONObject) throws -> [DocumentSignature] {
    try SimulatedKeys.signatures(
      isRetired ? root : online, over: DocumentSignature.Domain.statement.bytes(over: statement))
  }

  /// The document as the settings stand.
  func document() throws -> [UInt8] {
    let statement = try statement()
    return try document(statement, try signatures(over: statement))
  }

  /// The document with this statement and these signatures.
  func document(_ statement: JSONObject, _ signatures: [DocumentSignature]) throws -> [UInt8] {
    try document(statement, .array(signatures.map(\.json)))
  }

  /// The document with this statement and this list of signatures.
  func document(_ statement: JSONObject, _ signatures: JSONValue) throws -> [UInt8] {
    var members = ""
    if !isStripped {
      members += ",\"statement\":" + text(.object(statement))
      members += ",\"statementSignatures\":" + text(signatures)
    }
    if !keySets.isEmpty { members += ",\"keySets\":" + text(.array(keySets)) }
    guard let format1Key else { return try SignedDocument.of(payload: payload, beside: members) }
    let signature = StrictBase64.encode(
      try format1Key.sign(try canonicalize([UInt8](payload.utf8))))
    return [UInt8]("{\"payload\":\(payload),\"signature\":\"\(signature)\"\(members)}".utf8)
  }

  /// Appends a key set.
  mutating func add(
    root: KeyRole, online: KeyRole, expires: Int64? = nil, signedBy signers: [Int],
    extra: [(String, JSONValue)] = []
  ) throws {
    let set = KeySet(
      registry: name, epoch: Int64(keySets.count) + 1, root: root, online: online,
      expires: expires)
    var json = set.json
    for (name, value) in extra { json[name] = value }
    let signatures = try SimulatedKeys.signatures(
      signers, over: DocumentSignature.Domain.keySet.bytes(over: json))
    keySets.append(
      .object(["keySet": .object(json), "signatures": .array(signatures.map(\.json))]))
  }

  /// Begins a new epoch under a root of key 0 alone, whose online key is this one.
  mutating func beginEpoch(online key: Int, expires: Int64? = nil) throws {
    try add(
      root: SimulatedKeys.role([0]), online: SimulatedKeys.role([key]), expires: expires,
      signedBy: [0])
    epoch = Int64(keySets.count)
    online = [key]
    version = 1
  }

  private func text(_ json: JSONValue) -> String {
    String(decoding: json.canonicalBytes, as: UTF8.self)
  }

  /// What a client of this registry trusts: key 0, once, unless told otherwise.
  static func trust(
    _ name: String = "example.json", root: KeyRole? = nil, requiresStatement: Bool = false,
    format1Key: TestKey? = .own, minimum: RegistryMinimum? = nil,
    limits: RegistryLimits = .standard
  ) throws -> RegistryTrust {
    RegistryTrust(
      registry: name, shipped: try root ?? SimulatedKeys.role([0]), format1Key: format1Key,
      requiresStatement: requiresStatement, minimum: minimum, limits: limits,
      crypto: PlatformRegistryCrypto())
  }

  /// A client that believes the document as the settings stand.
  func client(under trust: RegistryTrust? = nil, at clock: Int64 = start) throws -> TrustedRegistry
  {
    try TrustedRegistry(
      accepting: try document(), under: try trust ?? Self.trust(name), at: clock)
  }
}

extension TrustedRegistry {
  /// What becomes of the simulator's document.
  func update(
    with simulator: RegistrySimulator, under trust: RegistryTrust? = nil,
    at clock: Int64 = RegistrySimulator.start
  ) throws -> RegistryUpdate {
    update(
      with: try simulator.document(),
      under: try trust ?? RegistrySimulator.trust(simulator.name), at: clock)
  }

  /// What a pinned session would say of a server with this valid path: leaf first, anchor last.
  func verdict(
    _ host: String = "a.example", path: [UInt8] = [1, 90, 91],
    at clock: Int64 = RegistrySimulator.start, whenExpired: WhenExpired = .refuse,
    enforcement: PolicyEntry.Enforcement = .enforce
  ) throws -> PinEvaluation {
    let host = try HostName(host)
    let pins = path.map(SPKIPin.test)
    let chain = try #require(ValidatedChain(host: host, path: pins))
    return try policy(enforcement: enforcement, whenExpired: whenExpired)
      .evaluate(
        ChainEvidence(presented: pins, validation: .success(chain)), host: host,
        at: time(at: clock))
  }

  /// Whether a server with this leaf is accepted.
  func accepts(
    _ host: String = "a.example", leaf: UInt8 = 1, at clock: Int64 = RegistrySimulator.start,
    whenExpired: WhenExpired = .refuse
  ) throws -> Bool {
    try verdict(host, path: [leaf, 90, 91], at: clock, whenExpired: whenExpired)
      .decision == .accept
  }
}
