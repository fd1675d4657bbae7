/// What an Info.plist pins, by Apple's rules: the same file pins on every platform.
///
///     NSAppTransportSecurity
///       NSPinnedDomains
///         example.com
///           NSIncludesSubdomains    <true/>
///           NSPinnedLeafIdentities  [ { SPKI-SHA256-BASE64 "…" } ]
///           NSPinnedCAIdentities    [ { SPKI-SHA256-BASE64 "…" } ]
///
/// - Domains are compared without case, as bytes. One trailing dot is dropped from either side.
/// - `NSIncludesSubdomains` counts only where it is the boolean true, and covers exactly one more
///   label: `a.example.com`, not `b.a.example.com`. The domain itself stays covered.
/// - What a host's own entry and its parent's say is united, per list.
/// - Leaf identities match the leaf, CA identities a certificate above it, never the leaf.
/// - Where a host has both lists, both must match. Where it has neither, it is not pinned.
/// - A list that is present and has no identity that can be read matches nothing: every connection
///   to the host is refused.
/// - Pins tighten and never loosen: hosts that no entry pins are left to the system
///   (``unlistedHosts``), and pinned ones must pass the system's judgement as well.
///
/// Stricter than Apple's, because it costs nobody anything: a domain whose value is no dictionary is
/// refused instead of passed over, and base64 has one spelling.
///
/// Sources: Apple's reference of the keys named above, and what its platforms do where that is
/// silent. A property list file that has one key twice keeps one of the two before these rules see
/// it.
public struct NSPinnedDomains: Hashable, Sendable {
  /// The pinned hosts, in the order of the domains' bytes.
  public let entries: [PolicyEntry]
  /// What does not do what it seems to, in the same order.
  public let problems: [NSPinnedDomainsProblem]

  /// What becomes of hosts without an entry under Apple's rules: they are left to system trust.
  public static let unlistedHosts = UnlistedHosts.systemTrust

  /// Reads the root dictionary of an Info.plist.
  ///
  /// - Throws: ``NSPinnedDomainsError`` where there is no dictionary under
  ///   `NSAppTransportSecurity` and `NSPinnedDomains`. Whatever is wrong inside it is told in
  ///   ``problems``.
  public init(infoPlist: PropertyListValue) throws(NSPinnedDomainsError) {
    var reached = infoPlist
    var path = ""
    for key in ["NSAppTransportSecurity", "NSPinnedDomains"] {
      guard case .dictionary(let members) = reached else {
        throw .notADictionary(path: path, found: reached.kind)
      }
      path += path.isEmpty ? key : "." + key
      guard let next = members[key] else { throw .missing(path: path) }
      reached = next
    }
    guard case .dictionary(let domains) = reached else {
      throw .notADictionary(path: path, found: reached.kind)
    }
    self.init(domains: domains, path: path)
  }

  /// Reads what stands under `NSPinnedDomains`.
  public init(domains: [String: PropertyListValue]) {
    self.init(domains: domains, path: "NSPinnedDomains")
  }

  private init(domains: [String: PropertyListValue], path: String) {
    var entries: [PolicyEntry] = []
    var problems: [NSPinnedDomainsProblem] = []
    for (domain, value) in domains.inByteOrder {
      let reader = PinnedDomainReader(domain: domain, value: value, path: path)
      entries += reader.entries
      problems += reader.problems
    }
    self.entries = entries
    self.problems = problems
  }
}

extension [String: PropertyListValue] {
  /// The members in the order of their keys' bytes: a dictionary has no order of its own, and what
  /// is told should not change from run to run.
  var inByteOrder: [(key: String, value: PropertyListValue)] {
    sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
  }
}
