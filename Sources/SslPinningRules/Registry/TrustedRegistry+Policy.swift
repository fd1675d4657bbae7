/// The policy of a believed registry, and the times for evaluating it.
extension TrustedRegistry {
  /// The times for evaluation when the clock says `clock` (Unix seconds).
  public func time(at clock: Int64) -> TrustTime {
    // A retired statement vouches for no document and no time: its `issued` would end the pins of the
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

  /// What a pinned session does once the statement is expired.
  public enum WhenExpired: Hashable, Sendable {
    /// Refuse every connection: an attacker who can hold back the registry for months gains nothing.
    case refuse
    /// Continue with the last pins and the deny list, never looser.
    ///
    /// - Warning: an attacker who can hold back the registry for ever keeps a withdrawn pin alive for ever.
    case keepPinning
  }

  /// This registry's policy. Evaluate it at ``time(at:)``, not at the bare clock.
  ///
  /// - Parameters:
  ///   - trust: who vouches for servers before their pins are checked.
  ///   - unlistedHosts: what happens to unlisted hosts.
  ///   - enforcement: the app's enforcement of hosts that no statement enforces.
  ///   - whenExpired: what happens once the statement has expired.
  /// - Throws: ``PolicyError`` if these settings contradict each other. An entry that they cannot honour refuses
  ///   its own hosts (``PinningPolicy/problems``).
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
      listed: listed, vanished: gone, enforced: standing.enforced,
      denied: Set(standing.statement?.denied ?? []), trust: trust,
      unlistedHosts: unlistedHosts, registry: stamp,
      expires: whenExpired == .refuse ? expires : nil)
  }

  /// The entries of the document in force, each pin with the end that clients go by.
  package var policyEntries: [PolicyEntry] {
    entries(of: document.registry, in: document, .enforce, .refuse)
  }

  private func entries(
    of registry: Registry, in source: AcceptedDocument,
    _ enforcement: PolicyEntry.Enforcement, _ whenExpired: WhenExpired
  ) -> [PolicyEntry] {
    registry.policyEntries(enforcement: enforcement) { key in
      guard let expires = key.expires, source.isActive(key), let end = self.expires else {
        return key.expires
      }
      return whenExpired == .keepPinning ? nil : max(expires, end)
    }
  }
}

extension Registry {
  /// How clients will treat a document before it is signed: its policy, and the times for evaluation. Nothing is
  /// believed, and nothing else of a believed document is returned.
  ///
  /// - Parameters:
  ///   - statement: the future statement beside the payload; `nil` in format 1.
  ///   - clock: Unix time in seconds.
  ///   - old: the client's registry until then, whose vanished hosts it keeps; `nil` for a new client, and if a new
  ///     epoch makes clients drop them.
  ///   - whenExpired: what happens once the statement has expired.
  /// - Throws: ``PolicyError``, never with the settings that are used here.
  package func draftPolicy(
    under statement: Statement?, at clock: Int64,
    after old: (list: Registry, statement: Statement?)? = nil,
    whenExpired: TrustedRegistry.WhenExpired = .refuse
  ) throws(PolicyError) -> (policy: PinningPolicy, time: TrustTime) {
    var standing = TrustedRegistry.Standing()
    standing.statement = statement
    let document = draft(under: statement)
    var vanished = VanishedHosts()
    if let old {
      vanished.replace(
        old.list.draft(under: old.statement), by: document, at: clock, limits: .standard)
    }
    let draft = TrustedRegistry(
      document: document, standing: standing, vanished: vanished, confirmed: clock,
      limits: .standard)
    return (try draft.policy(whenExpired: whenExpired), draft.time(at: clock))
  }

  private func draft(under statement: Statement?) -> AcceptedDocument {
    AcceptedDocument(
      bytes: [], signed: [], digest: [], payloadDigest: "", registry: self,
      statement: statement?.isRetired == true ? nil : statement,
      removed: Set(statement?.removed ?? []))
  }
}
