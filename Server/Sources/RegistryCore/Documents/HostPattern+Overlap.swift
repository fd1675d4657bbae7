import SslPinningRules

extension HostPattern {
  /// Whether there is a host that both patterns speak of: their pins are then one list to a client.
  func overlaps(_ other: HostPattern) -> Bool {
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
