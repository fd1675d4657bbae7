/// Merges two registries that were both believed: the stored one and the one that the app ships, or those of
/// two processes.
extension TrustedRegistry {
  /// The combined knowledge of both.
  ///
  /// - The higher (epoch, version) wins, and a registry with a statement wins over one without. Of one statement, the
  ///   copy that was confirmed later wins; a confirmation in the future does not count, since it was written under a
  ///   fast clock.
  /// - Of two statements with the same number, this registry's stays.
  /// - The number decides even if the lower one knows newer key sets. Otherwise an attacker who gives one process
  ///   a new key set without its statement could take every process back to a list of his choice.
  /// - Nothing that one of them withdrew comes back: the longer chain of key sets stays.
  /// - Within one epoch, nothing that one of them tightened is loosened: the enforcement of both stays, and
  ///   hosts that only the older one lists count as vanished. Across epochs, such hosts stay only if the newer
  ///   one's online keys signed for them. If both know a vanished host, the newest document that listed it counts.
  /// - A fork that one of them has found stays reported, and so is one that only the merge reveals.
  /// - In format 1, and beside one retired statement, a list has no number. The one that was confirmed later wins, and an
  ///   entry whose signed `date` is after that shows a later list: so a list that an app's update ships heals a client
  ///   that cannot reach its registry. Hosts that it leaves out count as vanished from then on, as if it had been
  ///   fetched. Of other lists of format 1 nothing tells which is older, and only hosts that one of them saw vanish
  ///   count, since that time.
  /// - If the clock is behind the last confirmations of both, the later `date` wins, even one in the future. Otherwise a
  ///   slow clock would bring back the app's own list, of which only the date is in the past.
  ///
  /// - Parameters:
  ///   - other: a registry that was believed under the same trust.
  ///   - clock: Unix time in seconds.
  public func merged(with other: TrustedRegistry, at clock: Int64) -> TrustedRegistry {
    let (newer, older) = other.supersedes(self, at: clock) ? (other, self) : (self, other)
    var standing = newer.standing
    var vanished = newer.vanished
    // Not a chain that begins after the current statement's key set: without that, nothing could be restored.
    if older.keySetEpoch > newer.keySetEpoch,
      standing.statement.map({ older.standing.chain?.set($0.number.epoch) != nil }) ?? true
    {
      standing.chain = older.standing.chain
    }
    // Beside a retired statement only time ends a host: the app's own document must not bring it back for another
    // 30 days at every start. Where a list counts by its date, it is the app's own that leaves the host out, and the
    // 30 days begin now.
    let isDated = newer.lastKnown(at: clock) > newer.stamp.knownConfirmation(at: clock)
    let since =
      newer.document.statement == nil && !isDated
      ? standing.statement.map { min($0.issued, clock) } : nil
    if let mine = standing.statement?.number.epoch,
      mine == older.standing.statement?.number.epoch
    {
      standing.enforce(first: older.standing.enforced)
      standing.fork = newer.standing.fork ?? older.standing.fork ?? newer.fork(from: older)
      let known = newer.document.registry.patterns.union(newer.document.removed)
      vanished.adopt(
        older.document, andThoseOf: older.vanished, unless: known, at: since ?? clock)
      vanished.release(under: newer.document, at: clock, limits: limits)
    } else if standing.statement == nil, older.standing.statement == nil {
      // Not the other way round: an app's own older list must not bring its hosts back at every start.
      let isShipped = newer.stamp.confirmed == 0 && older.stamp.confirmed > 0
      vanished.adopt(
        isShipped ? older.document : nil, andThoseOf: older.vanished,
        unless: newer.document.registry.patterns, at: clock)
      vanished.release(under: newer.document, at: clock, limits: limits)
    } else if standing.statement != nil {
      // As if the newer one had arrived after the older: hosts for which its own online keys vouch stay.
      let known = newer.document.registry.patterns.union(newer.document.removed)
      var earlier = VanishedHosts()
      earlier.adopt(
        older.document, andThoseOf: older.vanished, unless: known, at: since ?? clock)
      earlier.keep(where: standing.vouches)
      vanished.adopt(nil, andThoseOf: earlier, unless: known, at: clock)
      vanished.release(under: newer.document, at: clock, limits: limits)
      standing.fork = newer.standing.fork ?? newer.fork(from: older)
    }
    return TrustedRegistry(
      document: newer.document, standing: standing, vanished: vanished,
      confirmed: newer.stamp.confirmed, limits: limits)
  }

  /// The same for what is stored: it was believed first, so of two statements with the same number the stored one stays.
  package func merged(withStored stored: TrustedRegistry, at clock: Int64) -> TrustedRegistry {
    contradicts(stored) ? stored.merged(with: self, at: clock) : merged(with: stored, at: clock)
  }

  /// Whether both believe a statement of the same number, and not the same one.
  private func contradicts(_ other: TrustedRegistry) -> Bool {
    guard let mine = standing.statement, let others = other.standing.statement else { return false }
    return mine.number == others.number && mine.json != others.json
  }

  private func fork(from older: TrustedRegistry) -> RegistryFork? {
    standing.id.flatMap { older.standing.fork(by: $0, following: standing.statement?.previous) }
  }

  /// Whether this one is newer.
  private func supersedes(_ other: TrustedRegistry, at clock: Int64) -> Bool {
    switch (standing.statement?.number, other.standing.statement?.number) {
    case (let mine?, let others?) where mine != others: mine > others
    case (_?, nil): true
    case (nil, _?): false
    case _ where contradicts(other): false
    default:
      if !isConfirmed(at: clock), !other.isConfirmed(at: clock),
        let date = document.newestDate, let others = other.document.newestDate
      {
        date > others
      } else {
        (lastKnown(at: clock), stamp.knownConfirmation(at: clock))
          > (other.lastKnown(at: clock), other.stamp.knownConfirmation(at: clock))
      }
    }
  }

  /// Whether a server is known to have confirmed this list. A shipped one beside a retired statement has that statement's
  /// `issued` for a confirmation.
  private func isConfirmed(at clock: Int64) -> Bool {
    stamp.knownConfirmation(at: clock) > standing.statement?.issued ?? 0
  }

  /// The latest time at which this is known to have been its registry's list: its last confirmation or, where no statement vouches
  /// for the list, the newest `date` of its entries. Neither counts in the future.
  private func lastKnown(at clock: Int64) -> Int64 {
    let date = document.newestDate.flatMap { $0 <= clock ? $0 : nil }
    return max(stamp.knownConfirmation(at: clock), date ?? 0)
  }

  /// Whether this one knows something that `other` does not: another document or, for the same one, stricter
  /// settings, more vanished hosts, or newer key sets.
  package func knowsMore(than other: TrustedRegistry) -> Bool {
    !isSameDocument(as: other) || pins(differFrom: other) || keySetEpoch > other.keySetEpoch
      || (stamp.fork != nil && stamp.fork != other.stamp.fork)
  }

  /// Whether both have the same document, byte for byte.
  package func isSameDocument(as other: TrustedRegistry) -> Bool {
    document.bytes == other.document.bytes
  }

  /// Whether hosts, pins, settings or denied keys differ from `old`.
  package func pins(differFrom old: TrustedRegistry) -> Bool {
    registry != old.registry || standing.enforced != old.standing.enforced
      || Set(standing.statement?.denied ?? []) != Set(old.standing.statement?.denied ?? [])
  }
}
