import Foundation
import SslPinningPlatform
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

/// Why fixed pins, or a client over them, could not be made. Whatever the case, do not fall back to
/// an unpinned session.
public enum FixedPinsError: Error, Equatable, Sendable {
  /// A host in code is no host name and no pattern.
  case badHost(HostNameError)
  /// A pin in code cannot be read.
  case badPin(host: String, text: String, PinSyntaxError)
  /// No host is pinned, or this one has no pin: an empty list would refuse or pass everything.
  case noPins(host: String?)
  /// `includesSubdomains` for an IP address or a pattern, which say themselves what they cover.
  case noSubdomains(host: String)
  /// The bundle has no Info.plist.
  case noInfoPlist(bundle: String)
  /// The property list cannot be read.
  case badPropertyList(PropertyListError)
  /// The property list has no `NSPinnedDomains`.
  case noPinnedDomains(NSPinnedDomainsError)
  /// `NSPinnedDomains` is there, and no host is pinned by it; what is wrong with it.
  case nothingPinned([NSPinnedDomainsProblem])
  /// A certificate file cannot be read.
  case badCertificateFile(name: String, CertificateFileError)
  /// The certificate at this index is not one in DER.
  case badCertificate(index: Int, CertificateSyntaxError)
  /// The bundle has no file that ends in `.cer`, `.der`, `.crt` or `.pem`.
  case noCertificateFile(bundle: String)
  /// A file of the bundle has several different certificates, as those with all public CAs have.
  case severalCertificates(name: String, count: Int)
  /// Failed pins cannot be reported as configured.
  case badReporting(ReportingError)
  /// An anchor cannot be used.
  case badAnchor(TrustError)
  /// The settings contradict each other.
  case badConfiguration(PolicyError)
  /// This process cannot pin connections.
  case platformCannotPin(reason: String)
}

extension FixedPinsError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .badHost(let error): "\(error)"
    case .badPin(let host, let text, let error):
      "a pin of \(host) cannot be read, \"\(text.prefix(60))\": \(error)"
    case .noPins(let host): host.map { "\($0) has no pins" } ?? "no host has pins"
    case .noSubdomains(let host):
      "\(host) cannot include subdomains; hint: patterns are *.name and **.name"
    case .noInfoPlist(let bundle):
      "\(bundle) has no Info.plist; hint: give the file's URL"
    case .badPropertyList(let error): "\(error)"
    case .noPinnedDomains(let error): "\(error)"
    case .nothingPinned(let problems): Self.nothingPinned(problems)
    case .badCertificateFile(let name, let error): "\(name): \(error)"
    case .badCertificate(let index, let error): "certificate \(index): \(error)"
    case .noCertificateFile(let bundle):
      "no certificate file in \(bundle); hint: .cer, .der, .crt and .pem are looked for"
    case .severalCertificates(let name, let count):
      "\(name) has \(count) certificates, perhaps a list of all public CAs; hint: name the files you mean with read(files:)"
    case .badReporting(let error): "\(error)"
    case .badAnchor(let error): "an anchor cannot be used: \(error)"
    case .badConfiguration(let error): "\(error)"
    case .platformCannotPin(let reason): "this platform cannot pin: \(reason)"
    }
  }

  /// The causes in a row, and behind them all one hint: the first that there is.
  private static func nothingPinned(_ problems: [NSPinnedDomainsProblem]) -> String {
    let parts = problems.prefix(3).map { "\($0)".components(separatedBy: "; hint: ") }
    let causes = ["NSPinnedDomains pins no host"] + parts.compactMap(\.first)
    let hint = parts.lazy.compactMap { $0.dropFirst().first }.first
    return causes.joined(separator: "; ") + (hint.map { "; hint: \($0)" } ?? "")
  }
}

extension FixedPinsError: ExplainedError {}
