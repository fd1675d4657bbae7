import SslPinningRules

extension HostTerms {
  /// What a statement says.
  init(_ settings: HostSettings) {
    self.init(
      ca: NamedIssuers(pins: Set(settings.ca)), match: settings.match == .any ? .any : .all,
      enforcement: settings.enforces ? .on : .app)
  }

  /// The settings of a statement, one for each listed pattern that has terms, in the order of the endpoints.
  ///
  /// - Each pattern once, or clients would refuse the whole statement.
  /// - None for a host without a listed key: clients take a pattern in a statement for listed. They would refuse one
  ///   that nobody pins, and accept any key of a CA where a key and a CA are asked for.
  static func settings(
    of endpoints: [WatchedEndpoint], listed: Set<HostPattern>
  ) -> [HostSettings] {
    guard endpoints.contains(where: { !$0.terms.isStandard }) else { return [] }
    var patterns: [HostPattern] = []
    var terms: [HostPattern: HostTerms] = [:]
    for endpoint in endpoints {
      for pattern in endpoint.patterns where listed.contains(pattern) {
        if let known = terms[pattern] {
          terms[pattern] = known.united(with: endpoint.terms)
        } else {
          patterns.append(pattern)
          terms[pattern] = endpoint.terms
        }
      }
    }
    return patterns.compactMap { pattern in
      guard let own = terms[pattern], !own.isStandard else { return nil }
      return HostSettings(
        pattern, ca: own.ca.pins.sorted(), match: own.match == .any ? .any : .all,
        enforces: own.enforcement == .on)
    }
  }

  /// What clients ask for in effect, by the endpoints' ids: the stricter of all that speak of one of their hosts.
  package static func inEffect(among endpoints: [WatchedEndpoint]) -> [String: HostTerms] {
    guard endpoints.contains(where: { !$0.terms.isStandard }) else { return [:] }
    let own = Dictionary(endpoints.map { ($0.id, $0.terms) }, uniquingKeysWith: { one, _ in one })
    var (index, united) = (PatternIndex(), own)
    for endpoint in endpoints { index.insert(endpoint.id, endpoint.patterns) }
    for endpoint in endpoints {
      _ = index.overlaps(endpoint.id, endpoint.patterns) { other in
        if let terms = own[other] { united[endpoint.id] = united[endpoint.id]?.united(with: terms) }
        return false
      }
    }
    return united
  }

  /// Pairs of endpoints that speak of one host and ask for other CAs, or combine them otherwise: clients take the CAs of
  /// both and the stricter match, which can refuse the servers of either.
  ///
  /// - Parameter id: only pairs with this endpoint; `nil` for any.
  static func conflicts(
    among endpoints: [WatchedEndpoint], with id: String? = nil, atMost limit: Int = .max
  ) -> [(one: String, other: String)] {
    let asking = endpoints.filter { !$0.terms.ca.pins.isEmpty }
    guard !asking.isEmpty else { return [] }
    var index = PatternIndex()
    var terms: [String: HostTerms] = [:]
    for endpoint in endpoints {
      index.insert(endpoint.id, endpoint.patterns)
      terms[endpoint.id] = endpoint.terms
    }
    var (pairs, found) = ([(one: String, other: String)](), Set<[String]>())
    for one in asking {
      let isEnough = index.overlaps(one.id, one.patterns) { other in
        guard id == nil || id == one.id || id == other,
          terms[other]?.asksTheSame(as: one.terms) == false
        else { return false }
        if found.insert([one.id, other].sorted()).inserted { pairs.append((one.id, other)) }
        return pairs.count >= limit
      }
      if isEnough { break }
    }
    return pairs
  }

  /// One of those pairs.
  package static func conflict(
    among endpoints: [WatchedEndpoint], with id: String? = nil
  ) -> (one: String, other: String)? {
    conflicts(among: endpoints, with: id, atMost: 1).first
  }
}

extension DocumentState {
  /// As ``HostTerms/conflict(among:with:)``, also with orphans.
  package func conflict(
    among live: [WatchedEndpoint], with id: String? = nil
  ) -> (one: String, other: String)? {
    HostTerms.conflict(among: live + askingOrphans, with: id)
  }

