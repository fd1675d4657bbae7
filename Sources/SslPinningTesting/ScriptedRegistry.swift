import CanonicalJSON
import Foundation
import SslPinning
import SslPinningPlatform
import SslPinningRules

/// A registry inside the test's own process, which says what the test tells it to.
///
///     let registry = try ScriptedRegistry(["api.example.com": ["sha256/…"]])
///     let client = try await registry.client(clock: clock)
///     try registry.publish(["api.example.com": ["sha256/…"]])   // the server rotates its key
///     registry.answer(.unreachable)                             // the registry goes down
///
/// - No network, no keys: documents are format 2 with stand-in signatures, and the client judges
///   them by the rules it always goes by. A new document has the next version.
/// - Connections are still real: a client of this registry pins real handshakes, and refuses them for
///   the same reasons as in production.
public final class ScriptedRegistry: Sendable {
  /// What the registry answers.
  public enum Answer: Sendable {
    /// What was published last.
    case published
    /// Nothing: as without a network.
    case unreachable
    /// An HTTP status other than 200 and 304, and when to come back, in seconds.
    case status(Int, retryAfter: TimeInterval? = nil)
    /// These bytes, such as an older document of ``document``, or garbage.
    case document(Data)
  }

  private struct State {
    var answer = Answer.published
    var document: [UInt8] = []
    var version: Int64 = 0
    var requests = 0
  }

  private static let signature = TestSignature(key: [UInt8]("a stand-in for a key".utf8))
  private static let day: Int64 = 86400

  private let name: String
  private let state = Locked(State())

  /// A registry that lists these hosts.
  ///
  /// - Parameters:
  ///   - hosts: every host with its pins.
  ///   - name: the registry's name, which its statements carry.
  ///   - now: when the first document is issued; a clock's ``TestClock/now``.
  /// - Throws: ``SslPinning/FixedPinsError`` for a host or a pin that cannot be read.
  public init(
    _ hosts: KeyValuePairs<String, HostPins>, name: String = "test.json", at now: Date = Date()
  ) throws {
    self.name = name
    try publish(hosts, at: now)
  }

  /// A registry that lists these hosts with leaf pins alone.
  ///
  /// - Throws: ``SslPinning/FixedPinsError`` for a host or a pin that cannot be read.
  @_disfavoredOverload
  public init(
    _ hosts: [String: [String]], name: String = "test.json", at now: Date = Date()
  ) throws {
    self.name = name
    try publish(hosts, at: now)
  }

  /// How often it was asked.
  public var requests: Int { state.withLock { $0.requests } }

  /// What was published last: to bring back later, or to bundle.
  public var document: Data { Data(state.withLock { $0.document }) }

  /// Answers like this from now on.
  public func answer(_ answer: Answer) { state.withLock { $0.answer = answer } }

  /// Publishes the next version.
  ///
  /// - Parameters:
  ///   - hosts: every host with its pins; one that is left out has vanished.
  ///   - denied: pins that are refused wherever they stand.
  ///   - removed: hosts that may vanish.
  ///   - enforced: whether all of them are enforced even where the app only reports.
  ///   - now: when it is issued.
  ///   - days: for which the statement counts.
  /// - Throws: ``SslPinning/FixedPinsError``, and what a pin or a host throws that cannot be read.
  public func publish(
    _ hosts: KeyValuePairs<String, HostPins>, denied: [String] = [], removed: [String] = [],
    enforced: Bool = false, at now: Date = Date(), days: Int = 90
  ) throws {
    try publish(
      FixedPins(hosts).entries, denied: denied, removed: removed, enforced: enforced, at: now,
      days: days)
  }

  /// Publishes the next version, of hosts with leaf pins alone.
  ///
  /// - Throws: ``SslPinning/FixedPinsError`` for a host or a pin that cannot be read.
  @_disfavoredOverload
  public func publish(_ hosts: [String: [String]], at now: Date = Date()) throws {
    try publish(
      FixedPins(hosts).entries, denied: [], removed: [], enforced: false, at: now, days: 90)
  }

