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
