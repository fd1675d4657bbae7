import SslPinningRules

/// Orphans, and who takes over the hosts that an endpoint leaves.
///
/// - A pattern that an endpoint spoke for, and that nobody speaks for now, is an *orphan*: an endpoint in force that nobody
///   probes, with a copy of what was known of the one that left it. It is listed, asks for terms, and is revoked, denied and
///   compared with others as any endpoint, until a person takes it out or somebody speaks for its pattern. Clients would keep
///   its pins in any case, but only until a wildcard matches it or the key set changes.
/// - No configuration takes a key from the list of a host that an endpoint speaks for: not the one in use, and none that
///   was announced. Otherwise clients are refused, and what the endpoint shows next would be a first sight. It does not
///   matter whether the host moved, changed places with another one, left an endpoint that it shared, joined another
///   one, lost one of several, was an orphan, or was listed by a wildcard that left and is named now.
/// - With the keys come their CAs, and a person's `approval: manual`, also to an endpoint that nobody knew, beside one that stays or
///   below its wildcard. If hosts for which nobody asked would wait, too, the edit is refused, or told
///   (``DocumentState/wordsLost(configuring:)``). Denied keys come, too: whoever takes the place of one of them has no first sight.
/// - The terms that a person set come, also to an endpoint that is new beside one that stays, if the configuration has none for
///   the heir or those that the person overruled, and if they were set for each of its hosts. They are those of an endpoint: of
///   one that speaks for another host as well, they would switch the pins off there (`match: any`). Such an edit is told, or
///   refused (``DocumentState/wordsLost(configuring:)``).
/// - A wildcard over orphans takes nothing from them. It joins their list, as it would beside any endpoint in force, and
///   waits for a person if one of them did.
/// - An endpoint keeps what it showed for other hosts: until it is probed, nobody knows what it shows now. If nobody spoke for
///   its patterns before, it forgets the keys that went along with its hosts, but for those of hosts below its wildcards.
/// - What becomes of an endpoint that leaves is settled once, when it leaves. It has no record afterwards, so it comes back
///   with what its hosts have by then.
extension DocumentState {
  /// These endpoints and the orphans. A wildcard's terms would count for hosts below it that ask for others; it asks for
  /// nothing then, and nor does an orphan that is not listed.
  func inForce(_ live: [WatchedEndpoint]) -> [WatchedEndpoint] {
    let asking = Set(askingOrphans.map(\.id)).subtracting(silencedOrphans(live))
    return live
      + orphans.map { orphan in
        var orphan = orphan
        if !asking.contains(orphan.id) { orphan.terms = .standard }
        return orphan
      }
  }

  /// The wildcards among the orphans whose terms differ from those of others below or across them, by their ids.
  func silencedOrphans(_ live: [WatchedEndpoint]) -> Set<String> {
    let wide = orphans.filter { !$0.terms.isStandard && !$0.patterns[0].isExact }
    guard !wide.isEmpty else { return [] }
    var (below, own) = ([HostPattern: [WatchedEndpoint]](), [HostPattern: [WatchedEndpoint]]())
    for endpoint in live + askingOrphans {
      for pattern in endpoint.patterns {
        own[pattern, default: []].append(endpoint)
        for wider in pattern.wider { below[wider, default: []].append(endpoint) }
      }
    }
    return Set(
      wide.filter { orphan in
        let pattern = orphan.patterns[0]
        let others = (below[pattern] ?? []) + (pattern.crossing.flatMap { own[$0] } ?? [])
        return others.contains { !$0.terms.asksTheSame(as: orphan.terms) }
      }.map(\.id))
  }

  /// Those that the document lists: only their terms count.
  var askingOrphans: [WatchedEndpoint] {
    let denied = deniedPins
    return orphans.filter { orphan in
      keysByEndpoint[orphan.id]?.keys.contains { !denied.contains($0.pin) } ?? false
    }
  }

