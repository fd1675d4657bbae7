import SslPinningRules
import TLSTools

/// What a statement takes back of the one before it.
///
/// - `--statement` replaces whole members, so whoever adds one denial may drop the others, and clients believe it.
/// - A host that `removed` names and nothing lists any more needs no settings. What is retired needs none at all.
enum Loosening {
  /// - Parameters:
  ///   - listed: the patterns that were listed before.
  ///   - patterns: those that the payload lists now.
  static func texts(
    from last: Statement, to next: RegistryDocument.Terms, listed: Set<HostPattern>,
    now patterns: Set<HostPattern>
  ) -> [String] {
    var texts = Set(last.denied).subtracting(next.denied).map { "the denial of \($0)" }
    let spokenFor = patterns.union(next.hosts.map(\.pattern))
    texts += Set(last.removed).subtracting(next.removed).subtracting(spokenFor).map {
      "the removal of \($0)"
    }
    guard !next.isRetired else { return texts.sorted() }
    let gone = Set(next.removed).subtracting(spokenFor)
    for old in last.hosts where !gone.contains(old.pattern) {
      let new = next.hosts.first { $0.pattern == old.pattern }
      if !old.ca.isEmpty, new?.ca.isEmpty ?? true {
        texts.append("the CA pins of \(old.pattern)")
      } else if let new, !old.ca.isEmpty, Set(old.ca).isDisjoint(with: new.ca) {
        // Another CA altogether: a rotation has both for a while.
        texts.append("the CA pins of \(old.pattern), all of them")
      }
      if old.enforces, new?.enforces != true { texts.append("enforce of \(old.pattern)") }
    }
    texts += opened(
      from: last.hosts, beside: listed, to: next.hosts, beside: spokenFor, removed: gone
    ).map { "match all of \($0)" }
    return texts.sorted()
  }

  /// The patterns whose hosts had match all and now have any. Without settings a pattern has match all, wherever one
  /// says all that matches a host it is all, and what is gone goes by the wider patterns that match it.
  ///
  /// - Parameters:
  ///   - old: the patterns that were listed before.
  ///   - new: those that are now.
  ///   - removed: patterns that may vanish, and are not listed.
  static func opened(
    from last: [HostSettings], beside old: Set<HostPattern>, to next: [HostSettings],
    beside new: Set<HostPattern>, removed: Set<HostPattern> = []
  ) -> [HostPattern] {
    let wasAny = Set(last.filter { $0.match == .any }.map(\.pattern))
    let isAny = Set(next.filter { $0.match == .any }.map(\.pattern))
    guard !isAny.isEmpty else { return [] }
    // An exact pattern matches its own host alone, and most are exact.
    let (wideOld, wideNew) = (old.filter { !$0.isExact }, new.filter { !$0.isExact })
    return old.union(new).subtracting(removed).filter { pattern in
      let own: Set = [pattern]
      let (wideOld, wideNew) = (
        wideOld.union(own.intersection(old)), wideNew.union(own.intersection(new))
      )
      // All of its hosts, or its apex.
      return [HostPattern.covers, HostPattern.touches].contains { matches in
        let before = wideOld.filter { matches($0)(pattern) }
        let after = wideNew.filter { matches($0)(pattern) }
        return !before.isSubset(of: wasAny) && !after.isEmpty && after.isSubset(of: isAny)
      }
    }
  }
}
