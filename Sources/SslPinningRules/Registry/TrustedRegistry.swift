/// The registry that a client believes, and the only way to come to believe another one.
///
/// - A document is believed only after its signatures were found good, over canonical forms as
///   received. A refused document changes nothing that is pinned: the value that refused it stays in
///   force. Only newer key sets are believed from it, so that withdrawn keys stay withdrawn.
/// - Root keys sign key sets, online keys sign statements; a statement belongs to the newest key set
///   that is known (`KeySetChain`).
/// - (epoch, version) never goes back. The same number with other canonical statement bytes is
///   refused; other signatures, spacing or key sets beside it are not other bytes.
/// - Where there was a statement once, no document without one is believed, unless a believed
///   statement says `retired`. The format-1 signature is then not looked at.
/// - A statement for another registry, or a document of another type, is refused.
/// - A new epoch begins a new count of versions: the way back from a stolen online key or a burnt
///   counter.
/// - A registry without one usable key is never believed: it would lock everybody out.
/// - A host that vanishes from a newer document keeps its last pins and is reported
///   (`VanishedHosts`).
/// - An expired statement is never newly believed. One that expires while it is in force is the
///   app's to judge (``WhenExpired``).
/// - Time is passed in. A statement's `issued` may lie in the future. It is the time floor while that
///   statement is in force (`TrustTime`): a newer version may lower it, so an `issued` far ahead, by
///   accident or theft, cuts nobody off from the document that puts it right.
/// - A pin that was active when its statement was issued never expires before the statement.
/// - Hosts that a statement enforces stay enforced for the rest of the epoch.
public struct TrustedRegistry: Sendable {
  /// The entries of the newest document, and after them those of vanished hosts.
  public let registry: Registry
  /// Which document this is, for verdicts.
  public let stamp: RegistryStamp

  let document: AcceptedDocument
  let standing: Standing
  let vanished: VanishedHosts
  let limits: RegistryLimits

  /// What is remembered of statements and key sets.
  struct Standing: Sendable {
    /// The key sets; `nil` for a client that knows format 1 only.
    var chain: KeySetChain?
    /// The newest statement that was believed; the document's own, unless it was a retired one.
    var statement: Statement?
    /// What ``statement`` is called.
    var id: StatementID?
    /// The document that ``statement`` came in, as received.
    var statementBytes: [UInt8] = []
    /// Patterns that a statement of the epoch enforced.
    var enforced: Set<HostPattern> = []
    /// Where the epoch's history was found to branch; not stored.
    var fork: RegistryFork?

    /// Whether another statement, of the same epoch or not, branches off from what is believed.
    func fork(by other: StatementID, following previous: StatementID?) -> RegistryFork? {
      id.flatMap { RegistryFork(other, following: previous, from: $0) }
    }
  }

  init(
    document: AcceptedDocument, standing: Standing, vanished: VanishedHosts, confirmed: Int64,
    limits: RegistryLimits
  ) {
    self.document = document
    self.standing = standing
    self.vanished = vanished
    self.limits = limits
    stamp = RegistryStamp(
      version: document.statement?.number, payloadDigest: document.payloadDigest,
      confirmed: confirmed, fork: standing.fork)
    let gone = vanished.ordered
    registry = Registry(
      keys: document.registry.keys + gone.flatMap(\.host.last.keys),
      settings: document.registry.settings + gone.flatMap(\.host.last.settings),
      problems: document.registry.problems
        + gone.map { .vanished($0.pattern, since: $0.host.since) })
  }

  /// The newest statement that was believed, where there ever was one.
  public var statement: Statement? { standing.statement }

  /// The epoch of the newest key set that is believed; 0 is what the app ships.
  public var keySetEpoch: Int64 { standing.chain?.newest.epoch ?? 0 }

  /// Unix time in seconds from which on nothing new is accepted under that key set; `nil` means never.
  package var keySetExpires: Int64? { standing.chain?.newest.expires }