  /// Goes by other endpoints from now on than ``watched``.
  ///
  /// - Returns: whether anything else changed by that.
  @discardableResult
  package mutating func follow(_ live: [WatchedEndpoint]) -> Bool {
    let spoken = Set(live.flatMap(\.patterns))
    guard
      !watched.elementsEqual(live, by: { $0.isRemembered(as: $1) })
        || orphans.contains(where: { spoken.contains($0.patterns[0]) })
    else { return false }
    let before = (keysByEndpoint, overrides, orphans)
    Succession(of: self, live).settle(&self, spoken)
    // With what was inherited just now.
    watched = live.map { endpoint in
      var endpoint = endpoint.remembered
      if let said = overrides[endpoint.id]?.terms, endpoint.overruled == nil {
        (endpoint.overruled, endpoint.terms) = (endpoint.terms, said)
      }
      return endpoint
    }
    return before != (keysByEndpoint, overrides, orphans)
  }

  /// Withdraws a key that an endpoint's probes withdrew from the orphans of hosts that it left alone. Not the last one that
  /// clients would believe, as no endpoint loses that by probes.
  mutating func withdraw(_ pin: SPKIPin, leftBy id: String) {
    let denied = deniedPins
    for orphan in orphans where orphan.place == id {
      let isLast = keysByEndpoint[orphan.id]?.keys.allSatisfy {
        $0.pin == pin || $0.staged != nil || denied.contains($0.pin)
      }
      if isLast == false { keysByEndpoint[orphan.id]?.withdraw([pin]) }
    }
  }

  /// The orphans of an endpoint, or the one of this id.
  package func orphans(of id: String) -> [WatchedEndpoint] {
    orphans.filter { $0.place == id || $0.id == id }
  }

  /// The hosts whose keys would wait for a person once these endpoints are configured, since a person decides about those of a host
  /// that joins them, or that they join: a rotation of theirs would lock apps out until somebody comes.
  func waitsSpread(configuring endpoints: [WatchedEndpoint]) -> [String] {
    // Of an endpoint that says so itself, nobody's word comes from another one.
    let meant = Set(
      (endpoints + added).filter {
        $0.approval == .manual && (overrides[$0.id]?.approval ?? .manual) == .manual
      }.map(\.id))
    func waits(_ endpoint: WatchedEndpoint) -> Bool {
      meant.contains(endpoint.id) || overrides[endpoint.id]?.approval == .manual
    }
    let before = (orphans + watched).filter { keysByEndpoint[$0.id]?.hasKept ?? false }
    guard before.contains(where: waits) else { return [] }
    let free = Set(before.filter { !waits($0) }.flatMap(\.patterns))
      .subtracting(before.filter(waits).flatMap(\.patterns))
    var next = self
    next.follow(next.endpoints(configured: endpoints))
    return next.endpoints(configured: endpoints)
      .filter { !meant.contains($0.id) && next.overrides[$0.id]?.approval == .manual }
      .flatMap { endpoint in
        endpoint.patterns.filter(free.contains).map { "\($0) waits for a person at \(endpoint.id)" }
      }.sorted()
  }
}

/// Who follows whom.
private struct Succession {
  private let live: [WatchedEndpoint]
  /// The orphans first: what is left of an endpoint that was in force is what it has now.
  private let before: [WatchedEndpoint]
  private let keys: [String: EndpointKeys]
  private let overrides: [String: DocumentState.Override]
  /// What each endpoint spoke for, by their ids.
  private let spokeFor: [String: Set<HostPattern>]
  /// Those that spoke for a pattern and do not now.
  private var left: [HostPattern: [WatchedEndpoint]] = [:]
  /// The patterns of those of which anything was known.
  private var known: [HostPattern: [WatchedEndpoint]] = [:]
  /// Those of them about whose keys a person decided.
  private var waiting: [(source: WatchedEndpoint, pattern: HostPattern)] = []
  /// The keys of live endpoints, as they were.
  private var pins: [HostPattern: Set<SPKIPin>] = [:]

  init(of state: DocumentState, _ live: [WatchedEndpoint]) {
    self.live = live
    before = state.orphans + state.watched.filter { state.tombstones[$0.id] == nil }
    (keys, overrides) = (state.keysByEndpoint, state.overrides)
    spokeFor = Dictionary(
      before.map { ($0.id, Set($0.patterns)) }, uniquingKeysWith: { $0.union($1) })
    let speaksFor = Dictionary(
      live.map { ($0.id, Set($0.patterns)) }, uniquingKeysWith: { $0.union($1) })
    for source in before {
      let isKnown = keys[source.id]?.hasKept ?? false
      for pattern in source.patterns {
        if isKnown { known[pattern, default: []].append(source) }
        guard speaksFor[source.id]?.contains(pattern) != true else { continue }
        left[pattern, default: []].append(source)
        if overrides[source.id]?.approval == .manual { waiting.append((source, pattern)) }
      }
    }
    guard !left.isEmpty else { return }
    for endpoint in live {
      let own = (keys[endpoint.id]?.keys ?? []).map(\.pin)
      for pattern in endpoint.patterns { pins[pattern, default: []].formUnion(own) }
    }
  }

