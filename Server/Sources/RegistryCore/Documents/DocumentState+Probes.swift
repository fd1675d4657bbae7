import SslPinningRules

extension DocumentState {
  /// How many probes in a row fail before somebody is told.
  static let failuresBeforeAlert = 3

  /// Takes down what a probe led to.
  ///
  /// - Parameters:
  ///   - failures: how many probes the endpoint failed in a row, this one included.
  ///   - gauge: finds a mass change.
  /// - Returns: entries of the history, and whether there are any or an alert began or ended.
  mutating func note(
    _ events: [KeyEvent], of endpoint: String, in file: String, failures: Int,
    massChange gauge: MassChangeDetector, at now: Int64
  ) -> (told: [HistoryEntry], isNews: Bool) {
    // What lasts, and is an alert by now, is told once.
    let told = events.filter { $0.isHistoric && !isTold($0, at: endpoint) }.map { event in
      HistoryEntry(
        time: now, event: event.name, endpoint: endpoint, pin: event.pin, why: "\(event)",
        who: HistoryEntry.monitor)
    }
    for case .withdrawn(let pin) in events { withdraw(pin, leftBy: endpoint) }
    var isNews = !told.isEmpty
    if noteAlerts(of: events, at: endpoint, failures: failures, now: now) { isNews = true }
    let changed = gauge.isMassChange ? gauge.changedEndpoints : []
    if noteMassChange(of: events, among: changed, in: file, now: now) { isNews = true }
    return (told, isNews)
  }

  /// Keeps the alerts in step with what a probe led to.
  ///
  /// - Parameter failures: how many probes the endpoint failed in a row, this one included.
  /// - Returns: whether an alert began or ended.
  package mutating func noteAlerts(
    of events: [KeyEvent], at endpoint: String, failures: Int, now: Int64
  ) -> Bool {
    endTimesToCome(of: endpoint, at: now)
    let before = identities(of: endpoint)
    let isAnswered = !events.contains { if case .unreachable = $0 { true } else { false } }
    if isAnswered { settle(.unreachable, endpoint) }
    let isRefused = events.contains { if case .refused = $0 { true } else { false } }
    let isDisputed = events.contains {
      if case .refused(_, _, isDisputed: true) = $0 { true } else { false }
    }
    // A chain that proves nothing says nothing of the points.
    if isAnswered, !isRefused,
      !events.contains(where: { if case .vantageBlocked = $0 { true } else { false } })
    {
      settle(.vantageBlocked, endpoint)
    }
    var returning = keysByEndpoint[endpoint]?.returning ?? ReturningAlerts()
    if isAnswered {
      let shown = events.compactMap(Self.deniedKey)
      settle(endpoint) { alert in
        let isSeen: Bool
        switch alert.kind {
        case .chainRefused: isSeen = isRefused && !isDisputed
        case .chainDisputed: isSeen = isDisputed
        case .deniedKeySeen: isSeen = alert.pin.map(shown.contains) ?? false
        case .caMissing: isSeen = alert.isRaised(by: events)
        default: return false
        }
        return returning.enter(alert.identity, isSeen: isSeen, at: now)
      }
    }
    let standing = Set(identities(of: endpoint))
    for event in events { raiseAlert(of: event, at: endpoint, failures, now) }
    for alert in alerts[endpoint] ?? []
    where Self.comingAndGoing.contains(alert.kind) && !standing.contains(alert.identity) {
      returning.begin(alert.identity, at: now)
    }
    keysByEndpoint[endpoint]?.returning = returning
    noteStagedKeys(of: endpoint, at: now)
    let held = keysByEndpoint[endpoint]?.held ?? [:]
    let keys = Set(keysByEndpoint[endpoint]?.keys.map(\.pin) ?? [])
    let undecided = keysByEndpoint[endpoint]?.undecided ?? []
    settle(endpoint) { alert in
      switch alert.kind {
      case .keyUndecided: alert.pin.map { !undecided.contains($0) } ?? true
      case .keyHeld: alert.pin.map { held[$0] == nil } ?? true
      case .unannouncedKey:
        alert.isOver(at: now) || alert.pin.map { !keys.contains($0) } ?? true
      default: alert.isOver(at: now)
      }
    }
    return identities(of: endpoint) != before
  }

  /// What probes of a fleet show now and then.
  private static let comingAndGoing: Set<ServerAlert.Kind> = [
    .chainRefused, .chainDisputed, .deniedKeySeen, .caMissing,
  ]

