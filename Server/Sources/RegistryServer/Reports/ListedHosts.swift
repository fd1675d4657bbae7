import SslPinningRules

/// Which hosts the published documents speak of: looked up by name, however many patterns there are.
struct ListedHosts: Sendable {
  private var exact: Set<HostName> = []
  private var oneMoreLabel: Set<DNSName> = []
  private var anyDepth: Set<DNSName> = []

  /// The hosts of these patterns.
  init(_ patterns: some Sequence<HostPattern>) {
    for pattern in patterns {
      switch pattern {
      case .exact(let host): exact.insert(host)
      case .oneMoreLabel(let base): oneMoreLabel.insert(base)
      case .anyDepth(let base): anyDepth.insert(base)
      }
    }
  }

  /// The hosts that a configuration publishes keys for.
  init(_ documents: [DocumentConfiguration]) {
    self.init(documents.lazy.flatMap { $0.endpoints.lazy.flatMap(\.patterns) })
  }

  /// Whether a pattern matches the host; see ``HostPattern``.
  func contains(_ host: HostName) -> Bool {
    if exact.contains(host) { return true }
    guard case .name(let name) = host else { return false }
    if let parent = name.parent, oneMoreLabel.contains(parent) { return true }
    guard !anyDepth.isEmpty else { return false }
    var ancestor: DNSName? = name
    while let current = ancestor {
      if anyDepth.contains(current) { return true }
      ancestor = current.parent
    }
    return false
  }
}
