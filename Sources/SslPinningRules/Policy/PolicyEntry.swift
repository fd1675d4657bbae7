/// A pin list's requirements for the hosts that one pattern matches.
public struct PolicyEntry: Hashable, Sendable {
  /// How leaf and CA pins combine if a host has both.
  public enum Match: Hashable, Sendable {
    /// Both lists must match: Apple's rule, and the stricter one.
    case all
    /// One of the two is enough.
    case any
  }

  /// Whether a missing pin refuses the connection or is only reported.
  public enum Enforcement: Hashable, Sendable {
    /// A missing pin refuses the connection.
    case enforce
    /// A missing pin is reported and forgiven. A bad chain or a denied key is never forgiven.
    case reportOnly
  }

  /// The hosts.
  public var pattern: HostPattern
  /// Pins that must match the leaf.
  public var leaf: PinSet
  /// Pins that must match a certificate at index 1 or higher of the validated path.
  public var ca: PinSet
  /// Whole certificates, one of which must be on the validated path, leaf or above; empty if only keys
  /// count.
  public var certificates: Set<CertificateFingerprint>
  /// Roles whose list is present, even if no pin in it could be read: a present but empty list matches
  /// nothing, an absent one requires nothing. Pins always require their role.
  public var required: Set<PinEvaluation.PinRole>
  /// How the roles combine.
  public var match: Match
  /// Whether a missing pin refuses.
  public var enforcement: Enforcement
  /// Requirements that this client does not know: the hosts are refused, report-only or not. Sorted, and no more than
  /// ``mostDemands``: one refuses as well as all, and every refusal names them.
  package private(set) var unknownDemands: [String] = []

  /// A thief of the online key has room for hundreds of thousands, and each refusal that is kept would have them all.
  package static let mostDemands = 64

  /// An entry. If both lists are empty, its hosts are listed and refused: an entry with unreadable pins must
  /// not leave its host unpinned.
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

  /// The combined requirements of two entries for the same host: pins united per role, and the stricter of
  /// two settings.
  package func united(with other: PolicyEntry) -> PolicyEntry {
    var both = self
    both.leaf.formUnion(other.leaf)
    both.ca.formUnion(other.ca)
    both.certificates.formUnion(other.certificates)
    both.required.formUnion(other.required)
    both.demand(other.unknownDemands)
    both.match = match == .all || other.match == .all ? .all : .any
    both.enforcement =
      enforcement == .enforce || other.enforcement == .enforce ? .enforce : .reportOnly
    return both
  }

  /// Adds requirements that this client does not know, as many as there is room for.
  package mutating func demand(_ names: [String]) {
    guard !names.isEmpty else { return }
    unknownDemands = Array(Set(unknownDemands).union(names).sorted().prefix(Self.mostDemands))
  }

  /// A role that only a validated path can show, so that ``TrustMode/pinnedKeysOnly`` refuses these hosts.
  /// `nil` if the leaf's pins alone can decide.
  var uncheckableRole: PinEvaluation.PinRole? {
    if match == .any, demands(.leaf) { return nil }
    return [.ca, .certificate].first(where: demands)
  }

  /// Whether hosts of this entry must match something in this role.
  package func demands(_ role: PinEvaluation.PinRole) -> Bool {
    if required.contains(role) { return true }
    return switch role {
    case .leaf: !leaf.isEmpty
    case .ca: !ca.isEmpty
    case .certificate: !certificates.isEmpty
    }
  }
}

/// The pins of one role (leaf or CA) for one host, united over every entry that covers it.
public struct PinSet: Hashable, Sendable {
  /// How many seconds after its expiry a pin still counts: 26 hours, so that neither a time zone nor a
  /// clock that is a day off locks anyone out.
  public static let expiryTolerance: Int64 = 26 * 3600

  /// The pins in the order of their bytes, each once, with their expiry.
  public private(set) var pins: [Pin]

  /// The union of these pins. If a pin occurs twice, the later expiry counts.
  public init(_ pins: some Sequence<Pin> = []) {
    self.pins = Array(pins)
    // Most hosts have one or two: nothing is copied for those.
    if self.pins.count > 1 { self.pins.sort { $0.spki < $1.spki } }
    guard zip(self.pins, self.pins.dropFirst()).contains(where: { $0.spki == $1.spki }) else {
      return
    }
    self.pins = self.pins.reduce(into: []) { united, pin in
      guard let last = united.indices.last, united[last].spki == pin.spki else {
        return united.append(pin)
      }
      united[last].expires = Self.later(united[last].expires, pin.expires)
    }
  }

