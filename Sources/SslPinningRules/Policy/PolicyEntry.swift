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
  /// Whole certificates, one of which must stand on the validated path, leaf or above; empty where
  /// keys alone count.
  public var certificates: Set<CertificateFingerprint>
  /// Roles whose list is present, whether or not a pin of it could be read: an empty list that is
  /// present matches nothing, one that is absent demands nothing. Pins always demand their role.
  public var required: Set<PinEvaluation.PinRole>
  /// How the roles go together.
  public var match: Match
  /// Whether a missing pin refuses.
  public var enforcement: Enforcement
  /// What the list demands of the hosts and this client does not know: they are refused, report-only or not.
  package var unknownDemands: Set<String> = []

  /// An entry. With both lists empty its hosts are listed and refused: an entry whose pins cannot
  /// be read must not leave its host open.
  public init(
    _ pattern: HostPattern, leaf: PinSet = PinSet(), ca: PinSet = PinSet(),
    certificates: Set<CertificateFingerprint> = [], required: Set<PinEvaluation.PinRole> = [],
    match: Match = .all, enforcement: Enforcement = .enforce
  ) {
    self.pattern = pattern
    self.leaf = leaf
    self.ca = ca
    self.certificates = certificates
    self.required = required
    self.match = match
    self.enforcement = enforcement
  }

  /// What two entries that speak of the same host demand together: pins united per role, and of two
  /// settings the stricter.
  func united(with other: PolicyEntry) -> PolicyEntry {
    var both = self
    both.leaf.formUnion(other.leaf)
    both.ca.formUnion(other.ca)
    both.certificates.formUnion(other.certificates)
    both.required.formUnion(other.required)
    both.unknownDemands.formUnion(other.unknownDemands)
    both.match = match == .all || other.match == .all ? .all : .any
    both.enforcement =
      enforcement == .enforce || other.enforcement == .enforce ? .enforce : .reportOnly
    return both
  }

  /// What hosts of this entry must show and only a validated path could: under
  /// ``TrustMode/pinnedKeysOnly`` they are refused. `nil` where the leaf's pins alone can decide.
  var uncheckableRole: PinEvaluation.PinRole? {
    if match == .any, demands(.leaf) { return nil }
    return [.ca, .certificate].first(where: demands)
  }

  /// Whether hosts of this entry must show something of this role.
  func demands(_ role: PinEvaluation.PinRole) -> Bool {
    if required.contains(role) { return true }
    return switch role {
    case .leaf: !leaf.isEmpty
    case .ca: !ca.isEmpty
    case .certificate: !certificates.isEmpty
    }
  }
}

/// The pins of one role (leaf or CA) for one host, united over every entry that speaks of it.
public struct PinSet: Hashable, Sendable {
  /// How long after its expiry a pin still counts, in seconds: 26 hours, so that neither a time
  /// zone nor a clock that is a day off locks anyone out.
  public static let expiryTolerance: Int64 = 26 * 3600

  private var latestExpiry: [SPKIPin: Int64]

  /// The union of these pins. Of a pin that stands twice, the later expiry counts.
  public init(_ pins: some Sequence<Pin> = []) {
    latestExpiry = [:]
    for pin in pins { insert(pin) }
  }

  /// Adds a pin.
  public mutating func insert(_ pin: Pin) {
    latestExpiry[pin.spki] = max(latestExpiry[pin.spki] ?? .min, pin.expires ?? .max)
  }

  /// Adds every pin of another set.
  public mutating func formUnion(_ other: PinSet) {
    latestExpiry.merge(other.latestExpiry) { max($0, $1) }
  }

  /// Whether there are no pins at all, expired ones included.
  public var isEmpty: Bool { latestExpiry.isEmpty }

  /// The pins in the order of their bytes, with their expiry.
  public var pins: [Pin] {
    latestExpiry.sorted { $0.key < $1.key }
      .map { Pin($0.key, expires: $0.value == .max ? nil : $0.value) }
  }

  /// Whether this pin is in the set and counts at `now` (Unix seconds).
  public func contains(_ spki: SPKIPin, at now: Int64) -> Bool {
    latestExpiry[spki].map { Self.counts(expiry: $0, at: now) } ?? false
  }

  /// Whether any pin counts at `now` (Unix seconds).
  public func hasLivePin(at now: Int64) -> Bool {
    latestExpiry.values.contains { Self.counts(expiry: $0, at: now) }
  }

  /// The same, without the denied ones.
  func hasLivePin(at now: Int64, besides denied: Set<SPKIPin>) -> Bool {
    latestExpiry.contains { !denied.contains($0.key) && Self.counts(expiry: $0.value, at: now) }
  }

  /// The last Unix second at which every pin that counts at `now` still does; `nil` where none of
  /// them ever expires.
  func unchangedUntil(from now: Int64) -> Int64? {
    latestExpiry.values.compactMap { expiry in
      let (end, overflow) = expiry.addingReportingOverflow(Self.expiryTolerance)
      return overflow || end < now ? nil : end
    }.min()
  }

  private static func counts(expiry: Int64, at now: Int64) -> Bool {
    let (end, overflow) = expiry.addingReportingOverflow(expiryTolerance)
    return overflow || now <= end
  }
}

/// A pin with the time after which it no longer counts.
public struct Pin: Hashable, Sendable {
  /// The key's hash.
  public let spki: SPKIPin
  /// Unix time in seconds after which the pin counts as expired; `nil` means never.
  package let expires: Int64?

  /// A pin; without a time it never expires.
  package init(_ spki: SPKIPin, expires: Int64? = nil) {
    self.spki = spki
    self.expires = expires
  }
}

/// Who vouches for a server before its pins are looked at.
public enum TrustMode: Hashable, Sendable {
  /// The anchors of the system. Pins only tighten what the system accepts.
  case system
  /// One's own certification authorities, as DER certificates; with or without the system's.
  ///
  /// An empty list without the system's anchors means that nothing is trusted: every server is
  /// refused.
  case anchors([[UInt8]], andSystem: Bool = false)
  /// No CA vouches for the servers: the leaf pin alone decides.
  ///
  /// - Warning: names, dates and paths are not checked. Anyone who holds a pinned key may use it
  ///   for every host it is pinned for, for ever. For devices with self-signed certificates.
  case pinnedKeysOnly
}

extension TrustMode {
  /// Whether an app's settings make sense beside this mode, whatever a list says.
  ///
  /// - Throws: ``PolicyError/unlistedHostsWithoutPath`` and ``PolicyError/reportOnlyWithoutPath(_:)``.
  package func check(
    unlistedHosts: UnlistedHosts, enforcement: PolicyEntry.Enforcement = .enforce
  ) throws(PolicyError) {
    guard self == .pinnedKeysOnly else { return }
    guard unlistedHosts == .refuse else { throw .unlistedHostsWithoutPath }
    guard enforcement == .enforce else { throw .reportOnlyWithoutPath(nil) }
  }
}

/// What a pinned session does with a host that no entry speaks of.
public enum UnlistedHosts: Hashable, Sendable {
  /// Refuse it. The default: an attacker who can name a host of his own gains nothing.
  case refuse
  /// Accept it where the chain and the host name are valid.
  ///
  /// - Warning: a redirect or a typing error leads to servers that any CA can vouch for.
  case systemTrust
}
