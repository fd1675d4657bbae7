import SslPinningRules

/// An endpoint whose keys are watched.
public struct WatchedEndpoint: Sendable, Hashable {
  /// The name that is looked up, sent as SNI and expected in the certificate.
  public var fqdn: HostName { didSet { id = Self.id(of: self) } }
  /// The TCP port.
  public var port: UInt16 { didSet { id = Self.id(of: self) } }
  /// Connect here instead of resolving `fqdn`; the name is still sent and checked.
  public var address: IPAddress? { didSet { id = Self.id(of: self) } }
  /// The hosts for which the endpoint's key is published.
  public var patterns: [HostPattern]
  /// Within how many milliseconds a changed key of this endpoint is published; `nil` means
  /// ``TLSConfiguration/interval``.
  public var interval: Int64?
  /// Who decides about a new key of this endpoint; `nil` means ``TLSConfiguration/approval``.
  public var approval: ApprovalMode?
  /// Whether each region is shown its own key, so that vantage points need not agree.
  public var isUnion: Bool
  /// CAs, by their keys, under which a new key of this endpoint needs no approval.
  public var issuers: NamedIssuers
  /// What clients ask of its hosts besides a listed key.
  public var terms: HostTerms
  /// What the configuration has clients ask for, if a person said something else.
  package var overruled: HostTerms?
  /// Whether it is one of ``DocumentState/orphans``: nobody probes it.
  package private(set) var isOrphan = false
  /// Identifies an endpoint of a document in state and in logs: `www.example.com:443`, with
  /// ` at 127.0.0.1` if an address is set, and with ` for www.example.com` if it is an orphan.
  public private(set) var id = ""

  /// An endpoint.
  ///
  /// - Parameter patterns: `nil` means the name itself and one label below it; the name alone for
  ///   an IP address.
  public init(
    fqdn: HostName, port: UInt16 = 443, address: IPAddress? = nil, patterns: [HostPattern]? = nil,
    interval: Int64? = nil, approval: ApprovalMode? = nil, isUnion: Bool = false,
    issuers: NamedIssuers = .none, terms: HostTerms = .standard
  ) {
    self.fqdn = fqdn
    self.port = port
    self.address = address
    self.interval = interval
    self.approval = approval
    self.isUnion = isUnion
    self.issuers = issuers
    self.terms = terms
    self.patterns = patterns ?? Self.standardPatterns(for: fqdn)
    // Stored, because every probe needs it and building it is comparatively slow.
    id = Self.id(of: self)
  }

  /// What an id says of an endpoint; `nil` if it is none.
  init?(id: String) {
    let halves = id.split(separator: Self.orphanMark, maxSplits: 1)
    if halves.count == 2 {
      guard let pattern = try? HostPattern(String(halves[1])) else { return nil }
      self.init(id: String(halves[0]))
      self = orphan(for: pattern)
      return
    }
    let parts = id.split(separator: " at ", maxSplits: 1)
    guard let place = parts.first, let colon = place.lastIndex(of: ":"),
      let port = UInt16(place[place.index(after: colon)...]),
      let fqdn = try? HostName(Self.withoutBrackets(place[..<colon]))
    else { return nil }
    var address: IPAddress?
    if parts.count == 2 {
      guard case .address(let value)? = try? HostName(String(parts[1])) else { return nil }
      address = value
    }
    self.init(fqdn: fqdn, port: port, address: address)
  }

  private static func withoutBrackets(_ host: Substring) -> String {
    host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : String(host)
  }

  /// The apex and `*.`: pinning only the latter, as the reference server does, would leave the apex unpinned.
  static func standardPatterns(for fqdn: HostName) -> [HostPattern] {
    switch fqdn {
    case .name(let name): [.exact(fqdn), .oneMoreLabel(name)]
    case .address: [.exact(fqdn)]
    }
  }

  private static let orphanMark = " for "

  /// The endpoint that spoke for an orphan, by its id; its own id otherwise.
  package var place: String { isOrphan ? Self.place(of: self) : id }

  /// What is left of it for one of its patterns.
  func orphan(for pattern: HostPattern) -> WatchedEndpoint {
    var orphan = self
    (orphan.patterns, orphan.isOrphan) = ([pattern], true)
    orphan.id = Self.id(of: orphan)
    return orphan
  }

  static func isOrphan(_ id: String) -> Bool { id.contains(orphanMark) }

  private static func id(of endpoint: WatchedEndpoint) -> String {
    guard endpoint.isOrphan, let pattern = endpoint.patterns.first else {
      return place(of: endpoint)
    }
    return place(of: endpoint) + orphanMark + pattern.description
  }

  private static func place(of endpoint: WatchedEndpoint) -> String {
    let host =
      if case .address(let address) = endpoint.fqdn, address.bytes.count == 16 {
        "[\(endpoint.fqdn)]"
      } else {
        "\(endpoint.fqdn)"
      }
    return "\(host):\(endpoint.port)" + (endpoint.address.map { " at \($0)" } ?? "")
  }

  /// The name in an endpoint's id, in brackets if it is an IPv6 address.
  static func host(inID id: String) -> String {
    let place = id.prefix { $0 != " " }
    return String(place[..<(place.lastIndex(of: ":") ?? place.endIndex)])
  }
}

/// CAs that an operator named in the configuration: a new key under one of them needs no approval.
///
/// They may stand anywhere in the validated path above the leaf. Name roots, preferably two of different CAs: a
/// CA replaces intermediates without notice.
public struct NamedIssuers: Sendable, Hashable {
  /// As configured: pins in base64, and names of PEM files.
  public let entries: [String]
  /// The SHA-256 of their SubjectPublicKeyInfos.
  public let pins: Set<SPKIPin>
  /// Warnings about the list, for people.
  package let doubts: [String]

  /// No CA.
  public static let none = NamedIssuers(entries: [], pins: [], doubts: [])

  package init(entries: [String], pins: Set<SPKIPin>, doubts: [String]) {
    (self.entries, self.pins, self.doubts) = (entries, pins, doubts)
  }
}

/// Who decides about a confirmed new key.
public enum ApprovalMode: String, Sendable, Hashable, CaseIterable {
  /// The rules: a confirmed key is published unless a rule holds it for a person.
  case automatic = "auto"
  /// A person, for every key after the endpoint's first.
  case manual
}