  /// Adds a pin.
  public mutating func insert(_ pin: Pin) {
    let place = place(of: pin.spki)
    if place < pins.count, pins[place].spki == pin.spki {
      pins[place].expires = Self.later(pins[place].expires, pin.expires)
    } else {
      pins.insert(pin, at: place)
    }
  }

  /// Adds every pin of another set.
  public mutating func formUnion(_ other: PinSet) {
    guard !other.isEmpty else { return }
    self = isEmpty ? other : PinSet(pins + other.pins)
  }

  /// Whether there are no pins at all, expired ones included.
  public var isEmpty: Bool { pins.isEmpty }

  /// Whether this pin is in the set and counts at `now` (Unix seconds).
  public func contains(_ spki: SPKIPin, at now: Int64) -> Bool {
    let place = place(of: spki)
    return place < pins.count && pins[place].spki == spki && Self.counts(pins[place], at: now)
  }

  /// Whether any pin counts at `now` (Unix seconds).
  public func hasLivePin(at now: Int64) -> Bool { pins.contains { Self.counts($0, at: now) } }

  /// The same, without the denied ones.
  func hasLivePin(at now: Int64, besides denied: Set<SPKIPin>) -> Bool {
    pins.contains { !denied.contains($0.spki) && Self.counts($0, at: now) }
  }

  /// The last Unix second at which every pin that counts at `now` still does; `nil` if none of them ever
  /// expires.
  func unchangedUntil(from now: Int64) -> Int64? {
    pins.compactMap { pin in
      guard let end = Self.end(of: pin), end >= now else { return nil }
      return end
    }.min()
  }

  /// Where the pin is, or belongs: the first place whose pin is not before it.
  private func place(of spki: SPKIPin) -> Int {
    var (low, high) = (0, pins.count)
    while low < high {
      let middle = low + (high - low) / 2
      if pins[middle].spki < spki { low = middle + 1 } else { high = middle }
    }
    return low
  }

  private static func later(_ one: Int64?, _ other: Int64?) -> Int64? {
    guard let one, let other else { return nil }
    return max(one, other)
  }

  /// The last Unix second at which the pin counts; `nil` if it never expires.
  private static func end(of pin: Pin) -> Int64? {
    guard let expires = pin.expires else { return nil }
    let (end, overflow) = expires.addingReportingOverflow(expiryTolerance)
    return overflow ? nil : end
  }

  private static func counts(_ pin: Pin, at now: Int64) -> Bool {
    end(of: pin).map { now <= $0 } ?? true
  }
}

/// A pin with the time after which it no longer counts.
public struct Pin: Hashable, Sendable {
  /// The key's hash.
  public let spki: SPKIPin
  /// Unix time in seconds after which the pin counts as expired; `nil` means never.
  package fileprivate(set) var expires: Int64?

  /// A pin; without a time it never expires.
  package init(_ spki: SPKIPin, expires: Int64? = nil) {
    self.spki = spki
    self.expires = expires
  }
}

/// Who vouches for a server before its pins are checked.
public enum TrustMode: Hashable, Sendable {
  /// The anchors of the system. Pins only tighten what the system accepts.
  case system
  /// Private certificate authorities, as DER certificates, with or without the system's.
  ///
  /// An empty list without the system's anchors trusts nothing: every server is refused.
  case anchors([[UInt8]], andSystem: Bool = false)
  /// No CA vouches for the servers: the leaf pin alone decides.
  ///
  /// - Warning: names, dates and paths are not checked. Whoever holds a pinned key can use it for ever, for
  ///   every host for which it is pinned. Meant for devices with self-signed certificates.
  case pinnedKeysOnly
}

extension TrustMode {
  /// Checks whether an app's settings are consistent with this mode, independent of any list.
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

/// What a pinned session does with a host that no entry covers.
public enum UnlistedHosts: Hashable, Sendable {
  /// Refuse it. The default: an attacker gains nothing by directing the app to another host.
  case refuse
  /// Accept it if the chain and the host name are valid.
  ///
  /// - Warning: a redirect or a typing error may lead to a server that any CA can vouch for.
  case systemTrust
}
