/// Something under `NSPinnedDomains` that does not do what it seems to. Told, never fatal.
public struct NSPinnedDomainsProblem: Hashable, Sendable {
  /// What is wrong.
  public enum Fault: Hashable, Sendable {
    /// The domain is no host name; the entry pins nothing, here and on Apple platforms.
    case unreadableDomain(HostNameError)
    /// The domain ends in a dot. It is pinned here; Apple platforms never match it.
    case trailingDot
    /// The domain's value is not a dictionary; the domain is refused. Apple platforms pass over it.
    case entryNotADictionary(found: String)
    /// The entry has no list of identities; it pins nothing, here and on Apple platforms.
    case noList
    /// `NSIncludesSubdomains` is not a boolean; subdomains are not pinned, here and there.
    case notABoolean(found: String)
    /// `NSIncludesSubdomains` of an IP address, which has none.
    case subdomainsOfAddress
    /// The list is not an array: no identity of it can match.
    case listNotAnArray(found: String)
    /// The list is empty: no identity of it can match.
    case emptyList
    /// The identity is not a dictionary with a text under `SPKI-SHA256-BASE64`; it never matches.
    case noDigest
    /// The identity's text is not a pin; it never matches.
    case unreadableDigest(PinSyntaxError)
    /// No such key is known: nothing reads it.
    case unknownKey
  }

  /// Where: keys and indices from the root of the property list.
  public let path: String
  /// What.
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