  func settle(_ state: inout DocumentState, _ spoken: Set<HostPattern>) {
    var taken: [String: Set<SPKIPin>] = [:]
    for heir in live {
      for pattern in heir.patterns {
        for source in sources(of: pattern) where source.id != heir.id {
          taken[source.id, default: []].formUnion(take(source, pattern, heir, &state))
        }
      }
      inheritWords(heir, &state)
    }
    for endpoint in live {
      if let gone = taken[endpoint.id] { letGo(of: gone, endpoint, &state) }
    }
    leaveOrphans(spoken, &state)
  }

  /// Those that a pattern's keys come from: the ones that spoke for it or, if nobody did, for a wildcard above it.
  private func sources(of pattern: HostPattern) -> [WatchedEndpoint] {
    left[pattern]
      ?? (known[pattern] == nil ? pattern.covering.dropFirst().flatMap { left[$0] ?? [] } : [])
  }

  /// Gives an heir the keys that no live endpoint has for the pattern.
  ///
  /// - Returns: what it took.
  private func take(
    _ source: WatchedEndpoint, _ pattern: HostPattern, _ heir: WatchedEndpoint,
    _ state: inout DocumentState
  ) -> Set<SPKIPin> {
    guard let own = keys[source.id] else { return [] }
    let current = pattern.covering.reduce(into: Set<SPKIPin>()) { $0.formUnion(pins[$1] ?? []) }
    let lost = own.keys.filter { !current.contains($0.pin) }
    guard !lost.isEmpty || own.keys.isEmpty && current.isEmpty else { return [] }
    state.keysByEndpoint[heir.id] = (state.keysByEndpoint[heir.id] ?? EndpointKeys()).merging(
      EndpointKeys(keys: lost, authorities: own.authorities), base: EndpointKeys())
    // The alert of an endpoint that left is over, and what it told of is not.
    for key in lost where key.isUnannounced {
      let event = KeyEvent.published(key.pin, isFirst: false)
      state.raise(
        ServerAlert(
          kind: .unannouncedKey, endpoint: heir.id, pin: key.pin, message: "\(event)",
          since: key.firstSeen))
    }
    return Set(lost.map(\.pin))
  }

  /// Has an heir go by what people said of those that left its hosts, once: either they leave now, or it is new.
  private func inheritWords(_ heir: WatchedEndpoint, _ state: inout DocumentState) {
    for pattern in heir.patterns {
      let isNew = spokeFor[heir.id]?.contains(pattern) != true
      for source in sources(of: pattern)
        + (spokeFor[heir.id] == nil ? pattern.covering.flatMap { known[$0] ?? [] } : [])
      where source.id != heir.id && (isNew || !source.isOrphan) {
        if overrides[source.id]?.approval == .manual { wait(heir, &state) }
      }
    }
    let said = heir.patterns.map { terms(of: $0, for: heir) }
    if let terms = said.first.flatMap(\.self), overrides[heir.id]?.terms == nil,
      said.allSatisfy({ $0?.isSame(as: terms) ?? false })
    {
      state.overrides[heir.id, default: .init()].terms = terms
    }
    // So does one that speaks for it by another pattern, if that is new or it has all of the keys.
    for (source, pattern) in waiting {
      let others = heir.patterns.filter { $0 != pattern && $0.overlaps(pattern) }
      guard !others.isEmpty else { continue }
      let isNew = overrides[heir.id]?.approval == nil && others.contains { known[$0] == nil }
      if isNew || !source.isOrphan && hasKeys(heir, of: source) { wait(heir, &state) }
    }
  }

  /// What people had clients ask for at a host, if the configuration has no others for an heir of it.
  private func terms(of pattern: HostPattern, for heir: WatchedEndpoint) -> HostTerms? {
    let isNew = spokeFor[heir.id]?.contains(pattern) != true
    // Also of one that stays, since clients would ask for the stricter of the two.
    let said = (sources(of: pattern) + (isNew ? known[pattern] ?? [] : [])).compactMap { source in
      source.id != heir.id
        && (heir.terms.isStandard || source.overruled.map(heir.terms.isSame(as:)) ?? false)
        ? overrides[source.id]?.terms : nil
    }
    return said.dropFirst().reduce(said.first) { $0?.united(with: $1) }
  }

