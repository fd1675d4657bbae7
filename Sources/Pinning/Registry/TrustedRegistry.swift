/// The registry that a client believes, and the only way to come to believe another one.
///
/// - A document is believed only after its signature was found good over its canonical payload as
///   received. A refused document changes nothing: the value that refused it stays in force.
/// - A registry without one usable key is never believed: it would lock everybody out.
/// - A host that vanishes from a newer document keeps its last pins for 30 days and is reported:
///   neither a slip of the server nor a replayed older document leaves a host unlisted.
/// - Time is passed in, and only the later of it and the newest time ever used counts.
///
/// Format 2 adds key sets, statements, versions and the deny list; they stand beside the payload
/// in the same document (``RegistryEnvelope/document``), so this type is where they will be judged.
public struct TrustedRegistry: Sendable {
  /// The entries of the newest document, and after them those of vanished hosts.
  public let registry: Registry
  /// Which document this is, for verdicts.
  public let stamp: RegistryStamp

  /// What the newest document says by itself.
  private let document: Registry
  private let vanished: [HostPattern: Vanished]
  private let limits: RegistryLimits

  private struct Vanished: Sendable {
    let keys: [RegistryKey]
    let since: Int64
  }

  /// Believes a first document.
  ///
  /// - Parameters:
  ///   - bytes: the document as received.
  ///   - verifier: the signing key that the app ships with.
  ///   - digest: SHA-256.
  ///   - now: Unix time in seconds.
  /// - Throws: ``RegistryError``.
  public init(
    accepting bytes: [UInt8], verifiedBy verifier: some SignatureVerifier,
    digest: ([UInt8]) -> [UInt8], at now: Int64, limits: RegistryLimits = .standard
  ) throws(RegistryError) {
    let envelope = try RegistryEnvelope(parsing: bytes, limits: limits)
    let document = try Registry(format1: try envelope.verifiedPayload(by: verifier))
    self.init(
      document: document, stamp: Self.stamp(envelope, digest: digest, at: now), vanished: [:],
      limits: limits)
  }

  private init(
    document: Registry, stamp: RegistryStamp, vanished: [HostPattern: Vanished],
    limits: RegistryLimits
  ) {
    self.document = document
    self.stamp = stamp
    self.vanished = vanished
    self.limits = limits
    let order = vanished.sorted {
      $0.key.description.utf8.lexicographicallyPrecedes($1.key.description.utf8)
    }
    registry = Registry(
      keys: document.keys + order.flatMap(\.value.keys),
      problems: document.problems + order.map { .vanished($0.key, since: $0.value.since) })
  }

  /// What is believed after a newer document came in.
  ///
  /// - Throws: ``RegistryError``; then `self` stays in force.
  public func accepting(
    _ bytes: [UInt8], verifiedBy verifier: some SignatureVerifier,
    digest: ([UInt8]) -> [UInt8], at clock: Int64
  ) throws(RegistryError) -> TrustedRegistry {
    let now = max(clock, stamp.confirmed)
    let next = try TrustedRegistry(
      accepting: bytes, verifiedBy: verifier, digest: digest, at: now, limits: limits)
    let listed = Set(next.document.keys.map(\.pattern))
    var vanished = self.vanished
    let before = Dictionary(grouping: document.keys, by: \.pattern)
    for (pattern, keys) in before where !listed.contains(pattern) {
      vanished[pattern] = Vanished(keys: keys, since: now)
    }
    vanished = vanished.filter { pattern, host in
      !listed.contains(pattern) && limits.keepsVanished(since: host.since, at: now)
    }
    return TrustedRegistry(
      document: next.document, stamp: next.stamp, vanished: vanished, limits: limits)
  }

  /// The same registry, confirmed by its server as unchanged at `clock` (Unix seconds). Hosts that
  /// vanished too long ago go.
  public func confirmed(at clock: Int64) -> TrustedRegistry {
    let now = max(clock, stamp.confirmed)
    return TrustedRegistry(
      document: document,
      stamp: RegistryStamp(
        version: stamp.version, payloadDigest: stamp.payloadDigest, confirmed: now),
      vanished: vanished.filter { limits.keepsVanished(since: $0.value.since, at: now) },
      limits: limits)
  }

  /// The policy that this registry amounts to.
  ///
  /// - Throws: ``PolicyError`` where the settings contradict each other.
  public func policy(
    trust: TrustMode = .system, unlistedHosts: UnlistedHosts = .refuse
  ) throws(PolicyError) -> PinningPolicy {
    try PinningPolicy(
      entries: registry.policyEntries, trust: trust, unlistedHosts: unlistedHosts, registry: stamp)
  }

  private static func stamp(
    _ envelope: RegistryEnvelope, digest: ([UInt8]) -> [UInt8], at now: Int64
  ) -> RegistryStamp {
    let hex: [Character] = Array("0123456789abcdef")
    let text = digest(envelope.canonicalPayload)
      .flatMap { [hex[Int($0 >> 4)], hex[Int($0 & 15)]] }
    return RegistryStamp(version: nil, payloadDigest: String(text), confirmed: now)
  }
}
