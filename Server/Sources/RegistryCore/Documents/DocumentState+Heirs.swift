import SslPinningRules

/// Whose keys are listed for a host once another endpoint speaks for it.
///
/// - A host that is listed by its own name keeps what is listed by that name, and nothing by a wildcard that left.
/// - A host that vanished counts as listed by what the document said of it last, with the CAs of then (``VanishedHost``):
///   clients keep that. So two edits are as good as one, and a line that was lost comes back to what it had, wherever it is
///   then. Denied keys count, too: whoever takes the place of one of them has no first sight.
/// - No configuration takes a key from the list of a host that an endpoint speaks for: not the one in use, and none that
///   was announced. Otherwise clients are refused, and what the endpoint shows next would be a first sight. It does not
///   matter whether the host moved, changed places with another one, left an endpoint that it shared, joined another
///   one, lost one of several, or was listed by a wildcard and is named now.
/// - With a key come the CAs known beside it, and a person's `approval: manual`: of two settings the stricter counts. So
///   do the terms that a person set, if the configuration has none for the heir; also to an endpoint that is new beside
///   one that stays: it left that one, or speaks for the same host, and clients would ask for the stricter of the two.
/// - What a person said of one host is not said of another one that has its key: the document has the names.
/// - An endpoint keeps what it showed for other hosts: until it is probed, nobody knows what it shows now. If no host is
///   listed by its patterns, it forgets the keys that went along with their hosts, but for those that are listed for hosts
///   below its wildcards, and begins anew without any.
/// - A wildcard over hosts that are listed takes the CAs of their keys, and no key: it would count for other hosts, too.
/// - What left the list of a host does not come back with an endpoint of before: a key may have been withdrawn or
///   revoked meanwhile.
extension DocumentState {
  /// Gives what is listed for a host and what nobody who speaks for it has to those that do.
  ///
  /// - Parameters:
  ///   - listed: what was listed when this was last asked.
  ///   - stored: the keys that were published when the document was signed, if they are known.
  ///   - isAnew: whether others may be in force than then.
  /// - Returns: whether anything changed.
  mutating func inheritKeys(
    _ inForce: [WatchedEndpoint], _ listed: inout ListedKeys,
    _ stored: [String: EndpointKeys]? = nil, isAnew: Bool = true
  ) -> Bool {
    guard isAnew || mayInherit(inForce) else { return false }
    let before = (keysByEndpoint, overrides)
    for endpoint in inForce { overrides[endpoint.id]?.isApprovalPassedOn = false }
    listed.follow(document)
    let vanished = vanished(beside: inForce)
    let kept = listed.adding(vanished)
    if let stored { forgetUnlisted(inForce, kept, stored) }
    let heirs = Heirs(of: self, inForce, kept, stored ?? [:], vanished)
    let takings = heirs.lost.map { ($0, heirs.holders(of: $0)) }
    for (inheritance, holders) in takings where !inheritance.isKnown {
      letGo(of: inheritance.pin, holders, heirs)
    }
    for (inheritance, holders) in takings { take(inheritance, from: holders, heirs) }
    inheritApproval(heirs)
    inheritTerms(heirs)
    inheritDecisions(heirs)
    return (keysByEndpoint, overrides) != before
  }

  /// Whether one in force speaks for hosts that vanished, or an endpoint that left may have a key that it lacks, since it is
  /// new or was not seen later, or a person's word that holds for it.
  private func mayInherit(_ inForce: [WatchedEndpoint]) -> Bool {
    let ids = Set(inForce.map(\.id))
    let vanished = Set(vanishedHosts.values.filter { !$0.entries.isEmpty }.map(\.pattern))
    if !vanished.isEmpty {
      let patterns = Set(inForce.flatMap(\.patterns))
      if patterns.contains(where: { $0.isBelow(vanished) })
        || vanished.contains(where: { $0.isBelow(patterns) })
      {
        return true
      }
    }
    if overrides.contains(where: {
      ($1.hasApprovalToPassOn || $1.terms != nil) && !ids.contains($0)
    }) {
      return true
    }
    let left = keysByEndpoint.filter { id, endpointKeys in
      !ids.contains(id) && tombstones[id] == nil && !endpointKeys.keys.isEmpty
    }
    guard let newest = left.map(\.value.lastSeen).max() else { return false }
    return inForce.contains { endpoint in
      keysByEndpoint[endpoint.id].map { $0.isUnseen || $0.lastSeen <= newest } ?? true
    }
  }