  /// The pairs in which there is an orphan.
  package func orphanConflicts(among live: [WatchedEndpoint]) -> [(one: String, other: String)] {
    let orphans = askingOrphans
    guard !orphans.isEmpty else { return [] }
    let ids = Set(orphans.map(\.id))
    return HostTerms.conflicts(among: live + orphans).filter {
      ids.contains($0.one) || ids.contains($0.other)
    }
  }

  /// What pairs that differ ask of clients once these endpoints are configured, by the ids of the endpoints or, of orphans,
  /// of those that they come from.
  ///
  /// - Parameter isOfOrphans: only pairs in which there is an orphan.
  package func conflicts(
    configuring endpoints: [WatchedEndpoint], isOfOrphans: Bool
  ) -> [[String]: [HostTerms]] {
    var next = self
    next.follow(next.endpoints(configured: endpoints))
    let live = next.endpoints(configured: endpoints)
    let all = live + next.askingOrphans
    let known = Dictionary(all.map { ($0.id, $0) }, uniquingKeysWith: { one, _ in one })
    let pairs =
      isOfOrphans ? next.orphanConflicts(among: live) : HostTerms.conflicts(among: all)
    return Dictionary(
      pairs.map { pair in
        let both = [pair.one, pair.other].compactMap { known[$0] }.sorted { $0.place < $1.place }
        return (both.map(\.place), both.map(\.terms))
      }, uniquingKeysWith: { one, _ in one })
  }

  /// What becomes of what people said once these endpoints are configured, where they did not mean that.
  package func wordsLost(configuring endpoints: [WatchedEndpoint]) -> [String] {
    termsLost(configuring: endpoints).map {
      "\($0), which an administrator set: another endpoint speaks for the host, or this one for another host;"
        + " hint: set what is meant by ssl-pinning admin terms before"
    }
      + waitsSpread(configuring: endpoints).map {
        "\($0), as an administrator asked for at another one, whose hosts it takes or joins; hint: set the approval of"
          + " either endpoint in the administration before"
      }
  }

  /// The hosts of which clients would ask for something else once these endpoints are configured, and for which people said
  /// something, before or afterwards: a host leaves the endpoint that they set terms for, joins one, also as a new one, or gets one
  /// more beside it, or is named below a wildcard. An edit must not do that unseen, whatever it says itself: terms that
  /// stand with another host are not meant for this one.
  package func termsLost(configuring endpoints: [WatchedEndpoint]) -> [String] {
    guard overrides.values.contains(where: { $0.terms != nil }) else { return [] }
    var next = self
    next.follow(next.endpoints(configured: endpoints))
    let (before, after) = (
      asked(of: watched), next.asked(of: next.endpoints(configured: endpoints))
    )
    return Set(before.keys).union(after.keys).compactMap { pattern in
      guard let new = after.inEffect(for: pattern) else { return nil }
      let old = before.inEffect(for: pattern)
      // A new host is asked for what is written.
      let expected = old?.terms ?? new.written
      guard old?.isSaid ?? false || new.isSaid, !new.terms.isSame(as: expected) else { return nil }
      return "\(pattern) is asked for \(new.terms) instead of \(expected)"
    }.sorted()
  }

  /// What clients are asked for, by pattern.
  func asked(of live: [WatchedEndpoint]) -> [HostPattern: AskedTerms] {
    var asked: [HostPattern: AskedTerms] = [:]
    for endpoint in inForce(live) {
      let own = AskedTerms(
        terms: endpoint.terms, written: endpoint.overruled ?? endpoint.terms,
        isSaid: overrides[endpoint.id]?.terms != nil)
      for pattern in endpoint.patterns {
        asked[pattern] = asked[pattern]?.united(with: own) ?? own
      }
    }
    return asked
  }

  /// Has clients ask for other terms. What the change does not say stays as it is now, whatever it was when that was read:
  /// another change may have been made since.
  ///
  /// - Throws: as the other one, and ``AdministrationError/namesNoCA``.
  package mutating func setTerms(
    _ change: HostTerms.Change, of id: String, configured: [WatchedEndpoint], force: Bool,
    _ request: Request
  ) throws(AdministrationError) -> [HistoryEntry] {
    let inForce = endpoints(configured: configured)
    guard let before = inForce.first(where: { $0.id == id })?.terms else {
      throw .noSuchEndpoint(id, known: inForce.map(\.id))
    }
    let terms = change.completed(by: before)
    guard terms.match == .all || !terms.ca.pins.isEmpty else { throw .namesNoCA }
    return try setTerms(terms, of: id, configured: configured, force: force, request)
  }

