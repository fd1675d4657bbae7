/// What a believed registry amounts to: a policy, and the times to judge by.
extension TrustedRegistry {
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

extension Registry {
  /// What clients will make of a document that nobody signed yet: its policy, and the times to judge by.
  /// Nothing is believed here, and nothing else is handed out that a believed document has.
  ///
  /// - Parameters:
  ///   - statement: what will stand beside the payload; `nil` in format 1.
  ///   - clock: Unix time in seconds.
  ///   - old: what the client believes until then, whose vanished hosts it keeps; `nil` for a new client, and where
  ///     a new epoch has clients let go of them.
  ///   - whenExpired: what happens once the statement is expired.
  /// - Throws: ``PolicyError``, never under the settings that are used here.
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
      bytes: [], payloadDigest: "", registry: self,
      statement: statement?.isRetired == true ? nil : statement,
      removed: Set(statement?.removed ?? []))
  }
}