  /// Has newcomers among those that have a key forget it, since it went along with its hosts. Before anything is taken:
  /// they may be heirs themselves.
  private mutating func letGo(of pin: SPKIPin, _ holders: [String], _ heirs: Heirs) {
    for id in holders where heirs.newcomers[id]?.contains(pin) == false {
      keysByEndpoint[id]?.letGo(of: [pin])
    }
  }

  private mutating func take(
    _ inheritance: Heirs.Inheritance, from holders: [String], _ heirs: Heirs
  ) {
    let heir = inheritance.endpoint.id
    let left = inheritance.isKnown ? [] : heirs.vanished(for: inheritance)
    for host in left {
      keysByEndpoint[heir] = (keysByEndpoint[heir] ?? EndpointKeys()).merging(
        host.keys(inheritance, of: heirs), base: EndpointKeys())
    }
    for id in holders {
      guard let former = heirs.former[id] else { continue }
      if !inheritance.isKnown, left.isEmpty {
        let keys = inheritance.isOfCAs ? [] : former.keys.filter { $0.pin == inheritance.pin }
        keysByEndpoint[heir] = (keysByEndpoint[heir] ?? EndpointKeys()).merging(
          EndpointKeys(keys: keys, authorities: former.authorities), base: EndpointKeys())
      }
      // A wildcard without a key is new each time that this is asked: a person may have decided meanwhile.
      let isDecided = inheritance.isOfCAs && overrides[heir]?.approval != nil
      if overrides[id]?.hasApprovalToPassOn == true, !isDecided,
        heirs.mayHaveSpoken(id, for: inheritance.endpoint)
      {
        wait(for: heir)
      }
    }
  }

  /// Has those that speak for the hosts of an endpoint that left wait for a person, if it did: also if it left no key
  /// that they lack.
  private mutating func inheritApproval(_ heirs: Heirs) {
    let ids = Set(heirs.inForce.map(\.id))
    for (id, override) in overrides where override.hasApprovalToPassOn && !ids.contains(id) {
      let next = heirs.inForce.filter {
        heirs.spoke(id, for: $0) && heirs.mayHaveSpoken(id, for: $0)
      }
      for endpoint in next { wait(for: endpoint.id) }
      // They go by what people say of them from now on.
      if !next.isEmpty { overrides[id]?.isApprovalPassedOn = true }
    }
  }

  private mutating func inheritTerms(_ heirs: Heirs) {
    let ids = Set(heirs.inForce.map(\.id))
    let before = overrides
    let new = heirs.inForce.filter(heirs.isNew)
    for (id, override) in before.sorted(by: { $0.key < $1.key }) {
      guard let terms = override.terms else { continue }
      let stays = ids.contains(id)
      let next = (stays ? new : heirs.inForce).filter { $0.id != id && heirs.replaces(id, $0) }
      for endpoint in next where endpoint.terms.isStandard && before[endpoint.id]?.terms == nil {
        let other = overrides[endpoint.id]?.terms
        overrides[endpoint.id, default: Override()].terms = other?.united(with: terms) ?? terms
      }
      if !stays, !next.isEmpty { overrides[id]?.terms = nil }
    }
  }

  /// What a person said of hosts which endpoints that go on left alone.
  private mutating func inheritDecisions(_ heirs: Heirs) {
    for endpoint in heirs.inForce where heirs.isNew(endpoint) {
      let left = endpoint.patterns.compactMap { heirs.vanished[$0] }
      let (isDecided, hasTerms) = (
        overrides[endpoint.id]?.approval != nil, overrides[endpoint.id]?.terms != nil
      )
      if left.contains(where: \.isManual), !isDecided { wait(for: endpoint.id) }
      guard endpoint.terms.isStandard, !hasTerms else { continue }
      for terms in left.compactMap(\.decided) {
        let other = overrides[endpoint.id]?.terms
        overrides[endpoint.id, default: Override()].terms = other?.united(with: terms) ?? terms
      }
    }
  }

  private mutating func wait(for id: String) {
    overrides[id, default: Override()].approval = .manual
  }

