import SslPinningRules

/// Pins that an app ships and that only a new release of it changes.
///
///     let pins = try FixedPins([
///       "api.example.com": ["sha256/…", "sha256/…"],
///       "example.com": HostPins(ca: ["sha256/…"], includesSubdomains: true),
///     ])
///     let client = try FixedPinsClient(pins: pins)
///
/// - Important: nothing heals a pin that went stale. Pin a second key that is kept offline beside
///   the one in use, or a CA's key; a registry (``SslPinningClient``) changes pins without a
///   release.
public struct FixedPins: Hashable, Sendable {
  /// What is pinned.
  package let entries: [PolicyEntry]
  /// Who vouches for servers before their pins are looked at.
  public let trust: TrustMode
  /// What happens to hosts that are not pinned.
  public let unlistedHosts: UnlistedHosts
  /// What in an Info.plist does not do what it seems to; see ``infoPlist(of:trust:unlistedHosts:)``.
  public let problems: [NSPinnedDomainsProblem]

  /// Pins from entries at hand.
  package init(
    entries: [PolicyEntry], trust: TrustMode = .system, unlistedHosts: UnlistedHosts = .refuse
  ) {
    self.init(entries: entries, trust: trust, unlistedHosts: unlistedHosts, problems: [])
  }

  init(
    entries: [PolicyEntry], trust: TrustMode, unlistedHosts: UnlistedHosts,
    problems: [NSPinnedDomainsProblem]
  ) {
    self.entries = entries
    self.trust = trust
    self.unlistedHosts = unlistedHosts
    self.problems = problems
  }

  /// Pins from literals. A host is a name, an address, `*.name` (exactly one more label) or
  /// `**.name` (the name and any depth below it); one that stands twice unites its pins,
  /// and of two settings the stricter counts.
  ///
  /// Strict, because nobody sees a typing error in a pin until it locks users out: whatever cannot
  /// be read is an error.
  ///
  /// - Throws: ``FixedPinsError``: `badHost`, `badPin`, `noPins`, `noSubdomains`.
  public init(
    _ hosts: KeyValuePairs<String, HostPins>, trust: TrustMode = .system,
    unlistedHosts: UnlistedHosts = .refuse
  ) throws(FixedPinsError) {
    try self.init(
      hosts: hosts.map { ($0, $1) }, trust: trust, unlistedHosts: unlistedHosts)
  }

  /// Leaf pins by host, as they come out of JSON or a property list. Otherwise like literals; where several
  /// hosts are wrong, the error is about the first by name.
  ///
  /// - Throws: ``FixedPinsError``: `badHost`, `badPin`, `noPins`.
  @_disfavoredOverload
  public init(
    _ hosts: [String: [String]], trust: TrustMode = .system,
    unlistedHosts: UnlistedHosts = .refuse
  ) throws(FixedPinsError) {
    try self.init(
      hosts: hosts.sorted { $0.key < $1.key }.map { ($0.key, HostPins(leaf: $0.value)) },
      trust: trust, unlistedHosts: unlistedHosts)
  }

  private init(
    hosts: [(String, HostPins)], trust: TrustMode, unlistedHosts: UnlistedHosts
  ) throws(FixedPinsError) {
    guard !hosts.isEmpty else { throw .noPins(host: nil) }
    var entries: [PolicyEntry] = []
    for (host, pins) in hosts { entries += try Self.entries(host, pins) }
    self.init(entries: entries, trust: trust, unlistedHosts: unlistedHosts)
  }

  private static func entries(
    _ host: String, _ pins: HostPins
  ) throws(FixedPinsError) -> [PolicyEntry] {
    var entry = PolicyEntry(try pattern(host), match: pins.match)
    for text in pins.leaf { entry.leaf.insert(try pin(text, of: host)) }
    for text in pins.ca { entry.ca.insert(try pin(text, of: host)) }
    guard !entry.leaf.isEmpty || !entry.ca.isEmpty else { throw .noPins(host: host) }
    guard pins.includesSubdomains else { return [entry] }
    guard case .exact(.name(let name)) = entry.pattern else { throw .noSubdomains(host: host) }
    var below = entry
    below.pattern = .oneMoreLabel(name)
    return [entry, below]
  }

  static func pattern(_ host: String) throws(FixedPinsError) -> HostPattern {
    do throws(HostNameError) { return try HostPattern(host) } catch { throw .badHost(error) }
  }

  private static func pin(_ text: String, of host: String) throws(FixedPinsError) -> Pin {
    do throws(PinSyntaxError) { return Pin(try SPKIPin(parsing: text)) } catch {
      throw .badPin(host: host, text: text, error)
    }
  }
}
