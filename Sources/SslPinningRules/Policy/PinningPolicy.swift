/// Decides whether a connection may carry a request. A pure value: same evidence, same verdict.
///
/// - The chain comes first: without a validated path for this host, nothing is accepted, whatever the pins
///   say. Pins only tighten. (Except ``TrustMode/pinnedKeysOnly``, under which only the leaf pin counts.)
/// - The *validated* path is matched, never what the server merely sent.
/// - A denied key anywhere on the path refuses, whatever else matches.
/// - Of several valid paths to one leaf, one that satisfies all rules is enough. A refusal says
///   whether another could (`mayHaveAnotherPath`); the validator then searches for it.
/// - All patterns that match a host contribute; pins are united per role; the stricter of two
///   settings counts.
/// - Leaf pins match index 0, CA pins index 1 or higher, whole certificates any. A host with more
///   than one list needs all of them, unless its entry says `match: any`.
/// - A list that is present and empty matches nothing.
/// - Expired pins do not count (26 h of tolerance). A listed host without a live pin is refused.
/// - Under ``TrustMode/pinnedKeysOnly``, a registry's entry that requires what only a validated path can
///   show refuses its own hosts; other entries still count. In an app's own pins it is an error.
/// - An unlisted host is refused, unless the app chose ``UnlistedHosts/systemTrust``.
/// - Report-only forgives a missing pin, never a bad chain and never the deny list.
/// - From the registry's expiry on, by the clock, every host is refused. A pin expires by the later of the
///   clock and the time floor (``TrustTime``).
public struct PinningPolicy: Hashable, Sendable {
  /// Who vouches for servers.
  public let trust: TrustMode
  /// What happens to hosts without an entry.
  public let unlistedHosts: UnlistedHosts
  /// Keys that are refused anywhere on a path.
  public let denied: Set<SPKIPin>
  /// The registry of the entries.
  public let registry: RegistryStamp?
  /// Unix time in seconds from which on everything is refused; `nil` means never.
  public let expires: Int64?

  private let listed: PolicyTable
  private let vanished: PolicyTable
  private let enforced: Set<HostPattern>

  /// A policy with these entries. With an empty list, every host is unlisted.
  ///
  /// - Throws: ``PolicyError`` if the settings contradict each other.
  public init(
    entries: some Sequence<PolicyEntry>, denied: Set<SPKIPin> = [], trust: TrustMode = .system,
    unlistedHosts: UnlistedHosts = .refuse, registry: RegistryStamp? = nil,
    expires: Int64? = nil
  ) throws(PolicyError) {
    let entries = Array(entries)
    for entry in entries where trust == .pinnedKeysOnly {
      guard !entry.demands(.ca) else { throw .caPinsWithoutPath(entry.pattern) }
      guard !entry.demands(.certificate) else { throw .certificatesWithoutPath(entry.pattern) }
      guard entry.enforcement == .enforce else { throw .reportOnlyWithoutPath(entry.pattern) }
    }
    try self.init(
      listed: entries, denied: denied, trust: trust, unlistedHosts: unlistedHosts,
      registry: registry, expires: expires)
  }

  /// A policy with the entries of a registry: an entry that the settings cannot honour is no error but refuses
  /// its own hosts (``PolicyEntry/uncheckableRole``).
  ///
  /// - Parameters:
  ///   - vanished: entries of hosts that are no longer listed. They count only for hosts that no listed
  ///     pattern matches, so that a pattern which was listed for a while cannot affect other hosts.
  ///   - enforced: patterns whose hosts are enforced, whichever entry they have by now.
  /// - Throws: ``PolicyError/unlistedHostsWithoutPath``, for the app's own setting.
  package init(
    listed: [PolicyEntry], vanished: [PolicyEntry] = [], enforced: Set<HostPattern> = [],
    denied: Set<SPKIPin>, trust: TrustMode,
    unlistedHosts: UnlistedHosts, registry: RegistryStamp?, expires: Int64?
  ) throws(PolicyError) {
    try trust.check(unlistedHosts: unlistedHosts)
    self.listed = PolicyTable(listed)
    self.vanished = PolicyTable(vanished)
    self.enforced = enforced
    self.denied = denied
    self.trust = trust
    self.unlistedHosts = unlistedHosts
    self.registry = registry
    self.expires = expires
  }

  /// The combined requirements of all patterns that match `host`; `nil` for an unlisted host.
  public func entry(for host: HostName) -> PolicyEntry? {
    guard var entry = listed.entry(for: host) ?? vanished.entry(for: host) else { return nil }
    if entry.enforcement == .reportOnly, enforced.haveMatch(for: host) {
      entry.enforcement = .enforce
    }
    return entry
  }

