import SslPinningRules
import TLSTools

/// What the members of a statement take back of the one before it.
///
/// - `--statement` replaces whole members, so whoever adds one denial may drop the others, and clients believe it.
/// - A host that `removed` names and nothing lists any more needs no settings. What is retired needs none at all.
/// - What becomes of pins and match at each host ``HostChanges`` says.
enum Loosening {
  /// - Parameter patterns: those that the payload lists now.
  static func texts(
    from last: Statement, to next: RegistryDocument.Terms, now patterns: Set<HostPattern>
  ) -> [String] {
    var texts = Set(last.denied).subtracting(next.denied).map { "the denial of \($0)" }
    let spokenFor = patterns.union(next.hosts.map(\.pattern))
    texts += Set(last.removed).subtracting(next.removed).subtracting(spokenFor).map {
      "the removal of \($0)"
    }
    guard !next.isRetired else { return texts }
    let gone = Set(next.removed).subtracting(spokenFor)
    for old in last.hosts where !gone.contains(old.pattern) {
      let new = next.hosts.first { $0.pattern == old.pattern }
      if old.enforces, new?.enforces != true { texts.append("enforce of \(old.pattern)") }
    }
    return texts
  }
}
