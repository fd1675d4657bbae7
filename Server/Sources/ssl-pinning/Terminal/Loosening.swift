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
    from last: Statement, to next: Statement, now patterns: Set<HostPattern>
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

extension HostPattern {
  /// Whether it matches every host that the other one matches.
  func covers(_ other: HostPattern) -> Bool {
    switch (self, other) {
    case (_, .exact(let host)): matches(host)
    case (.anyDepth, .oneMoreLabel(let base)), (.anyDepth, .anyDepth(let base)):
      matches(.name(base))
    default: self == other
    }
  }

  /// The same, or of `**.name` the apex alone, as `*.parent` does. An entry of that very name is no wider one.
  func touches(_ other: HostPattern) -> Bool {
    if case (.oneMoreLabel, .anyDepth(let base)) = (self, other) { return matches(.name(base)) }
    return covers(other)
  }
}

extension [HostSettings] {
  /// The patterns whose CA pins are enough by themselves: match any, in force only where no wider pattern says all.
  ///
  /// - Parameter patterns: all of the list; without settings they say all.
  func open(beside patterns: Set<HostPattern>, denied: Set<SPKIPin>) -> Set<HostPattern> {
    let anyOne = filter { $0.match == .any }
    let strict = patterns.subtracting(anyOne.map(\.pattern))
    let open = anyOne.filter { own in
      !denied.isSuperset(of: own.ca) && !strict.contains { $0.touches(own.pattern) }
    }
    return Set(open.map(\.pattern))
  }
}

/// Which leaf pins of a list let a server in at one moment. What is denied, what cannot be read and what is over
/// lets in nobody.
struct LivingPins {
  private let leaves: [RegistryKey]
  private let keys: [RegistryKey]
  /// Patterns whose CA pins are enough.
  private let open: Set<HostPattern>

  /// - Parameter time: Unix time in seconds at which a pin must not be over.
  init(_ keys: [RegistryKey], open: Set<HostPattern>, denied: Set<SPKIPin>, at time: Int64) {
    self.keys = keys
    self.open = open
    leaves = keys.filter { key in
      guard let pin = key.readablePin, !denied.contains(pin) else { return false }
      return key.expires.map { $0 >= time } ?? true
    }
  }

  /// The patterns with a pin that counts: one of their own, or of a wider pattern one with the key of theirs that
  /// is over. Another key serves other servers.
  var patterns: Set<HostPattern> {
    let alive = Set(leaves.map(\.pattern))
    let served = keys.filter { !alive.contains($0.pattern) && serves($0) }
    return alive.union(served.map(\.pattern)).union(open)
  }

  /// Whether servers that show the key are let in, by its own entry or one of a wider pattern.
  func serves(_ key: RegistryKey) -> Bool {
    leaves.contains { $0.pattern.covers(key.pattern) && $0.readablePin == key.readablePin }
  }

  /// Whether some server is let in by its leaf key.
  func hasLeaf(for pattern: HostPattern) -> Bool {
    leaves.contains { $0.pattern.covers(pattern) }
  }
}

extension RegistryKey {
  /// `nil` where no client can read it either.
  var readablePin: SPKIPin? { try? pin.get() }
}