  /// The entries whose hosts are refused because the trust mode cannot check what they require, or this
  /// client does not know it: a thousand of them.
  public var problems: [RegistryProblem] {
    var problems: [RegistryProblem] = []
    // Cut before they are sorted: a thief of the online key has room for a hundred thousand, and every start tells them
    // before it asks the network.
    for entry in listed.entries + vanished.entries where problems.count < RegistryProblem.most {
      if trust == .pinnedKeysOnly, let role = entry.uncheckableRole {
        problems.append(.uncheckable(entry.pattern, role))
      }
      if !entry.unknownDemands.isEmpty {
        problems.append(.unknownDemands(entry.pattern, entry.unknownDemands))
      }
    }
    return problems.sorted { $0.description < $1.description }
  }

  /// The last Unix second of the clock at which every verdict given at `time` still holds, for any host; then
  /// a pin or the registry expires. `nil` if none ever does. Walks through all entries.
  public func unchangedUntil(from time: TrustTime) -> Int64? {
    var ends = (listed.entries + vanished.entries).flatMap { [$0.leaf, $0.ca] }
      .compactMap { $0.unchangedUntil(from: time.later) }
    if let expires, time.clock < expires { ends.append(expires - 1) }
    return ends.min()
  }

  /// Evaluates one connection at `now` (Unix seconds), without a statement's time.
  public func evaluate(_ evidence: ChainEvidence, host: HostName, at now: Int64) -> PinEvaluation {
    evaluate(evidence, host: host, at: TrustTime(clock: now))
  }

  /// Evaluates one connection at the times that the client knows.
  public func evaluate(
    _ evidence: ChainEvidence, host: HostName, at time: TrustTime
  ) -> PinEvaluation {
    let entry = entry(for: host)
    let (outcome, accepted) = judge(evidence, host: host, entry: entry, at: time)
    return PinEvaluation(
      host: host.description, outcome: outcome, decision: accepted ? .accept : .refuse,
      pattern: entry?.pattern,
      presented: evidence.presented, expectedLeaf: entry?.leaf.pins ?? [],
      expectedCA: entry?.ca.pins ?? [],
      expectedCertificates: entry?.certificates.sorted() ?? [], registry: registry,
      isStale: registry?.isStale(at: time.clock) ?? false,
      mayHaveAnotherPath: isOfThePath(outcome, evidence, entry: entry, at: time.later))
  }

  /// Whether the fault is in this path and not in the leaf, which is on every path.
  private func isOfThePath(
    _ outcome: PinEvaluation.Outcome, _ evidence: ChainEvidence, entry: PolicyEntry?, at now: Int64
  ) -> Bool {
    guard trust != .pinnedKeysOnly, case .success(let chain) = evidence.validation else {
      return false
    }
    switch outcome {
    case .denied(let pin): return pin != chain.path.first
    case .mismatch(.ca), .mismatch(.certificate): return true
    case .mismatch(.leaf):
      guard let entry, entry.match == .any else { return false }
      return entry.ca.hasLivePin(at: now) || !entry.certificates.isEmpty
    default: return false
    }
  }

  private func judge(
    _ evidence: ChainEvidence, host: HostName, entry: PolicyEntry?, at time: TrustTime
  ) -> (PinEvaluation.Outcome, accepted: Bool) {
    let path: [SPKIPin]
    var certificates: [CertificateFingerprint] = []
    if trust == .pinnedKeysOnly {
      guard let leaf = evidence.presented.first else {
        return (.chainRejected(.unreadable("the server sent no readable certificate")), false)
      }
      path = [leaf]
      // Nothing above the leaf is validated in this mode, but a denied key there still refuses.
      if let bad = evidence.presented.first(where: denied.contains) { return (.denied(bad), false) }
    } else {
      switch evidence.validation {
      case .failure(let fault): return (.chainRejected(fault), false)
      case .success(let chain):
        // A proof for another host proves nothing for this one.
        guard chain.host == host else { return (.chainRejected(.wrongHost), false) }
        path = chain.path
        certificates = chain.certificates
      }
    }
    if let bad = path.first(where: denied.contains) { return (.denied(bad), false) }
    return judge(entry, at: time) { entry, role, now in
      switch role {
      case .leaf: path.first.map { entry.leaf.contains($0, at: now) } ?? false
      case .ca: path.dropFirst().contains { entry.ca.contains($0, at: now) }
      case .certificate: certificates.contains(where: entry.certificates.contains)
      }
    }
  }

  /// Why every server of a host would be refused, even with a valid chain without a denied key; `nil` if one
  /// could be accepted. Shows how clients will treat an entry, without any server.
  package func refusalOfAll(_ host: HostName, at time: TrustTime) -> PinEvaluation.Outcome? {
    let (outcome, accepted) = judge(entry(for: host), at: time) { entry, role, now in
      switch role {
      case .leaf: entry.leaf.hasLivePin(at: now, besides: denied)
      case .ca: entry.ca.hasLivePin(at: now, besides: denied)
      case .certificate: !entry.certificates.isEmpty
      }
    }
    return accepted ? nil : outcome
  }

  /// Whether a valid chain with these keys would be accepted, without any server.
  ///
  /// - Parameter ca: a key above the leaf; `nil` if none of those keys is on any list.
  package func accepts(leaf: SPKIPin, ca: SPKIPin?, host: HostName, at time: TrustTime) -> Bool {
    guard !denied.contains(leaf), !(ca.map(denied.contains) ?? false) else { return false }
    return judge(entry(for: host), at: time) { entry, role, now in
      switch role {
      case .leaf: entry.leaf.contains(leaf, at: now)
      case .ca: ca.map { entry.ca.contains($0, at: now) } ?? false
      case .certificate: false
      }
    }.accepted
  }

