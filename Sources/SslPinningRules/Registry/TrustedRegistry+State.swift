/// Going on after a restart.
extension TrustedRegistry {
  /// What to store.
  public var state: StoredState { StoredState(self) }

  /// Believes a stored state, as far as its documents still verify under what the app ships now.
  ///
  /// A statement may have expired since, and its key set be superseded: it then stands as it stood
  /// before. Hosts that vanished and cannot be proved are left out.
  ///
  /// - Parameters:
  ///   - state: what an earlier run stored.
  ///   - trust: what the app ships now.
  ///   - clock: Unix time in seconds.
  /// - Throws: ``RegistryError``; then the state is worth nothing, and the client starts as if for the
  ///   first time.
  public init(
    restoring state: StoredState, under trust: RegistryTrust, at clock: Int64
  ) throws(RegistryError) {
    var standing = Standing()
    var chain = KeySetChain(shipped: trust.shipped)
    if let fault = chain.walk(.array(state.keySets), under: trust) { throw fault }
    standing.chain = chain
    var judge = DocumentJudge(trust: trust, clock: clock, standing: standing, origin: .stored)
    if let bytes = state.statementDocument {
      _ = try judge.judge(try RegistryEnvelope(parsing: bytes, limits: trust.limits), bytes: bytes)
    }
    guard let bytes = state.document else { throw .unreadableState }
    let document = try judge.judge(
      try RegistryEnvelope(parsing: bytes, limits: trust.limits), bytes: bytes)
    standing = judge.standing
    if standing.statement != nil { standing.enforced.formUnion(state.enforced) }
    var vanished = VanishedHosts()
    let listed = document.registry.patterns.union(document.removed)
    for (bytes, retired, hosts) in state.vanished {
      guard let source = judge.older(bytes, beside: retired) else { continue }
      let known = source.byPattern
      for host in hosts where !listed.contains(host.pattern) {
        guard let last = known[host.pattern] else { continue }
        vanished.restore(
          host.pattern,
          // As it was stored, for as long as no server has confirmed anything: a clock that is behind, as
          // after a battery died, would end the host's time once it is right again.
          .init(source: source, last: last, since: host.since))
      }
    }
    // A time to come was written under a clock that ran ahead: nobody knows when it really was. If it
    // counted, every start would take the state for a new one and ask nobody. A second or two are another
    // process's reading of the clock; but of two lists of format 1 the later one wins, so that this one would
    // win over every list fetched since.
    let isKnown =
      document.statement == nil
      ? state.confirmed <= clock : RegistryStamp.isPast(state.confirmed, at: clock)
    let confirmed = isKnown ? min(state.confirmed, clock) : 0
    self.init(
      document: document, standing: standing, vanished: vanished, confirmed: confirmed,
      limits: trust.limits)
  }
}
