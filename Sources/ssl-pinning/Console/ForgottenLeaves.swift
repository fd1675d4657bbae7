import Pinning

/// The patterns of a list whose hosts had to show a certain leaf key, and now would get by without, or need another.
///
/// Clients keep no pins for them: what is listed has not vanished, and what has vanished adds nothing to hosts that
/// a listed pattern matches.
///
/// - A pattern whose own leaf pins are gone, be it listed still or matched by a wider one: unless a pattern that
///   covers it lists one of its keys. Another key serves other servers.
/// - A listed pattern without leaf pins of its own: where those of a wider one are gone, and with them the demand.
struct ForgottenLeaves {
  /// The entries of the documents before.
  let before: [RegistryKey]
  /// What takes their place.
  let list: Registry
  /// Patterns that may vanish. What is listed as well stays listed.
  let removed: Set<HostPattern>
  let denied: Set<SPKIPin>
  /// Unix time in seconds at which a pin must not be over.
  let time: Int64

  var patterns: [HostPattern] {
    let listed = list.patterns
    let old = Set(before.map(\.pattern))
    let gone = old.subtracting(list.keys.map(\.pattern))
    let matched = gone.subtracting(listed).subtracting(removed).filter { pattern in
      listed.contains { $0.covers(pattern) }
    }
    let own = Dictionary(grouping: before, by: \.pattern)
    return listed.subtracting(list.keys.map(\.pattern)).union(matched).filter { pattern in
      guard gone.contains(pattern) else {
        return old.contains { $0.covers(pattern) }
          && !list.keys.contains { $0.pattern.covers(pattern) }
      }
      let keys = Set((own[pattern] ?? []).compactMap(\.readablePin))
      return !list.keys.contains {
        $0.pattern.covers(pattern) && counts($0) && ($0.readablePin.map(keys.contains) ?? false)
      }
    }
  }

  /// Whether every connection to hosts of a forgotten pattern would be refused.
  func locksOut(_ pattern: HostPattern) -> Bool {
    !list.keys.contains { $0.pattern.covers(pattern) && counts($0) }
      && list.settings.allSatisfy {
        !$0.pattern.covers(pattern) || denied.isSuperset(of: $0.ca)
      }
  }

  private func counts(_ key: RegistryKey) -> Bool {
    key.readablePin.map { !denied.contains($0) } == true && key.expires.map { $0 >= time } ?? true
  }
}

extension RegistryKey {
  /// `nil` where no client can read it either.
  var readablePin: SPKIPin? { try? pin.get() }
}