  /// Unix time in seconds from which on the registry counts as expired; `nil` where no statement
  /// vouches for it: format 1 never expires as a whole.
  public var expires: Int64? { document.statement?.expires }

  /// Where else the document is served, as the statement in force has it. With a new epoch, or a statement
  /// that names none, they are over; what is retired names none.
  public var mirrors: [RegistryMirror] { document.statement?.mirrors ?? [] }

  /// The times to judge by when the clock says `clock` (Unix seconds).
  public func time(at clock: Int64) -> TrustTime {
    // A retired statement vouches for no document, and for no time: its `issued` would end the pins of the
    // documents beside it.
    TrustTime(
      clock: clock, floor: standing.statement.flatMap { $0.isRetired ? nil : $0.issued },
      isFloorInForce: document.statement.map { !$0.isExpired(at: clock) } ?? false,
      believesStatement: standing.statement != nil)
  }

  /// Whether the registry is expired when the clock says `clock` (Unix seconds).
  public func isExpired(at clock: Int64) -> Bool {
    document.statement?.isExpired(at: clock) ?? false
  }

  /// The same registry, confirmed by its server as unchanged at `clock` (Unix seconds). Hosts that
  /// vanished too long ago go.
  ///
  /// The clock counts as it is, also if it was ahead at the last confirmation: counting from the later
  /// of the two would hide the age of the registry until the clock had caught up.
  public func confirmed(at clock: Int64) -> TrustedRegistry {
    var vanished = self.vanished
    vanished.expire(under: document, at: clock, limits: limits)
    return TrustedRegistry(
      document: document, standing: standing, vanished: vanished, confirmed: clock, limits: limits)
  }

  /// What a pinned session does once the statement is expired.
  public enum WhenExpired: Hashable, Sendable {
    /// Refuse every connection: whoever can hold back the registry for months gains nothing.
    case refuse
    /// Go on with the last pins and the deny list, never looser.
    ///
    /// - Warning: whoever can hold back the registry for good keeps a withdrawn pin alive for good.
    case keepPinning
  }

  /// The policy that this registry amounts to. Judge by ``time(at:)``, not by the bare clock.
  ///
  /// - Parameters:
  ///   - trust: who vouches for servers before their pins are looked at.
  ///   - unlistedHosts: what happens to hosts that are on no list.
  ///   - enforcement: what the app wants of hosts that no statement enforces.
  ///   - whenExpired: what happens once the statement is expired.
  /// - Throws: ``PolicyError`` where these settings contradict each other. An entry that they cannot
  ///   honour refuses its own hosts (``PinningPolicy/problems``).
  public func policy(
    trust: TrustMode = .system, unlistedHosts: UnlistedHosts = .refuse,
    enforcement: PolicyEntry.Enforcement = .enforce, whenExpired: WhenExpired = .refuse
  ) throws(PolicyError) -> PinningPolicy {
    let listed = entries(of: document.registry, in: document, enforcement, whenExpired)
    let gone = vanished.ordered.flatMap { _, host in
      entries(of: host.last, in: host.source, enforcement, whenExpired)
    }
    try trust.check(unlistedHosts: unlistedHosts, enforcement: enforcement)
    return try PinningPolicy(
      listed: listed, vanished: gone, denied: Set(standing.statement?.denied ?? []), trust: trust,
      unlistedHosts: unlistedHosts, registry: stamp,
      expires: whenExpired == .refuse ? expires : nil)
  }

  private func entries(
    of registry: Registry, in source: AcceptedDocument,
    _ enforcement: PolicyEntry.Enforcement, _ whenExpired: WhenExpired
  ) -> [PolicyEntry] {
    let entries = registry.policyEntries(enforcement: enforcement) { key in
      guard let expires = key.expires, source.isActive(key), let end = self.expires else {
        return key.expires
      }
      return whenExpired == .keepPinning ? nil : max(expires, end)
    }
    return entries.map { entry in
      var entry = entry
      if standing.enforced.contains(entry.pattern) { entry.enforcement = .enforce }
      return entry
    }
  }
}