  private func hasKeys(_ heir: WatchedEndpoint, of source: WatchedEndpoint) -> Bool {
    let (own, theirs) = (keys[heir.id]?.keys ?? [], keys[source.id]?.keys ?? [])
    return !theirs.isEmpty && Set(theirs.map(\.pin)).isSubset(of: own.map(\.pin))
  }

  private func wait(_ heir: WatchedEndpoint, _ state: inout DocumentState) {
    state.overrides[heir.id, default: .init()].approval = .manual
  }

  private func letGo(
    of gone: Set<SPKIPin>, _ endpoint: WatchedEndpoint, _ state: inout DocumentState
  ) {
    guard endpoint.patterns.allSatisfy({ $0.covering.allSatisfy { known[$0] == nil } }) else {
      return
    }
    let below = known.filter { pattern, _ in
      endpoint.patterns.contains { pattern.wider.contains($0) || $0.crossing == pattern }
    }.values.joined()
    let kept = Set(below.flatMap { keys[$0.id]?.keys ?? [] }.map(\.pin))
    state.keysByEndpoint[endpoint.id]?.keys.removeAll {
      gone.contains($0.pin) && !kept.contains($0.pin)
    }
    // The CAs are those of other hosts.
    if state.keysByEndpoint[endpoint.id]?.keys.isEmpty == true {
      state.keysByEndpoint[endpoint.id] = nil
    }
  }

  private func leaveOrphans(_ spoken: Set<HostPattern>, _ state: inout DocumentState) {
    let ids = Set(live.map(\.id))
    for source in before where !ids.contains(source.id) {
      state.keysByEndpoint[source.id] = nil
      if source.isOrphan { state.overrides[source.id] = nil }
      // They are passed on, and may be others by the time at which it comes back. For a host that never showed a key and that
      // nobody takes over, there is nobody to pass them on to.
      state.overrides[source.id]?.terms = nil
      state.overrides[source.id]?.isPaused = false
      if keys[source.id]?.hasKept ?? false || spoken.isSuperset(of: source.patterns) {
        state.overrides[source.id]?.approval = nil
      }
      if state.overrides[source.id]?.isEmpty == true { state.overrides[source.id] = nil }
    }
    var orphans: [String: WatchedEndpoint] = [:]
    for source in before {
      for pattern in source.patterns where !spoken.contains(pattern) {
        let orphan = source.orphan(for: pattern)
        guard let own = keys[source.id], own.hasKept else { continue }
        orphans[orphan.id] = orphan
        // What is about to be withdrawn nobody would withdraw any more.
        let leaving = own.leaving
        state.keysByEndpoint[orphan.id] = EndpointKeys(
          keys: own.keys.filter { !leaving.contains($0.pin) }, authorities: own.authorities)
        state.overrides[orphan.id] = overrides[source.id]?.inherited
      }
    }
    state.orphans = orphans.values.sorted { $0.order < $1.order }
  }
}

extension DocumentState.Override {
  /// What of it counts for an orphan; `nil` if nothing does.
  var inherited: DocumentState.Override? {
    var said = DocumentState.Override()
    (said.approval, said.terms) = (approval, terms)
    return said.isEmpty ? nil : said
  }
}

extension WatchedEndpoint {
  /// What is remembered of it.
  fileprivate var remembered: WatchedEndpoint {
    var endpoint = WatchedEndpoint(
      fqdn: fqdn, port: port, address: address, patterns: patterns, terms: terms)
    endpoint.overruled = overruled
    return endpoint
  }

  fileprivate func isRemembered(as other: WatchedEndpoint) -> Bool {
    (id, patterns, terms, overruled) == (other.id, other.patterns, other.terms, other.overruled)
  }

  /// A host before the wildcard below it, as an endpoint has them.
  fileprivate var order: (String, Int, String) {
    let pattern = patterns.first
    return (pattern?.base.description ?? "", pattern?.description.utf8.count ?? 0, id)
  }
}

extension HostPattern {
  fileprivate var isExact: Bool {
    if case .exact = self { true } else { false }
  }
}
