/// The entries of a list by the kinds of their patterns: one hash look-up per label of a name, however long
/// the list is.
struct PolicyTable: Hashable, Sendable {
  private var exact: [HostName: PolicyEntry] = [:]
  private var oneMoreLabel: [DNSName: PolicyEntry] = [:]
  private var anyDepth: [DNSName: PolicyEntry] = [:]

  init(_ entries: [PolicyEntry]) {
    for entry in entries {
      let unite = { (old: PolicyEntry?) in old.map { $0.united(with: entry) } ?? entry }
      switch entry.pattern {
      case .exact(let host): exact[host] = unite(exact[host])
      case .oneMoreLabel(let base): oneMoreLabel[base] = unite(oneMoreLabel[base])
      case .anyDepth(let base): anyDepth[base] = unite(anyDepth[base])
      }
    }
  }

  /// All entries, one a pattern, in no order.
  var entries: [PolicyEntry] {
    Array(exact.values) + Array(oneMoreLabel.values) + Array(anyDepth.values)
  }

  /// What all patterns that match `host` demand together.
  func entry(for host: HostName) -> PolicyEntry? {
    var found = exact[host]
    func contribute(_ entry: PolicyEntry?) {
      guard let entry else { return }
      found = found.map { $0.united(with: entry) } ?? entry
    }
    if case .name(let name) = host {
      if let parent = name.parent { contribute(oneMoreLabel[parent]) }
      var ancestor: DNSName? = name
      while let current = ancestor, !anyDepth.isEmpty {
        contribute(anyDepth[current])
        ancestor = current.parent
      }
    }
    return found
  }
}
