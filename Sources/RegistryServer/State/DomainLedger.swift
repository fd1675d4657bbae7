import Pinning

/// What is known about one endpoint, and every decision about which keys are published for it.
///
/// - The first key is published after one look with a valid chain and the right name: with nothing
///   published yet there is no list that it could break into. Where another endpoint has keys for the
///   same hosts there is one, and the first key counts as changed.
/// - A *changed* key is published beside the old ones only after the configured number of looks each
///   showed it, with a valid chain and the right name, to every vantage point. A look that shows a
///   published key in between does not count against it (behind a load balancer both answer in turn);
///   a look that shows nothing but chains that prove nothing does: then the count starts again.
/// - It is *held* for a person where not every vantage point saw it, where neither its issuer nor its
///   trust anchor was ever seen here or too many endpoints change at once and fewer than two vantage
///   points vouch for it, and where the endpoint asks for that. A held key is judged anew with
///   every look, and published once nothing holds it any more.
/// - A denied key is never published, whoever shows it.
/// - A failed look changes nothing that is published, and what it showed never becomes a pin.
/// - An old key stays until looks succeeded without showing it for its whole grace time. Keys leave
///   only on a look that succeeded, so an endpoint that is down loses none, and never all of them.
///   A staged key, announced and never seen, leaves only by hand.
/// - Time in which no look succeeded is no part of a grace time: after a long stop, an outage or a
///   clock that jumped ahead, the first look shows one server of a fleet, and the key of the others
///   was not missed meanwhile.
/// - Time never runs backwards here: a clock that was set back keeps the newest time seen.
///
/// Pure: values in, values out, the time an argument in Unix seconds.
public struct DomainLedger: Sendable, Hashable {
  /// The published keys, the oldest first; of keys first seen in the same second the smaller pin.
  public internal(set) var keys: [KnownKey]
  /// Keys that were seen and are not published. Those that need more looks are not kept across
  /// restarts: counting starts again.
  public internal(set) var candidates: [SPKIPin: CandidateKey] = [:]
  /// The issuers and anchors under which published keys were seen.
  public internal(set) var authorities: Set<SPKIPin>
  /// When a look last succeeded, in Unix seconds; `nil` before the first since this ledger was read.
  private var lastSuccess: Int64?

  /// How many keys can wait at once. More than a fleet has mid-rotation, few enough that a server
  /// which shows another key each time fills no memory.
  public static let maximumCandidates = 16
  /// How many looks follow each other quickly for a key that is held.
  static let looksWhileHeld = 12
  /// For how many seconds a key that is held for a sudden change may turn out to be one of few.
  static let undecided: Int64 = 60
  /// How many authorities are remembered.
  static let maximumAuthorities = 32
  /// How far two looks may be apart, in seconds, and the time between still count as watched.
  static let watchedGap: Int64 = 3600

  /// A ledger of keys that were published before.
  public init(
    keys: [KnownKey] = [], held: [SPKIPin: CandidateKey] = [:], authorities: Set<SPKIPin> = []
  ) {
    self.keys = Self.sorted(keys)
    self.authorities = authorities
    candidates = held
  }

  /// Enters one look and says what came of it.
  ///
  /// - Parameter clock: Unix time in seconds.
  public mutating func enter(
    _ look: Look, at clock: Int64, rule: ConfirmationRule,
    context: DecisionContext = DecisionContext()
  ) -> [LedgerEvent] {
    let now = max(clock, lastSuccess ?? clock, keys.map(\.lastSeen).max() ?? clock)
    let sightings = Sighting.all(in: look)
    guard !sightings.isEmpty else { return fail(look) }
    excuseUnwatchedTime(before: now, rule)
    var events = dropLapsedCandidates(now, rule)
    for sighting in sightings {
      if context.denied.contains(sighting.pin) {
        candidates[sighting.pin] = nil
        events.append(.deniedKeySeen(sighting.pin))
      } else if let index = keys.firstIndex(where: { $0.pin == sighting.pin }) {
        if keys[index].staged != nil { events.append(.activated(sighting.pin)) }
        note(sighting, at: index, now)
      } else {
        events += meet(sighting, now, rule, context)
      }
    }
    let seen = Set(sightings.map(\.pin))
    for index in keys.indices where !seen.contains(keys[index].pin) && keys[index].staged == nil {
      keys[index].missedSince = keys[index].missedSince ?? now
    }
    return events + Self.refusals(in: look) + retire(now, rule)
  }

  /// Whether a key waits for more looks, so that the next one should come soon. What holds a key may
  /// be settled by another few looks; a person's decision is not.
  public var isWaiting: Bool {
    candidates.values.contains { candidate in
      !candidate.isHeld
        || candidate.looks < Self.looksWhileHeld
          && candidate.reasons.allSatisfy { $0 == .suddenChange || $0 == .vantagePoints }
    }
  }

  /// The keys that wait for more than looks.
  public var held: [SPKIPin: CandidateKey] { candidates.filter(\.value.isHeld) }

  /// Publishes a key that is not published yet. Its evidence, where it has any, is remembered.
  mutating func publish(_ pin: SPKIPin, at now: Int64) {
    let candidate = candidates.removeValue(forKey: pin)
    guard !keys.contains(where: { $0.pin == pin }) else { return }
    keys = Self.sorted(
      keys + [
        KnownKey(
          pin: pin, firstSeen: candidate?.firstSeen ?? now, lastSeen: candidate?.lastSeen ?? now,
          certificateExpires: candidate?.chain.leaf.expiry)
      ])
    if let candidate { learn(candidate.chain) }
  }

