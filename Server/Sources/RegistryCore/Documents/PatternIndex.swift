import SslPinningRules

/// The patterns for which endpoints have published keys: answers whether another endpoint's overlap with
/// one of these, without asking all of them.
package struct PatternIndex: Sendable {
  /// Under what a pattern can be found.
  private enum Handle: Hashable {
    case host(HostName)
    /// Exact names with this parent.
    case child(DNSName)
    /// `*.` patterns of this name.
    case labels(DNSName)
  }

  private var ids: [Handle: Set<String>] = [:]
  /// `**.` patterns reach below every one of their names, so they are compared one by one.
  private var deep: [String: [HostPattern]] = [:]
  private var all: [String: [HostPattern]] = [:]

  /// None.
  package init() {}

  /// Enters an endpoint that has a published key.
  package mutating func insert(_ id: String, _ patterns: [HostPattern]) {
    guard all.updateValue(patterns, forKey: id) == nil else { return }
    for pattern in patterns {
      for handle in Self.handles(of: pattern) { ids[handle, default: []].insert(id) }
      if case .anyDepth = pattern { deep[id, default: []].append(pattern) }
    }
  }

  /// Whether another endpoint than `id` is entered for a host that these patterns speak of, and is one of
  /// those that are meant.
  package func overlaps(
    _ id: String, _ patterns: [HostPattern], where isMeant: (String) -> Bool = { _ in true }
  ) -> Bool {
    func isMet(_ other: String) -> Bool { other != id && isMeant(other) }
    for pattern in patterns {
      if case .anyDepth = pattern {
        if all.contains(where: { $0.value.contains { $0.overlaps(pattern) } && isMet($0.key) }) {
          return true
        }
        continue
      }
      for handle in Self.questions(of: pattern) where ids[handle]?.contains(where: isMet) == true {
        return true
      }
      if deep.contains(where: { $0.value.contains { $0.overlaps(pattern) } && isMet($0.key) }) {
        return true
      }
    }
    return false
  }

  /// What both these patterns and other endpoints than `id` speak of.
  func hosts(of patterns: [HostPattern], but id: String) -> Set<HostPattern> {
    var found: Set<HostPattern> = []
    for pattern in patterns {
      for other in ids(overlapping: pattern) where other != id {
        for their in all[other] ?? [] where their.overlaps(pattern) {
          found.insert(pattern.covering.contains(their) ? pattern : their)
        }
      }
    }
    return found
  }

  /// The endpoints that speak of all hosts of a pattern.
  func ids(covering pattern: HostPattern) -> Set<String> {
    let covering = pattern.covering
    return ids(overlapping: pattern).filter { all[$0]?.contains(where: covering.contains) == true }
  }

  private func ids(overlapping pattern: HostPattern) -> Set<String> {
    if case .anyDepth = pattern {
      return Set(all.filter { $0.value.contains { $0.overlaps(pattern) } }.keys)
    }
    let below = Self.questions(of: pattern).reduce(into: Set<String>()) {
      $0.formUnion(ids[$1] ?? [])
    }
    return below.union(deep.filter { $0.value.contains { $0.overlaps(pattern) } }.keys)
  }

  private static func handles(of pattern: HostPattern) -> [Handle] {
    switch pattern {
    case .exact(let host):
      guard case .name(let name) = host, let parent = name.parent else { return [.host(host)] }
      return [.host(host), .child(parent)]
    case .oneMoreLabel(let name): return [.labels(name)]
    case .anyDepth: return []
    }
  }

  private static func questions(of pattern: HostPattern) -> [Handle] {
    switch pattern {
    case .exact(let host):
      guard case .name(let name) = host, let parent = name.parent else { return [.host(host)] }
      return [.host(host), .labels(parent)]
    case .oneMoreLabel(let name): return [.labels(name), .child(name)]
    case .anyDepth: return []
    }
  }
}

extension HostPattern {
  /// The other patterns that speak of all its hosts, and the one that crosses it.
  var wider: [HostPattern] { covering.dropFirst() + [crossing].compactMap(\.self) }

  /// The patterns that speak of all hosts that this one speaks of, itself first.
  var covering: [HostPattern] {
    var found = [self]
    var ancestor: DNSName?
    switch self {
    case .exact(.address): return found
    case .exact(.name(let name)):
      if let parent = name.parent { found.append(.oneMoreLabel(parent)) }
      ancestor = name
    case .oneMoreLabel(let name): ancestor = name
    case .anyDepth(let name): ancestor = name.parent
    }
    while let name = ancestor {
      found.append(.anyDepth(name))
      ancestor = name.parent
    }
    return found
  }

  /// Of a `**.` pattern the `*.` pattern that speaks of its name, and of others beside: neither is the wider one.
  var crossing: HostPattern? {
    guard case .anyDepth(let name) = self, let parent = name.parent else { return nil }
    return .oneMoreLabel(parent)
  }

  /// Whether there is a host that both patterns speak of: their pins are then one list to a client.
  package func overlaps(_ other: HostPattern) -> Bool {
    switch (self, other) {
    case (.exact(let host), _): other.matches(host)
    case (_, .exact(let host)): matches(host)
    case (.oneMoreLabel(let own), .oneMoreLabel(let base)): own == base
    case (.anyDepth(let own), .anyDepth(let base)):
      matches(.name(base)) || other.matches(.name(own))
    case (.oneMoreLabel(let name), .anyDepth(let base)),
      (.anyDepth(let base), .oneMoreLabel(let name)):
      // The name below which the labels stand, or one of those labels, is at or under the base.
      HostPattern.anyDepth(base).matches(.name(name)) || base.parent == name
    }
  }
}