  private func publish(
    _ entries: [PolicyEntry], denied: [String], removed: [String], enforced: Bool, at now: Date,
    days: Int
  ) throws {
    let keys = entries.flatMap { entry in
      entry.leaf.pins.map { pin -> JSONValue in
        .object([
          "domainName": .string(entry.pattern.description), "key": .string(pin.spki.base64),
        ])
      }
    }
    let settings = Dictionary(grouping: entries, by: \.pattern).map { pattern, entries in
      HostSettings(
        pattern, ca: entries.flatMap { $0.ca.pins.map(\.spki) },
        match: entries.contains { $0.match == .all } ? .all : .any, enforces: enforced)
    }
    let payload = JSONValue.object(["keys": .array(keys)])
    let denied = try denied.map { try SPKIPin(parsing: $0) }
    let removed = try removed.map { try HostPattern($0) }
    state.withLock { state in
      state.version += 1
      let statement = Statement(
        registry: name, number: .init(epoch: 0, version: state.version),
        issued: now.unixSeconds, expires: now.unixSeconds + Int64(days) * Self.day,
        payloadDigest: Digest.sha256(payload.canonicalBytes),
        hosts: settings, denied: denied, removed: removed)
      let signed = DocumentSignature(
        by: SPKIPin(computed: Digest.sha256(Self.signature.key)),
        Self.signature.sign(statement.signedBytes))
      state.document =
        JSONValue.object([
          "payload": payload, "statement": .object(statement.json),
          "statementSignatures": .array([signed.json]),
        ]).canonicalBytes
    }
  }

  /// A client of this registry. It can be made on any actor, such as the main actor.
  ///
  /// - Parameters:
  ///   - clock: turned by the test; without one it stands still.
  ///   - configure: changes whatever the test is about: trust, enforcement, storage, what happens
  ///     after expiry. By default nothing is stored.
  /// - Throws: ``SslPinning/SslPinningError``.
  public nonisolated(nonsending) func client(
    clock: TestClock = TestClock(), configure: (inout SslPinningConfig) -> Void = { _ in }
  ) async throws -> SslPinningClient {
    try await client(clocks: clock.clocks, configure: configure)
  }

  package nonisolated(nonsending) func client(
    clocks: Clocks, configure: (inout SslPinningConfig) -> Void
  ) async throws -> SslPinningClient {
    var config = SslPinningConfig(
      endpointUrl: "https://registry.test/\(name)", signingKeyBase64: "", storage: .none)
    configure(&config)
    let key = try RoleKey(
      algorithm: SignatureAlgorithm.edDSA.rawValue, spki: Self.signature.key,
      crypto: Self.signature)
    let trust = RegistryTrust(
      registry: name, shipped: try KeyRole(keys: [key], threshold: 1), format1Key: nil,
      requiresStatement: true, minimum: config.minimumRegistry,
      limits: RegistryLimits(maximumBytes: config.maximumRegistryBytes), crypto: Self.signature)
    return try await SslPinningClient(
      config: config, source: .whole { [self] _ in fetch() }, trust: trust, clocks: clocks)
  }

  private func fetch() -> Result<FetchedDocument, FetchError> {
    let (answer, document) = state.withLock { state in
      state.requests += 1
      return (state.answer, state.document)
    }
    return switch answer {
    case .published: .success(.fresh(document, etag: nil))
    case .document(let data): .success(.fresh([UInt8](data), etag: nil))
    case .unreachable: .failure(.unreachable("the test took the network away"))
    case .status(let code, let wait): .failure(.status(code, retryAfter: wait))
    }
  }
}

/// Signatures that anybody can make: SHA-256 over the key's name and the message.
///
/// A scripted registry never leaves the process, so nothing has to be kept from anybody; what is
/// tested with it is what a client does with good and bad signatures, which need only differ.
struct TestSignature: RegistryCrypto, SignatureVerifier {
  /// What stands in for the key.
  let key: [UInt8]

  func sign(_ message: [UInt8]) -> [UInt8] { Digest.sha256(key + message) }

  func isValid(signature: [UInt8], over message: [UInt8]) -> Bool { signature == sign(message) }

  func sha256(_ bytes: [UInt8]) -> [UInt8] { Digest.sha256(bytes) }

  func verifier(_ algorithm: SignatureAlgorithm, spki: [UInt8]) -> (any SignatureVerifier)? {
    TestSignature(key: spki)
  }
}