  /// How many keys one alert lists. What is beyond keeps an alert of its own.
  static let mostListed = 200

  /// Has one alert list the keys of all endpoints that changed at once. A key that it does not list keeps the
  /// alert of its own that ``noteAlerts(of:at:failures:now:)`` raised.
  ///
  /// - Parameter changed: those that did, by file and id; empty where they were few.
  /// - Returns: whether an alert began or ended.
  package mutating func noteMassChange(
    of events: [KeyEvent], among changed: [String], in file: String, now: Int64
  ) -> Bool {
    endTimesToCome(of: "", at: now)
    let before = identities(of: "")
    settle("") { $0.isOver(at: now) }
    if alerts[""]?.contains(where: { $0.kind == .massChange }) == true, isDecidedAboutAll(at: now) {
      settle(.massChange, "")
    }
    // Not while a key waits for probes: the others are probed meanwhile.
    let isDecided = events.contains { event in
      switch event {
      case .published(_, isFirst: false), .held: true
      default: false
      }
    }
    if !changed.isEmpty, isDecided {
      // What this document has comes first: the list is cut off.
      let own = changed.filter { $0.hasPrefix("\(file) ") }
      let names = (own + changed.filter { !$0.hasPrefix("\(file) ") }).prefix(20)
        .joined(separator: ", ")
      let keys = listKeys(of: Set(changed), in: file, now)
      raise(
        ServerAlert(
          kind: .massChange,
          message: "\(changed.count) endpoints show new keys within ten minutes: \(names)"
            + (changed.count > 20 ? " and others" : "") + MassChangeReport.listing(keys),
          since: now))
    }
    return identities(of: "") != before
  }

  /// Whether no key waits, and none was published in the last day that nobody announced or approved.
  private func isDecidedAboutAll(at now: Int64) -> Bool {
    let denied = deniedPins
    return keysByEndpoint.values.allSatisfy { endpoint in
      endpoint.held.isEmpty
        && !endpoint.keys.contains {
          $0.isUnannounced && now - $0.firstSeen <= ServerAlert.day && !denied.contains($0.pin)
        }
    }
  }

  /// The keys of the last day that nobody announced and that have no alert of their own, each with its
  /// endpoint. Those of `changed` lose theirs as long as there is room on the list.
  private mutating func listKeys(
    of changed: Set<String>, in file: String, _ now: Int64
  ) -> [String] {
    var listed = unannouncedKeys(at: now, haveOwnAlert: false).map { "\($0.id) \($0.pin.base64)" }
    let candidates = unannouncedKeys(at: now, haveOwnAlert: true)
      .filter { changed.contains("\(file) \($0.id)") }
    for (id, pin) in candidates.prefix(max(0, Self.mostListed - listed.count)) {
      settle(.unannouncedKey, id, pin: pin)
      listed.append("\(id) \(pin.base64)")
    }
    return listed
  }

  /// The keys of the last day that nobody announced, by whether an alert of their own tells of them.
  func unannouncedKeys(at now: Int64, haveOwnAlert: Bool) -> [(id: String, pin: SPKIPin)] {
    let orphans = Set(orphans.map(\.id))
    var found: [(id: String, pin: SPKIPin)] = []
    for (id, endpointKeys) in keysByEndpoint where !orphans.contains(id) {
      for key in endpointKeys.keys where key.isUnannounced && now - key.firstSeen <= ServerAlert.day
      {
        let hasOwn = alerts[id]?.contains { $0.kind == .unannouncedKey && $0.pin == key.pin }
        if (hasOwn ?? false) == haveOwnAlert { found.append((id, key.pin)) }
      }
    }
    return found.sorted { ($0.id, $0.pin) < ($1.id, $1.pin) }
  }

  /// Whether an event is that of the last probe again: a denied key that is still shown, or still too many new
  /// keys at once.
  package func isTold(_ event: KeyEvent, at endpoint: String) -> Bool {
    alerts[endpoint]?.contains { alert in
      switch event {
      case .deniedKeySeen, .deniedAuthoritySeen:
        alert.kind == .deniedKeySeen && alert.pin == event.pin
      case .caMissing: alert.kind == .caMissing && alert.pin == event.pin
      case .undecided: alert.kind == .keyUndecided && alert.pin == event.pin
      case .tooManyCandidates: alert.kind == .tooManyKeys
      case .vantageBlocked: alert.kind == .vantageBlocked
      default: false
      }
    } == true
  }

