import Pinning

extension DocumentState {
  /// How many looks in a row fail before somebody is told.
  static let failuresBeforeAlert = 3

  /// Keeps the alerts in step with what a look led to.
  ///
  /// - Parameter failures: how many looks at the endpoint failed in a row, this one included.
  /// - Returns: whether an alert began or ended.
  mutating func noteAlerts(
    of events: [LedgerEvent], at endpoint: String, failures: Int, now: Int64
  ) -> Bool {
    endTimesToCome(of: endpoint, at: now)
    let before = identities(of: endpoint)
    let isAnswered = !events.contains { if case .unreachable = $0 { true } else { false } }
    if isAnswered { settle(.unreachable, endpoint) }
    if isAnswered, !events.contains(where: { if case .refused = $0 { true } else { false } }) {
      settle(.chainRefused, endpoint)
    }
    if isAnswered {
      let shown = events.compactMap { if case .deniedKeySeen(let pin) = $0 { pin } else { nil } }
      settle(endpoint) { $0.kind == .deniedKeySeen && !($0.pin.map(shown.contains) ?? false) }
    }
    for event in events { raiseAlert(of: event, at: endpoint, failures, now) }
    let held = ledgers[endpoint]?.held ?? [:]
    let keys = Set(ledgers[endpoint]?.keys.map(\.pin) ?? [])
    settle(endpoint) { alert in
      switch alert.kind {
      case .keyHeld: alert.pin.map { held[$0] == nil } ?? true
      case .unannouncedKey:
        alert.isOver(at: now) || alert.pin.map { !keys.contains($0) } ?? true
      default: alert.isOver(at: now)
      }
    }
    return identities(of: endpoint) != before
  }

  /// Has one alert stand for all endpoints that changed at once.
  ///
  /// - Parameter changed: those that did, by file and id; empty where they were few.
  /// - Returns: whether an alert began or ended.
  mutating func noteMassChange(
    of events: [LedgerEvent], among changed: [String], in file: String, now: Int64
  ) -> Bool {
    endTimesToCome(of: "", at: now)
    let before = identities(of: "")
    settle("") { $0.isOver(at: now) }
    // Not while a key waits for looks: the others are looked at meanwhile.
    let isDecided = events.contains { event in
      switch event {
      case .published(_, isFirst: false), .held: true
      default: false
      }
    }
    if !changed.isEmpty, isDecided {
      for id in Array(alerts.keys) where changed.contains("\(file) \(id)") {
        settle(.unannouncedKey, id)
      }
      let names = changed.prefix(20).joined(separator: ", ")
      raise(
        ServerAlert(
          kind: .massChange,
          message: "\(changed.count) endpoints show new keys within ten minutes: \(names)"
            + (changed.count > 20 ? " and others" : "")
            + "; hint: if nobody renewed them, somebody stands between; deny the keys",
          since: now))
    }
    return identities(of: "") != before
  }

  /// Whether an event is that of the last look again: a denied key that is still shown.
  func isTold(_ event: LedgerEvent, at endpoint: String) -> Bool {
    guard case .deniedKeySeen(let pin) = event else { return false }
    return alerts[endpoint]?.contains { $0.kind == .deniedKeySeen && $0.pin == pin } == true
  }

  /// What is said of an endpoint that nobody watches any longer.
  static let leftMessage =
    "is no longer configured, and clients keep its last pins; "
    + "hint: configure it again, and where clients may forget it, take it out in the administration then"

  /// With an alert for each endpoint that has keys and is neither in force nor taken out. It follows from
  /// the configuration, so it is never stored.
  func markingWhoLeft(_ inForce: Set<String>) -> DocumentState {
    var marked = self
    for (id, ledger) in ledgers where !inForce.contains(id) && tombstones[id] == nil {
      guard let last = ledger.keys.map(\.lastSeen).max() else { continue }
      marked.raise(
        ServerAlert(kind: .leftConfiguration, endpoint: id, message: Self.leftMessage, since: last))
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
    (alerts[endpoint] ?? []).map { $0.kind.rawValue + ($0.pin?.base64 ?? "") }
  }

  private mutating func raiseAlert(
    of event: LedgerEvent, at endpoint: String, _ failures: Int, _ now: Int64
  ) {
    let kind: ServerAlert.Kind
    var pin: SPKIPin?
    switch event {
    case .refused: kind = .chainRefused
    case .held(let key, _): (kind, pin) = (.keyHeld, key)
    case .published(let key, isFirst: false):
      // The one that lists them all says it.
      guard !(alerts[""] ?? []).contains(where: { $0.kind == .massChange }) else { return }
      (kind, pin) = (.unannouncedKey, key)
    case .withdrawn(let key): (kind, pin) = (.keyWithdrawn, key)
    case .deniedKeySeen(let key): (kind, pin) = (.deniedKeySeen, key)
    case .unreachable where failures >= Self.failuresBeforeAlert: kind = .unreachable
    default: return
    }
    raise(
      ServerAlert(kind: kind, endpoint: endpoint, pin: pin, message: "\(event)", since: now))
  }
}
