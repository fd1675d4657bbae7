/// What a pin list says of the hosts that one pattern matches.
public struct PolicyEntry: Hashable, Sendable {
  /// How leaf and CA pins go together where a host has both.
  public enum Match: Hashable, Sendable {
    /// Both lists must match: Apple's rule, and the stricter one.
    case all
    /// One of the two is enough.
    case any
  }

  /// Whether a missing pin refuses, or is only told.
  public enum Enforcement: Hashable, Sendable {
    /// A missing pin refuses the connection.
    case enforce
    /// A missing pin is told and forgiven. A bad chain and a denied key never are.
    case reportOnly
  }

  /// The hosts.
  public var pattern: HostPattern
  /// Pins that must match the leaf.
  public var leaf: PinSet
  /// Pins that must match a certificate at index 1 or higher of the validated path.
  public var ca: PinSet
  /// How the two go together.
  public var match: Match
  /// Whether a missing pin refuses.
  public var enforcement: Enforcement

  /// An entry. With both lists empty its hosts are listed and refused: an entry whose pins cannot
  /// be read must not leave its host open.
  public init(
    _ pattern: HostPattern, leaf: PinSet = PinSet(), ca: PinSet = PinSet(), match: Match = .all,
    enforcement: Enforcement = .enforce
  ) {
    self.pattern = pattern
    self.leaf = leaf
    self.ca = ca
    self.match = match
    self.enforcement = enforcement
  }

  /// What two entries that speak of the same host demand together: pins united per role, and of two
  /// settings the stricter.
  func united(with other: PolicyEntry) -> PolicyEntry {
    var both = self
    both.leaf.formUnion(other.leaf)
    both.ca.formUnion(other.ca)
    both.match = match == .all || other.match == .all ? .all : .any
    both.enforcement =
      enforcement == .enforce || other.enforcement == .enforce ? .enforce : .reportOnly
    return both
  }
}
