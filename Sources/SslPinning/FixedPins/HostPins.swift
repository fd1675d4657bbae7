import SslPinningRules

/// The pins of one host, as an app writes them in its code.
///
/// A list of texts is a list of leaf pins; texts are read when ``FixedPins`` is made of them.
public struct HostPins: Hashable, Sendable {
  /// Whether both lists must match, or one of them is enough.
  public typealias Match = PolicyEntry.Match

  /// Pins of the server's own key: `sha256/…`, `pin-sha256="…"` or plain base64.
  public var leaf: [String]
  /// Pins of keys above the leaf, in the same spellings.
  public var ca: [String]
  /// Whether names with exactly one more label are covered as well, as under Apple's
  /// `NSIncludesSubdomains`. For any depth write the host as `**.example.com`.
  public var includesSubdomains: Bool
  /// How the two lists go together where both have pins.
  public var match: Match

  /// The pins of one host.
  public init(
    leaf: [String] = [], ca: [String] = [], includesSubdomains: Bool = false,
    match: Match = .all
  ) {
    self.leaf = leaf
    self.ca = ca
    self.includesSubdomains = includesSubdomains
    self.match = match
  }
}

extension HostPins: ExpressibleByArrayLiteral {
  /// Leaf pins.
  public init(arrayLiteral elements: String...) { self.init(leaf: elements) }
}
