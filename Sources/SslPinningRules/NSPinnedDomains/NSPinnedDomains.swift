/// The pins of an Info.plist, by Apple's rules, so that the same file pins on every platform.
///
///     NSAppTransportSecurity
///       NSPinnedDomains
///         example.com
///           NSIncludesSubdomains    <true/>
///           NSPinnedLeafIdentities  [ { SPKI-SHA256-BASE64 "…" } ]
///           NSPinnedCAIdentities    [ { SPKI-SHA256-BASE64 "…" } ]
///
/// - Domains are compared without case, as bytes. One trailing dot is dropped from either side.
/// - `NSIncludesSubdomains` counts only if it is the boolean true, and covers exactly one more
///   label: `a.example.com`, not `b.a.example.com`. The domain itself stays covered.
/// - The lists of a host's own entry and of its parent's entry are united.
/// - Leaf identities match the leaf, CA identities a certificate above it, never the leaf.
/// - If a host has both lists, both must match. If it has neither, it is not pinned.
/// - A list without any readable identity matches nothing: every connection to the host is refused.
/// - Pins tighten and never loosen: unpinned hosts are left to the system (``unlistedHosts``), and
///   pinned ones must satisfy the system as well.
///
/// Two rules are stricter than Apple's, at no cost: a domain whose value is not a dictionary is
/// refused instead of skipped, and base64 has one spelling.
///
/// Sources: Apple's reference of these keys, and the behaviour of its platforms if the reference does not
/// say. If a property list file has a key twice, one of the two is lost before these rules see it.
public struct NSPinnedDomains: Hashable, Sendable {
  /// The pinned hosts, in the order of the domains' bytes.
  public let entries: [PolicyEntry]
  /// Members that do not do what they seem to, in the same order.
  public let problems: [NSPinnedDomainsProblem]

  /// How Apple's rules treat hosts without an entry: they are left to system trust.
  public static let unlistedHosts = UnlistedHosts.systemTrust

  /// Reads the root dictionary of an Info.plist.
  ///
  /// - Throws: ``NSPinnedDomainsError`` if there is no dictionary under `NSAppTransportSecurity` and
  ///   `NSPinnedDomains`. Faults inside it are reported in ``problems``.
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

  /// Reads the members of `NSPinnedDomains`.
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
  /// The members in the order of their keys' bytes: a dictionary has no order, and reports must not
  /// change from run to run.
  var inByteOrder: [(key: String, value: PropertyListValue)] {
    sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
  }
}

/// Something under `NSPinnedDomains` that does not do what it seems to. Reported, never fatal.
public struct NSPinnedDomainsProblem: Hashable, Sendable {
  /// What is wrong.
  public enum Fault: Hashable, Sendable {
    /// The domain is not a host name; the entry pins nothing, here and on Apple platforms.
    case unreadableDomain(HostNameError)
    /// The domain ends in a dot. It is pinned here; Apple platforms never match it.
    case trailingDot
    /// The domain's value is not a dictionary; the domain is refused. Apple platforms skip it.
    case entryNotADictionary(found: String)
    /// The entry has no list of identities; it pins nothing, here and on Apple platforms.
    case noList
    /// `NSIncludesSubdomains` is not a boolean; subdomains are not pinned, here and on Apple platforms.
    case notABoolean(found: String)
    /// `NSIncludesSubdomains` of an IP address, which has none.
    case subdomainsOfAddress
    /// The list is not an array: nothing can match it.
    case listNotAnArray(found: String)
    /// The list is empty: nothing can match it.
    case emptyList
    /// The identity is not a dictionary with a text under `SPKI-SHA256-BASE64`; it never matches.
    case noDigest
    /// The identity's text is not a pin; it never matches.
    case unreadableDigest(PinSyntaxError)
    /// The key is unknown and ignored.
    case unknownKey
  }

  /// The place: keys and indices from the root of the property list.
  public let path: String
  /// What is wrong there.
  public let fault: Fault

  init(_ path: String, _ fault: Fault) {
    self.path = path
    self.fault = fault
  }
}

extension NSPinnedDomainsProblem: CustomStringConvertible {
  public var description: String { "\(path): \(fault)" }
}

extension NSPinnedDomainsProblem.Fault: CustomStringConvertible {
  public var description: String {
    switch self {
    case .unreadableDomain(.misplacedWildcard):
      "domains have no wildcards, so this one is not pinned; hint: NSIncludesSubdomains"
    case .unreadableDomain(let error): "not pinned: \(error)"
    case .trailingDot: "Apple platforms never match a domain that ends in a dot"
    case .entryNotADictionary(let found): "\(found) where a dictionary belongs; the host is refused"
    case .noList:
      "no identities, so nothing is pinned; hint: NSPinnedLeafIdentities, NSPinnedCAIdentities"
    case .notABoolean(let found): "\(found) where a boolean belongs; subdomains are not pinned"
    case .subdomainsOfAddress: "an IP address has no subdomains"
    case .listNotAnArray(let found): "\(found) where an array belongs; it matches nothing"
    case .emptyList: "an empty list matches nothing: connections are refused"
    case .noDigest: "no text under SPKI-SHA256-BASE64; the identity never matches"
    case .unreadableDigest(let error): "the identity never matches: \(error)"
    case .unknownKey: "unknown key, which nothing reads"
    }
  }
}

/// Why a property list has no usable `NSPinnedDomains`.
public enum NSPinnedDomainsError: Error, Hashable, Sendable {
  /// This key is missing.
  case missing(path: String)
  /// The value of this key is not a dictionary.
  case notADictionary(path: String, found: String)
}

extension NSPinnedDomainsError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .missing(let path):
      "no \(path); hint: NSPinnedDomains stands under NSAppTransportSecurity"
    case .notADictionary(let path, let found):
      "\(found) where \(path.isEmpty ? "the property list's" : path + "'s") dictionary belongs"
    }
  }
}

/// A property list as plain values, so that rules over it need no Foundation.
///
/// A boolean is never a number: `<true/>` and `<integer>1</integer>` are different values, whatever a
/// platform's bridging does with them.
public enum PropertyListValue: Hashable, Sendable {
  /// Members by key.
  case dictionary([String: PropertyListValue])
  /// Members in order.
  case array([PropertyListValue])
  /// A text.
  case string(String)
  /// `<true/>` or `<false/>`.
  case boolean(Bool)
  /// A whole number.
  case integer(Int64)
  /// Any other number.
  case real(Double)
  /// Bytes.
  case data([UInt8])
  /// A point in time, in seconds since 1970.
  case date(Double)

  /// The kind of the value, for messages.
  public var kind: String {
    switch self {
    case .dictionary: "a dictionary"
    case .array: "an array"
    case .string: "a string"
    case .boolean: "a boolean"
    case .integer, .real: "a number"
    case .data: "data"
    case .date: "a date"
    }
  }
}