  /// The outcome for a valid chain without a denied key, by what it shows for each role.
  private func judge(
    _ entry: PolicyEntry?, at time: TrustTime,
    shows: (PolicyEntry, PinEvaluation.PinRole, _ now: Int64) -> Bool
  ) -> (PinEvaluation.Outcome, accepted: Bool) {
    if let expires, time.clock >= expires { return (.registryExpired(at: expires), false) }
    guard let entry else { return (.unlisted, unlistedHosts == .systemTrust) }
    guard entry.unknownDemands.isEmpty else {
      return (.clientTooOld(entry.unknownDemands), false)
    }
    if trust == .pinnedKeysOnly, let role = entry.uncheckableRole {
      return (.uncheckable(role), false)
    }
    // Without a validated path the pin is the only check, so it must not be forgiven.
    let forgiven = entry.enforcement == .reportOnly && trust != .pinnedKeysOnly
    switch missing(of: entry, at: time.later, shows: shows) {
    case nil: return (.matched, true)
    case .some(let outcome): return (outcome, forgiven)
    }
  }

  /// The role that the entry requires and the path lacks; `nil` if the path satisfies the entry.
  private func missing(
    of entry: PolicyEntry, at now: Int64,
    shows: (PolicyEntry, PinEvaluation.PinRole, _ now: Int64) -> Bool
  ) -> PinEvaluation.Outcome? {
    func isLive(_ role: PinEvaluation.PinRole) -> Bool {
      switch role {
      case .leaf: entry.leaf.hasLivePin(at: now)
      case .ca: entry.ca.hasLivePin(at: now)
      case .certificate: !entry.certificates.isEmpty
      }
    }
    guard let live = Self.roles.first(where: isLive) else { return .noLivePin }
    switch entry.match {
    case .any:
      return Self.roles.contains { shows(entry, $0, now) } ? nil : .mismatch(live)
    case .all:
      let unmet = Self.roles.first { entry.demands($0) && !shows(entry, $0, now) }
      return unmet.map { isLive($0) ? .mismatch($0) : .noLivePin }
    }
  }

  private static let roles: [PinEvaluation.PinRole] = [.leaf, .ca, .certificate]
}

/// Entries by kind of pattern, so that finding a host costs one hash look-up per label, however long the
/// list is.
struct PolicyTable: Hashable, Sendable {
  private var exact: [HostName: PolicyEntry] = [:]
  private var oneMoreLabel: [DNSName: PolicyEntry] = [:]
  private var anyDepth: [DNSName: PolicyEntry] = [:]

  init(_ entries: [PolicyEntry]) {
    let (exact, child) = entries.reduce(into: (0, 0)) { counts, entry in
      switch entry.pattern {
      case .exact: counts.0 += 1
      case .oneMoreLabel: counts.1 += 1
      case .anyDepth: break
      }
    }
    self.exact.reserveCapacity(exact)
    oneMoreLabel.reserveCapacity(child)
    for entry in entries {
      switch entry.pattern {
      case .exact(let host): Self.add(entry, to: &self.exact, host)
      case .oneMoreLabel(let base): Self.add(entry, to: &oneMoreLabel, base)
      case .anyDepth(let base): Self.add(entry, to: &anyDepth, base)
      }
    }
  }

  private static func add<Key>(
    _ entry: PolicyEntry, to entries: inout [Key: PolicyEntry], _ key: Key
  ) {
    if let old = entries.updateValue(entry, forKey: key) { entries[key] = old.united(with: entry) }
  }

  /// All entries, one for each pattern, in no particular order.
  var entries: [PolicyEntry] {
    Array(exact.values) + Array(oneMoreLabel.values) + Array(anyDepth.values)
  }

  /// The combined requirements of all patterns that match `host`.
  func entry(for host: HostName) -> PolicyEntry? {
    var found = exact[host]
    func contribute(_ entry: PolicyEntry?) {
      guard let entry else { return }
      found = found.map { $0.united(with: entry) } ?? entry
    }
    if case .name(let name) = host {
      if let parent = name.parent { contribute(oneMoreLabel[parent]) }
      var ancestor: DNSName? = name
      while let current = ancestor, !anyDepth.isEmpty {
        contribute(anyDepth[current])
        ancestor = current.parent
      }
    }
    return found
  }
}

extension Set<HostPattern> {
  /// Whether one of the patterns matches a host.
  fileprivate func haveMatch(for host: HostName) -> Bool {
    guard !isEmpty else { return false }
    if contains(.exact(host)) { return true }
    guard case .name(let name) = host else { return false }
    if let parent = name.parent, contains(.oneMoreLabel(parent)) { return true }
    return sequence(first: name, next: \.parent).contains { contains(.anyDepth($0)) }
  }
}