  static func sorted(_ keys: [KnownKey]) -> [KnownKey] {
    keys.sorted { ($0.firstSeen, $0.pin) < ($1.firstSeen, $1.pin) }
  }

  private mutating func fail(_ look: Look) -> [LedgerEvent] {
    let refusals = Self.refusals(in: look)
    guard refusals.isEmpty else {
      candidates = held
      return refusals
    }
    for case .unreachable(let reason) in look.observations.map(\.outcome) {
      return [.unreachable(reason: reason)]
    }
    return [.unreachable(reason: "nobody looked")]
  }

  private static func refusals(in look: Look) -> [LedgerEvent] {
    var events: [LedgerEvent] = []
    for case .refused(let reason, let presented) in look.observations.map(\.outcome) {
      let event = LedgerEvent.refused(reason: reason, presented: presented)
      if !events.contains(event) { events.append(event) }
    }
    return events
  }

  /// A published key was seen.
  private mutating func note(_ sighting: Sighting, at index: Int, _ now: Int64) {
    keys[index].lastSeen = now
    keys[index].missedSince = nil
    keys[index].staged = nil
    keys[index].certificateExpires = sighting.chain.leaf.expiry
    learn(sighting.chain)
  }

  private mutating func learn(_ chain: SeenChain) {
    for pin in Self.authorities(of: chain) where authorities.count < Self.maximumAuthorities {
      authorities.insert(pin)
    }
  }

  private static func authorities(of chain: SeenChain) -> [SPKIPin] {
    chain.path.count > 1 ? [chain.path[1].pin, chain.path[chain.path.count - 1].pin] : []
  }

  private mutating func meet(
    _ sighting: Sighting, _ now: Int64, _ rule: ConfirmationRule, _ context: DecisionContext
  ) -> [LedgerEvent] {
    let pin = sighting.pin
    var candidate = candidates[pin] ?? CandidateKey(firstSeen: now, chain: sighting.chain)
    candidate.looks += 1
    if sighting.vantages.isSuperset(of: context.vantages) { candidate.agreed += 1 }
    candidate.chain = sighting.chain
    candidate.lastSeen = now
    candidate.vantages = sighting.vantages.sorted()
    guard candidates[pin] != nil || candidates.count < Self.maximumCandidates else {
      return [.tooManyCandidates(pin)]
    }
    let isFirst = keys.isEmpty
    let needed = isFirst && !context.isListed ? 1 : rule.looks
    let before = candidate.reasons
    candidate.reasons = candidate.looks < needed ? [] : reasons(against: candidate, needed, context)
    candidates[pin] = candidate
    if candidate.looks < needed {
      return [.waiting(pin, looks: candidate.looks, needed: needed)]
    }
    guard candidate.reasons.isEmpty else {
      return candidate.reasons == before ? [] : [.held(pin, candidate.reasons)]
    }
    publish(pin, at: now)
    return [.published(pin, isFirst: isFirst)]
  }

  private func reasons(
    against candidate: CandidateKey, _ needed: Int, _ context: DecisionContext
  ) -> [CandidateKey.HoldReason] {
    var reasons: [CandidateKey.HoldReason] = []
    let behind = Self.authorities(of: candidate.chain)
    let isNewIssuer =
      !authorities.isEmpty && !behind.isEmpty && authorities.isDisjoint(with: behind)
    if candidate.agreed < needed { reasons.append(.vantagePoints) }
    if isNewIssuer, candidate.vantages.count < 2 { reasons.append(.newIssuer) }
    if !keys.isEmpty || context.isListed {
      // Undecided for a few looks, while others are looked at; then for good. What lasts longer than the
      // gauge remembers is no more trustworthy for that.
      let isDecided =
        candidate.reasons.contains(.suddenChange)
        && (candidate.looks > Self.looksWhileHeld
          || candidate.lastSeen - candidate.firstSeen > Self.undecided)
      if candidate.vantages.count < 2, context.isSudden || isDecided {
        reasons.append(.suddenChange)
      }
      if context.approval == .manual { reasons.append(.manual) }
    }
    return reasons.sorted()
  }

  private mutating func dropLapsedCandidates(
    _ now: Int64, _ rule: ConfirmationRule
  ) -> [LedgerEvent] {
    let lapsed = candidates.filter { _, candidate in
      candidate.isHeld
        ? now - candidate.lastSeen > rule.grace : now - candidate.firstSeen > rule.window
    }.keys.sorted()
    for pin in lapsed { candidates[pin] = nil }
    return lapsed.map { .lapsed($0) }
  }

  /// Moves the beginning of every grace time by the time in which nobody could have seen the key.
  /// Looks an hour apart are watching, whatever the interval: a shorter gap is not worth a question.
  private mutating func excuseUnwatchedTime(before now: Int64, _ rule: ConfirmationRule) {
    defer { lastSuccess = now }
    // Of another server's looks too, as far as they are known by what they saw.
    guard let last = (keys.map(\.lastSeen) + [lastSuccess].compactMap(\.self)).max() else { return }
    let gap = now - last
    guard gap > max(rule.window, Self.watchedGap) else { return }
    for index in keys.indices {
      keys[index].missedSince = keys[index].missedSince.map { max($0, min($0 + gap, now)) }
    }
  }

  private mutating func retire(_ now: Int64, _ rule: ConfirmationRule) -> [LedgerEvent] {
    let retired = keys.filter { now - ($0.missedSince ?? now) > rule.grace }.map(\.pin)
    let left = keys.filter { !retired.contains($0.pin) && $0.staged == nil }
    guard !retired.isEmpty, !left.isEmpty else { return [] }
    keys.removeAll { retired.contains($0.pin) }
    return retired.map { .retired($0) }
  }
}