  private static func deniedKey(_ event: KeyEvent) -> SPKIPin? {
    switch event {
    case .deniedKeySeen(let pin), .deniedAuthoritySeen(let pin): pin
    default: nil
    }
  }

  /// What is said of an endpoint that nobody watches any longer.
  package static let leftMessage =
    "is no longer configured, and clients keep its last pins; \(leftHint)"
  private static let leftHint =
    "hint: configure it again, or remove it in the administration if clients may forget it"

  /// With an alert for each endpoint that left, or left hosts alone. It follows from the configuration, so it is never
  /// stored.
  package func markingWhoLeft(_ live: [WatchedEndpoint]) -> DocumentState {
    var marked = self
    marked.follow(live)
    guard !marked.orphans.isEmpty else { return marked }
    let (ids, silenced) = (Set(live.map(\.id)), marked.silencedOrphans(live))
    for (id, orphans) in Dictionary(grouping: marked.orphans, by: \.place) {
      let keys = orphans.flatMap { marked.keysByEndpoint[$0.id]?.keys ?? [] }
      guard let last = keys.map(\.lastSeen).max() else { continue }
      let hosts = orphans.map(\.patterns[0].description).sorted().joined(separator: ", ")
      var message =
        ids.contains(id)
        ? "speaks no longer for \(hosts), and clients keep the last pins; hint: have it or another endpoint speak for"
          + " it again, or remove \(orphans.map(\.id).sorted().joined(separator: ", ")) if clients may forget it"
        : Self.leftMessage + " (it spoke for \(hosts))"
      // No probe withdraws them any more.
      let brief = Set(keys.filter(\.isShortLived).map(\.pin.base64)).sorted()
      if !brief.isEmpty {
        message +=
          "; nobody announced \(brief.joined(separator: ", ")), seen for less than an hour: deny what is not yours"
      }
      let odd = orphans.filter { silenced.contains($0.id) }.map(\.patterns[0].description).sorted()
      if !odd.isEmpty {
        message +=
          "; hosts below \(odd.joined(separator: ", ")) ask for another ca or match: clients no longer go by what it"
          + " asked for"
      }
      var alert = ServerAlert(
        kind: .leftConfiguration, endpoint: id, message: message, since: last)
      alert.patterns = Set(orphans.map(\.patterns[0]))
      marked.raise(alert)
    }
    return marked
  }

  /// An alert of a time to come was raised by a clock that was ahead; it would stand until that time.
  private mutating func endTimesToCome(of endpoint: String, at now: Int64) {
    for index in alerts[endpoint, default: []].indices
    where (alerts[endpoint]?[index].since ?? now) > now + SteadyTime.tolerance {
      alerts[endpoint]?[index].since = now
    }
  }

  private func identities(of endpoint: String) -> [String] {
    (alerts[endpoint] ?? []).map(\.identity)
  }

  private mutating func raiseAlert(
    of event: KeyEvent, at endpoint: String, _ failures: Int, _ now: Int64
  ) {
    let kind: ServerAlert.Kind
    var pin: SPKIPin?
    switch event {
    case .refused(_, _, let isDisputed): kind = isDisputed ? .chainDisputed : .chainRefused
    case .held(let key, _): (kind, pin) = (.keyHeld, key)
    case .published(let key, isFirst: false): (kind, pin) = (.unannouncedKey, key)
    case .withdrawn(let key): (kind, pin) = (.keyWithdrawn, key)
    case .undecided(let key): (kind, pin) = (.keyUndecided, key)
    // One for all of them: an attacker can show any number.
    case .tooManyCandidates: kind = .tooManyKeys
    case .vantageBlocked: kind = .vantageBlocked
    case .deniedKeySeen(let key), .deniedAuthoritySeen(let key):
      (kind, pin) = (.deniedKeySeen, key)
    case .caMissing(let key): (kind, pin) = (.caMissing, key)
    case .unreachable where failures >= Self.failuresBeforeAlert: kind = .unreachable
    default: return
    }
    raise(
      ServerAlert(kind: kind, endpoint: endpoint, pin: pin, message: "\(event)", since: now))
  }
}

extension ServerAlert {
  /// Whether one of these events says that a CA is missing above its key.
  fileprivate func isRaised(by events: [KeyEvent]) -> Bool {
    events.contains { if case .caMissing(let key) = $0 { key == pin } else { false } }
  }
}
