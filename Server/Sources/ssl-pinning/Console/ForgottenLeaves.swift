import SslPinningRules

/// The patterns of a list whose hosts had to show a certain leaf key, and now would get by without, or need another.
///
/// Clients keep no pins for them: what is listed has not vanished, and what has vanished adds nothing to hosts that
/// a listed pattern matches.
///
/// - A pattern whose own leaf pins are gone, be it listed still or matched by a wider one: unless a pattern that
///   covers it lists one of its keys. Another key serves other servers. Of keys that let in nobody before either
///   any leaf pin takes the place.
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
  /// What let servers in before; `nil` where that was any pin.
  var living: LivingPins?

  var patterns: [HostPattern] {
    let listed = list.patterns
    let old = Set(before.map(\.pattern))
    let gone = old.subtracting(list.keys.map(\.pattern))
    let matched = gone.subtracting(listed).subtracting(removed).filter { pattern in
      listed.contains { $0.touches(pattern) }
    }
    let own = own
    return listed.subtracting(list.keys.map(\.pattern)).union(matched).filter { pattern in
      guard gone.contains(pattern) else {
        // All of its hosts, or its apex.
        return [HostPattern.covers, HostPattern.touches].contains { matches in
          old.contains { matches($0)(pattern) }
            && !list.keys.contains { matches($0.pattern)(pattern) }
        }
      }
      let keys = alive(own[pattern] ?? [])
      return !leaves(for: pattern).contains { key in
        keys.isEmpty || key.readablePin.map(keys.contains) == true
      }
    }
  }

  /// The patterns that are gone and keep some of their keys, by those of wider patterns, and not all.
  var shortened: Set<HostPattern> {
    let forgotten = Set(patterns)
    let own = own
    let gone = Set(own.keys).subtracting(list.keys.map(\.pattern)).subtracting(forgotten)
    return gone.filter { pattern in
      let kept = Set(leaves(for: pattern).compactMap(\.readablePin))
      let keys = alive(own[pattern] ?? [])
      return !kept.isDisjoint(with: keys) && !kept.isSuperset(of: keys)
    }
  }

  /// The wider patterns that are gone, each with those patterns of hosts that stay listed, may have got along with a
  /// key of it, and list that one neither themselves nor by another: nobody keeps it for them.
  ///
  /// - Parameter listed: the patterns that are looked at, those that were listed before or all of them.
  func narrower(than listed: Set<HostPattern>) -> [(wide: HostPattern, patterns: [HostPattern])] {
    let patterns = list.patterns
    let open = list.settings.open(beside: patterns, denied: denied)
    let staying = patterns.intersection(listed).subtracting(open)
    let gone = Set(before.map(\.pattern)).subtracting(patterns)
    return gone.sorted { $0.description < $1.description }.compactMap { wide in
      let dropped = before.filter { $0.pattern == wide && living?.serves($0) ?? true }
      let pins = dropped.compactMap(\.readablePin)
      let left = staying.filter { pattern in
        guard wide.touches(pattern), list.keys.contains(where: { $0.pattern.touches(pattern) })
        else { return false }
        let kept = list.keys.filter { $0.pattern.covers(pattern) }.compactMap(\.readablePin)
        return !Set(kept).isSuperset(of: pins)
      }
      return left.isEmpty ? nil : (wide, left.sorted { $0.description < $1.description })
    }
  }

  /// Tells of them.
  func warnOfNarrower(than listed: Set<HostPattern>) {
    for (wide, patterns) in narrower(than: listed) {
      Console.say(
        "warning: servers of \(patterns.map(\.description).joined(separator: ", ")) that show a key which \(wide)"
          + " had are refused at once; hint: list that key for them, too, if one shows it")
    }
  }

  private var own: [HostPattern: [RegistryKey]] { Dictionary(grouping: before, by: \.pattern) }

  private func alive(_ keys: [RegistryKey]) -> Set<SPKIPin> {
    Set(keys.filter { living?.serves($0) ?? true }.compactMap(\.readablePin))
  }

  /// The leaf pins that count for all of its hosts, or for its apex where only that is matched.
  private func leaves(for pattern: HostPattern) -> [RegistryKey] {
    let reaches = reach(pattern)
    return list.keys.filter { reaches($0.pattern) && counts($0) }
  }

  private func reach(_ pattern: HostPattern) -> (HostPattern) -> Bool {
    list.patterns.contains { $0.covers(pattern) }
      ? { $0.covers(pattern) } : { $0.touches(pattern) }
  }

  /// Whether every connection to hosts of a forgotten pattern would be refused.
  func locksOut(_ pattern: HostPattern) -> Bool {
    let reaches = reach(pattern)
    return leaves(for: pattern).isEmpty
      && list.settings.allSatisfy { !reaches($0.pattern) || denied.isSuperset(of: $0.ca) }
  }

  private func counts(_ key: RegistryKey) -> Bool {
    key.readablePin.map { !denied.contains($0) } == true && key.expires.map { $0 >= time } ?? true
  }
}

extension RegistryKey {
  /// `nil` where no client can read it either.
  var readablePin: SPKIPin? { try? pin.get() }
}