  /// Forgets keys of endpoints that come back beside others that speak for their hosts now, by the same patterns or by
  /// wildcards: those that were in force when the document was signed are listed in it.
  private mutating func forgetUnlisted(
    _ inForce: [WatchedEndpoint], _ listed: ListedKeys, _ stored: [String: EndpointKeys]
  ) {
    let known = listed.all.union(deniedPins)
    for endpoint in inForce
    where endpoint.patterns.contains(where: { !listed.pins(for: $0).isEmpty }) {
      let gone = Set(stored[endpoint.id]?.keys.map(\.pin) ?? []).subtracting(known)
      guard !gone.isEmpty, var own = keysByEndpoint[endpoint.id] else { continue }
      own.letGo(of: gone)
      keysByEndpoint[endpoint.id] = own
    }
  }
}

/// Who inherits what of whom.
private struct Heirs {
  /// What an endpoint is to have.
  struct Inheritance {
    var endpoint: WatchedEndpoint
    var pin: SPKIPin
    /// Whether the CAs known beside the key are all that it is to have.
    var isOfCAs = false
    /// Whether it showed the key, and knows its CAs: all that is left to inherit is that a person decides.
    var isKnown = false
  }

  let inForce: [WatchedEndpoint]
  /// The keys as they were.
  let former: [String: EndpointKeys]
  private(set) var lost: [Inheritance] = []
  /// The endpoints in force whose patterns are not listed. Each keeps the pins that are listed for hosts below its
  /// wildcards, which may be left to it.
  private(set) var newcomers: [String: Set<SPKIPin>] = [:]
  private let listed: ListedKeys
  private let stored: [String: EndpointKeys]
  let vanished: [HostPattern: VanishedHost]
  private let denied: Set<SPKIPin>
  private var holders: [SPKIPin: [String]] = [:]

  init(
    of state: DocumentState, _ inForce: [WatchedEndpoint], _ listed: ListedKeys,
    _ stored: [String: EndpointKeys], _ vanished: [HostPattern: VanishedHost]
  ) {
    (self.inForce, self.listed, self.stored, self.vanished) = (inForce, listed, stored, vanished)
    former = state.keysByEndpoint.filter { state.tombstones[$0.key] == nil }
    denied = state.deniedPins
    var current = ListedKeys()
    for endpoint in inForce {
      for key in former[endpoint.id]?.keys ?? [] { current.insert(key.pin, endpoint.patterns) }
    }
    for endpoint in inForce {
      if endpoint.patterns.allSatisfy({ listed.pins(for: $0).isEmpty }) {
        newcomers[endpoint.id] = []
      }
      let pins = endpoint.patterns.reduce(into: Set<SPKIPin>()) {
        $0.formUnion(listed.pins(for: $1).subtracting(current.pins(covering: $1)))
      }
      lost += pins.sorted().map { Inheritance(endpoint: endpoint, pin: $0) }
    }
    addWildcards(beside: current)
    guard !lost.isEmpty else { return }
    let pins = Set(lost.map(\.pin))
    for (id, endpointKeys) in former.sorted(by: { $0.key < $1.key }) {
      for key in endpointKeys.keys where pins.contains(key.pin) {
        holders[key.pin, default: []].append(id)
      }
    }
  }

  /// Enters new wildcards over hosts that are listed and that nobody else speaks for now. A wildcard is new if nothing is
  /// listed by it, whatever else its endpoint speaks for or has shown.
  private mutating func addWildcards(beside current: ListedKeys) {
    let new = inForce.map { endpoint in
      (endpoint, endpoint.patterns.filter { listed.pins(of: [$0]).isEmpty })
    }.filter { !$1.isEmpty }
    guard !new.isEmpty else { return }
    let below = listed.byCoveringPattern(beside: ListedKeys())
    let left = listed.byCoveringPattern(beside: current)
    func hosts(of patterns: [HostPattern], in covered: [HostPattern: [HostPattern]])
      -> [HostPattern]
    {
      patterns.flatMap { (covered[$0] ?? []) + [$0.crossing].compactMap(\.self) }
    }
    for (endpoint, patterns) in new {
      newcomers[endpoint.id]?.formUnion(listed.pins(of: hosts(of: patterns, in: below)))
      // Whoever showed a key knows its CAs. Others that have it may be another host's.
      let own = Set(former[endpoint.id]?.keys.filter { $0.staged == nil }.map(\.pin) ?? [])
      var leavers: [SPKIPin: [HostPattern]] = [:]
      for host in hosts(of: patterns, in: left) {
        let pins = listed.pins(of: [host]).subtracting(current.pins(of: [host]))
        for pin in pins { leavers[pin, default: []].append(host) }
      }
      lost += leavers.sorted { $0.key < $1.key }.map { pin, hosts in
        // By the names of those hosts: who spoke for them did not for the wildcard.
        var named = endpoint
        named.patterns = hosts
        return Inheritance(endpoint: named, pin: pin, isOfCAs: true, isKnown: own.contains(pin))
      }
    }
  }