  /// Has clients ask for other terms.
  ///
  /// - Returns: nothing if they do already.
  /// - Throws: ``AdministrationError/termsDiffer(_:_:)``, ``AdministrationError/lacksCA(_:)`` and, if servers show a held key
  ///   that clients accept by its CA alone until then, ``AdministrationError/leavesWithoutPin(_:areStaged:)`` unless forced.
  package mutating func setTerms(
    _ terms: HostTerms, of id: String, configured: [WatchedEndpoint], force: Bool,
    _ request: Request
  ) throws(AdministrationError) -> [HistoryEntry] {
    var next = self
    next.overrides[id, default: Override()].terms = terms
    let inForce = next.endpoints(configured: configured)
    guard let endpoint = inForce.first(where: { $0.id == id }) else {
      throw .noSuchEndpoint(id, known: inForce.map(\.id))
    }
    let before = endpoints(configured: configured).first { $0.id == id }?.terms
    guard before.map({ $0.asksTheSame(as: terms) && $0.enforcement == terms.enforcement }) != true
    else { return [] }
    if !force {
      if let conflict = next.conflict(among: inForce, with: id) {
        throw .termsDiffer(conflict.one, conflict.other)
      }
      let usable = terms.demanded.subtracting(deniedPins)
      let paths = keysByEndpoint[id]?.pathsInUse(at: request.at, but: deniedPins) ?? []
      guard terms.demanded.isEmpty || paths.allSatisfy({ !usable.isDisjoint(with: $0) }) else {
        throw .lacksCA(endpoint.patterns.map(\.description))
      }
      let shown = keysByEndpoint[id]?.held.values.filter(\.isShown) ?? []
      let isRefused = shown.contains { key in
        !isVouched(for: key, by: terms) && before.map { isVouched(for: key, by: $0) } == true
      }
      guard !isRefused else { throw .leavesWithoutPin(endpoint.patterns.map(\.description)) }
    }
    self = next
    var entry = request.entry("terms_changed", id)
    entry.why = "\(terms)" + (entry.why.isEmpty ? "" : ": \(entry.why)")
    return [entry]
  }

  /// Whether apps accept a held key all the same, by a CA above it.
  package func isVouched(for alert: ServerAlert, by terms: HostTerms?) -> Bool {
    guard alert.kind == .keyHeld, let terms, let pin = alert.pin,
      let held = keysByEndpoint[alert.endpoint]?.candidates[pin]
    else { return false }
    return isVouched(for: held, by: terms)
  }

  private func isVouched(for held: CandidateKey, by terms: HostTerms) -> Bool {
    isVouched(
      for: held.paths.isEmpty ? [held.chain.above] : Array(held.paths.values), by: terms)
  }

  /// Whether apps accept a key all the same that their document does not list yet.
  func isVouched(for key: KnownKey, by terms: HostTerms?) -> Bool {
    guard let terms, !key.paths.isEmpty else { return false }
    return isVouched(for: Array(key.paths.values), by: terms)
  }

  private func isVouched(for paths: [[SPKIPin]], by terms: HostTerms) -> Bool {
    let vouching = terms.vouching.subtracting(deniedPins)
    return paths.allSatisfy { !vouching.isDisjoint(with: $0) }
  }
}

/// What clients are asked for at a host, and who says so.
struct AskedTerms {
  let terms: HostTerms
  /// What the configuration says.
  let written: HostTerms
  /// A person said it.
  let isSaid: Bool

  func united(with other: AskedTerms) -> AskedTerms {
    AskedTerms(
      terms: terms.united(with: other.terms), written: written.united(with: other.written),
      isSaid: isSaid || other.isSaid)
  }
}

extension [HostPattern: AskedTerms] {
  /// Those of all that speak for a pattern, also by wider ones.
  func inEffect(for pattern: HostPattern) -> AskedTerms? {
    let all = pattern.covering.compactMap { self[$0] }
    return all.dropFirst().reduce(all.first) { $0?.united(with: $1) }
  }
}
