import Pinning

/// What is known about one endpoint, and every decision about which keys are published for it.
///
/// - The first key is published after one look with a valid chain and the right name: with nothing
///   published yet there is no list that it could break into. Where another endpoint has keys for the
///   same hosts there is one, and the first key counts as changed.
/// - A *changed* key is published beside the old ones only after the configured number of looks each
///   showed it with a valid chain and the right name. A look that shows a published key in between
///   does not count against it (behind a load balancer both answer in turn); a look with a chain
///   that proves nothing does: then the count starts again.
/// - A failed look changes nothing that is published, and what it showed never becomes a pin.
/// - An old key stays until looks succeeded without showing it for its whole grace time. Keys leave
///   only on a look that succeeded, so an endpoint that is down loses none, and never all of them.
/// - Time in which no look succeeded is no part of a grace time: after a long stop, an outage or a
///   clock that jumped ahead, the first look shows one server of a fleet, and the key of the others
///   was not missed meanwhile.
/// - Time never runs backwards here: a clock that was set back keeps the newest time seen.
///
/// Pure: values in, values out, the time an argument in Unix seconds.
public struct DomainLedger: Sendable, Hashable {
  /// The published keys, the oldest first; of keys first seen in the same second the smaller pin.
  public private(set) var keys: [KnownKey]
  /// Keys that were seen and wait for more looks. Not kept across restarts: counting starts again.
  public private(set) var candidates: [SPKIPin: Candidate] = [:]
  /// When a look last succeeded, in Unix seconds; `nil` before the first since this ledger was read.
  private var lastSuccess: Int64?

  /// A key on its way to being published.
  public struct Candidate: Sendable, Hashable {
    /// When it was first seen, in Unix seconds.
    public let firstSeen: Int64
    /// How many looks showed it.
    public var looks: Int
  }

  /// How many keys can wait at once. More than a fleet has mid-rotation, few enough that a server
  /// which shows another key each time fills no memory.
  public static let maximumCandidates = 16

  /// How far two looks may be apart, in seconds, and the time between still count as watched.
  static let watchedGap: Int64 = 3600

  /// A ledger of keys that were published before.
  public init(keys: [KnownKey] = []) { self.keys = Self.sorted(keys) }

  /// Enters one look and says what came of it.
  ///
  /// - Parameters:
  ///   - clock: Unix time in seconds.
  ///   - isListed: whether keys of other endpoints are published for the same hosts.
  public mutating func enter(
    _ look: Look, at clock: Int64, rule: ConfirmationRule, isListed: Bool = false
  ) -> [LedgerEvent] {
    let now = max(clock, lastSuccess ?? clock, keys.map(\.lastSeen).max() ?? clock)
    switch look.observations.first?.outcome ?? .unreachable(reason: "nobody looked") {
    case .unreachable(let reason): return [.unreachable(reason: reason)]
    case .refused(let reason, let presented):
      candidates = [:]
      return [.refused(reason: reason, presented: presented)]
    case .accepted(let chain):
      let pin = chain.leaf.pin
      excuseUnwatchedTime(before: now, rule)
      var events = dropLapsedCandidates(now, rule)
      if !keys.contains(where: { $0.pin == pin }) { events += meet(pin, now, rule, isListed) }
      for index in keys.indices {
        if keys[index].pin == pin {
          keys[index].lastSeen = now
          keys[index].missedSince = nil
        } else if keys[index].missedSince == nil {
          keys[index].missedSince = now
        }
      }
      return events + retire(now, rule)
    }
  }

  /// Whether a key waits for more looks, so that the next one should come soon.
  public var isWaiting: Bool { !candidates.isEmpty }

  /// Whether so much happened since `stored` was written that this ledger must be: other keys, or
  /// times that moved by more than a 24th of the grace time. (Writing every look would cost a disk
  /// flush per endpoint and minute for times that nobody acts on within hours.)
  public func isWorthStoring(over stored: DomainLedger, at now: Int64, rule: ConfirmationRule)
    -> Bool
  {
    guard keys.map(\.pin) == stored.keys.map(\.pin) else { return true }
    let slack = max(1, rule.grace / 24)
    return zip(keys, stored.keys).contains { own, old in
      abs(own.lastSeen - old.lastSeen) > slack
        || abs((own.missedSince ?? now) - (old.missedSince ?? now)) > slack
    }
  }

  /// This ledger together with what another server kept of the same endpoint: every key that either
  /// confirmed, seen as early and as late as either saw it. Waiting keys stay this server's own.
  public func merging(_ other: DomainLedger) -> DomainLedger {
    var merged = self
    for key in other.keys {
      guard let index = merged.keys.firstIndex(where: { $0.pin == key.pin }) else {
        merged.keys.append(key)
        merged.candidates[key.pin] = nil
        continue
      }
      let own = merged.keys[index]
      merged.keys[index] = KnownKey(
        pin: key.pin, firstSeen: min(own.firstSeen, key.firstSeen),
        lastSeen: max(own.lastSeen, key.lastSeen),
        missedSince: own.lastSeen >= key.lastSeen ? own.missedSince : key.missedSince)
    }
    merged.keys = Self.sorted(merged.keys)
    return merged
  }

  private mutating func meet(
    _ pin: SPKIPin, _ now: Int64, _ rule: ConfirmationRule, _ isListed: Bool
  ) -> [LedgerEvent] {
    var candidate = candidates[pin] ?? Candidate(firstSeen: now, looks: 0)
    candidate.looks += 1
    let needed = keys.isEmpty && !isListed ? 1 : rule.looks
    guard candidate.looks < needed else {
      candidates[pin] = nil
      let isFirst = keys.isEmpty
      keys = Self.sorted(
        keys + [KnownKey(pin: pin, firstSeen: candidate.firstSeen, lastSeen: now)])
      return [.published(pin, isFirst: isFirst)]
    }
    guard candidates[pin] != nil || candidates.count < Self.maximumCandidates else {
      return [.tooManyCandidates(pin)]
    }
    candidates[pin] = candidate
    return [.waiting(pin, looks: candidate.looks, needed: needed)]
  }

  private mutating func dropLapsedCandidates(
    _ now: Int64, _ rule: ConfirmationRule
  ) -> [LedgerEvent] {
    let lapsed = candidates.filter { now - $0.value.firstSeen > rule.window }.keys.sorted()
    for pin in lapsed { candidates[pin] = nil }
    return lapsed.map { .lapsed($0) }
  }

  /// Moves the beginning of every grace time by the time in which nobody could have seen the key.
  /// Looks an hour apart are watching, whatever the interval: a shorter gap is not worth a question.
  private mutating func excuseUnwatchedTime(before now: Int64, _ rule: ConfirmationRule) {
    defer { lastSuccess = now }
    guard let last = lastSuccess ?? keys.map(\.lastSeen).max() else { return }
    let gap = now - last
    guard gap > max(rule.window, Self.watchedGap) else { return }
    for index in keys.indices {
      keys[index].missedSince = keys[index].missedSince.map { max($0, min($0 + gap, now)) }
    }
  }

  private mutating func retire(_ now: Int64, _ rule: ConfirmationRule) -> [LedgerEvent] {
    let retired = keys.filter { now - ($0.missedSince ?? now) > rule.grace }.map(\.pin)
    guard !retired.isEmpty, retired.count < keys.count else { return [] }
    keys.removeAll { retired.contains($0.pin) }
    return retired.map { .retired($0) }
  }

  private static func sorted(_ keys: [KnownKey]) -> [KnownKey] {
    keys.sorted { ($0.firstSeen, $0.pin) < ($1.firstSeen, $1.pin) }
  }
}