  /// Whom a key is inherited from: those that spoke for the host if there are any, since the CAs of others that have the
  /// key are not known for it. If the heir lost it since the document was signed, nobody who had it then.
  func holders(of inheritance: Inheritance) -> [String] {
    let pin = inheritance.pin
    let isLost = !inheritance.isOfCAs && stored[inheritance.endpoint.id]?.has(pin) ?? false
    let all = (holders[pin] ?? []).filter { !isLost || stored[$0]?.has(pin) != true }
    let own = all.filter { spoke($0, for: inheritance.endpoint) }
    return own.isEmpty ? all : own
  }

  /// The hosts that vanished and that the key was listed for. None if the heir lost it since: its own probes said so.
  func vanished(for inheritance: Inheritance) -> [VanishedHost] {
    let pin = inheritance.pin
    guard inheritance.isOfCAs || stored[inheritance.endpoint.id]?.has(pin) != true else {
      return []
    }
    return inheritance.endpoint.patterns.flatMap { pattern in
      vanished[pattern].map { [$0] } ?? pattern.covering.compactMap { vanished[$0] }
    }.filter { host in host.entries.contains { $0.pin == pin } }
  }

  /// Whether an endpoint spoke for hosts that another one speaks for: all keys that it had are listed for one of them.
  func spoke(_ id: String, for endpoint: WatchedEndpoint) -> Bool {
    let pins = Set((stored[id] ?? former[id])?.keys.map(\.pin) ?? []).subtracting(denied)
    guard !pins.isEmpty else { return false }
    return endpoint.patterns.contains { pins.isSubset(of: listed.pins(for: $0)) }
  }

  /// Whether the document leaves it possible: beside each host it has the name of its endpoint (of one, where two show the
  /// same key). So hosts of other names that share a key are told apart, and those of one name at other ports are not.
  func mayHaveSpoken(_ id: String, for endpoint: WatchedEndpoint) -> Bool {
    let hosts = listed.patterns(named: WatchedEndpoint.host(inID: id))
    return hosts.isEmpty
      || endpoint.patterns.contains { own in hosts.contains { $0.overlaps(own) } }
  }

  /// Whether an endpoint takes the place of another one: the same name at another port or address, or one that had no key
  /// until now.
  func replaces(_ id: String, _ endpoint: WatchedEndpoint) -> Bool {
    guard spoke(id, for: endpoint), mayHaveSpoken(id, for: endpoint) else { return false }
    return isNew(endpoint)
      || WatchedEndpoint.host(inID: id) == WatchedEndpoint.host(inID: endpoint.id)
  }

  /// Whether it had no key until now.
  func isNew(_ endpoint: WatchedEndpoint) -> Bool {
    (stored[endpoint.id] ?? former[endpoint.id])?.keys.isEmpty ?? true
  }
}

extension VanishedHost {
  /// What an heir has by it: a key as its holder knows it, or else as it was listed.
  fileprivate func keys(_ inheritance: Heirs.Inheritance, of heirs: Heirs) -> EndpointKeys {
    guard !inheritance.isOfCAs, let entry = entries.first(where: { $0.pin == inheritance.pin })
    else { return EndpointKeys(keys: [], authorities: authorities) }
    let known = speakers.sorted().compactMap { id in
      heirs.former[id]?.keys.first { $0.pin == entry.pin }
    }
    let key = KnownKey(pin: entry.pin, firstSeen: min(entry.date, signed), lastSeen: signed)
    return EndpointKeys(keys: [known.first ?? key], authorities: authorities)
  }
}

extension EndpointKeys {
  fileprivate func has(_ pin: SPKIPin) -> Bool { keys.contains { $0.pin == pin } }

  /// Forgets keys, and with the last of them what else is known: the CAs are those of other hosts, or of before.
  fileprivate mutating func letGo(of pins: Set<SPKIPin>) {
    keys.removeAll { pins.contains($0.pin) }
    if keys.isEmpty { self = EndpointKeys() }
  }
}
