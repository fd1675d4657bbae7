import Pinning
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
    // A pattern without settings has match all.
    let wasAny = Set(last.hosts.filter { $0.match == .any }.map(\.pattern))
    texts += next.hosts.filter {
      $0.match == .any && listed.contains($0.pattern) && !wasAny.contains($0.pattern)
    }.map { "match all of \($0.pattern)" }
    return texts.sorted()
  }
}
