import Pinning

/// What is known about one endpoint, and every decision about which keys are published for it.
///
/// - The first key is published after one look with a valid chain and the right name: with nothing
///   published yet there is no list that it could break into. Where another endpoint has keys for the
///   same hosts there is one, and the first key counts as changed.
/// - A *changed* key is published beside the old ones only after the configured number of looks each
///   showed it, with a valid chain and the right name. A look that shows a published key in between does
///   not count against it (behind a load balancer both answer in turn); a look that shows nothing but
///   chains that prove nothing does: then the count starts again.
/// - Under a CA that is known here nothing else is asked: a rotation that nobody announced must lock nobody
///   out, however many endpoints change and whoever is silent. It is *held* only while a quorum of vantage
///   points answers and sees other keys, and where the operator asks for a person.
/// - Under a CA that is neither known here nor named beforehand it is held for a person, unless a quorum
///   vouches for it. Known is a CA whose issuer or anchor keys here were under within the grace time.
/// - A held key is judged anew with every look, and published once nothing holds it any more.
/// - A denied key is never published, whoever shows it.
/// - A key that nobody announced, was there for less than an hour and is gone is *withdrawn*: somebody
///   stood between (``KnownKey/isPassing(at:)``).
/// - A failed look changes nothing that is published, and what it showed never becomes a pin.
/// - An old key stays until looks succeeded without showing it for its whole grace time. Keys leave
///   only on a look that succeeded, so an endpoint that is down loses none, and never all of them.
///   A staged key, announced and never seen, leaves only by hand.
/// - Time in which no look succeeded is no part of a grace time: after a long stop, an outage or a
///   clock that jumped ahead, the first look shows one server of a fleet, and the key of the others
///   was not missed meanwhile.
/// - Time never runs backwards here: a clock that is less than an hour behind keeps the newest time seen. What is
///   further ahead was written by a clock that was put right since, and is taken back (``endTimesToCome(at:)``).
///
/// Pure: values in, values out, the time an argument in Unix seconds.
public struct DomainLedger: Sendable, Hashable {
  /// The published keys, the oldest first; of keys first seen in the same second the smaller pin.
  public internal(set) var keys: [KnownKey]
  /// Keys that were seen and are not published. Those that need more looks are not kept across
  /// restarts: counting starts again.
  public internal(set) var candidates: [SPKIPin: CandidateKey] = [:]
  /// The issuers and anchors under which published keys were seen, and when they last were.
  public internal(set) var authorities: [SPKIPin: Int64]
  /// When a look last succeeded, in Unix seconds; `nil` before the first since this ledger was read.
  var lastSuccess: Int64?

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
    keys: [KnownKey] = [], held: [SPKIPin: CandidateKey] = [:], authorities: [SPKIPin: Int64] = [:]
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
    endTimesToCome(at: clock)
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
        events += meet(sighting, in: sightings, now, rule, context)
      }
    }
    let seen = Set(sightings.map(\.pin))
    for index in keys.indices where !seen.contains(keys[index].pin) && keys[index].staged == nil {
      keys[index].missedSince = keys[index].missedSince ?? now
      if look.coversEveryAddress { keys[index].missedLooks += 1 }
    }
    for pin in candidates.keys where !seen.contains(pin) { candidates[pin]?.missedLooks += 1 }
    return events + Self.refusals(in: look) + withdrawPassing(now) + retire(now, rule)
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

  /// Whether a key may be about to be withdrawn, so that the next look should not wait for its turn.
  public var isDoubtful: Bool {
    keys.contains {
      $0.isShortLived && $0.missedSince != nil && $0.missedLooks < $0.looksToWithdraw
    }
  }

  /// Publishes a key that is not published yet. Its evidence, where it has any, is remembered.
  ///
  /// - Parameter isUnannounced: whether looks alone speak for it, beside keys that were published before.
  mutating func publish(_ pin: SPKIPin, at now: Int64, isUnannounced: Bool = false) {
    let candidate = candidates.removeValue(forKey: pin)
    guard !keys.contains(where: { $0.pin == pin }) else { return }
    keys = Self.sorted(
      keys + [
        KnownKey(
          pin: pin, firstSeen: candidate?.firstSeen ?? now, lastSeen: candidate?.lastSeen ?? now,
          certificateExpires: candidate?.chain.leaf.expiry, isUnannounced: isUnannounced,
          longestGap: candidate?.longestGap ?? 0)
      ])
    if let candidate { learn(candidate.chain, now) }
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
    keys[index].longestGap = max(keys[index].longestGap, keys[index].missedLooks)
    keys[index].missedLooks = 0
    keys[index].staged = nil
    keys[index].certificateExpires = sighting.chain.leaf.expiry
    learn(sighting.chain, now)
  }

  private mutating func learn(_ chain: SeenChain, _ now: Int64) {
    for pin in Self.authorities(of: chain) { authorities[pin] = now }
    while authorities.count > Self.maximumAuthorities,
      let oldest = authorities.min(by: { ($0.value, $0.key) < ($1.value, $1.key) })
    {
      authorities[oldest.key] = nil
    }
  }

  /// Forgets CAs that were left: those that nobody was seen under for the grace time, while others were.
  private mutating func forgetAuthorities(_ rule: ConfirmationRule) {
    guard let newest = authorities.values.max() else { return }
    authorities = authorities.filter { newest - $0.value <= rule.grace }
  }

  private static func authorities(of chain: SeenChain) -> [SPKIPin] {
    chain.path.count > 1 ? [chain.path[1].pin, chain.path[chain.path.count - 1].pin] : []
  }

  private mutating func meet(
    _ sighting: Sighting, in look: [Sighting], _ now: Int64, _ rule: ConfirmationRule,
    _ context: DecisionContext
  ) -> [LedgerEvent] {
    let pin = sighting.pin
    var candidate = candidates[pin] ?? CandidateKey(firstSeen: now, chain: sighting.chain)
    candidate.enter(sighting, at: now, window: rule.window)
    guard candidates[pin] != nil || candidates.count < Self.maximumCandidates else {
      return [.tooManyCandidates(pin)]
    }
    let isFirst = keys.isEmpty
    let needed = isFirst && !context.isListed ? 1 : rule.looks
    let before = candidate.reasons
    let answers = look.reduce(into: Set()) { $0.formUnion($1.vantages) }
    let others = candidate.opposing(
      answers.intersection(context.vantages), at: now, window: rule.window)
    candidate.reasons =
      candidate.looks < needed ? [] : reasons(against: candidate, needed, others, context)
    candidates[pin] = candidate
    if candidate.looks < needed {
      return [.waiting(pin, looks: candidate.looks, needed: needed)]
    }
    guard candidate.reasons.isEmpty else {
      return candidate.reasons == before ? [] : [.held(pin, candidate.reasons)]
    }
    publish(pin, at: now, isUnannounced: !isFirst)
    return [.published(pin, isFirst: isFirst)]
  }

  private func reasons(
    against candidate: CandidateKey, _ needed: Int, _ others: Int, _ context: DecisionContext
  ) -> [CandidateKey.HoldReason] {
    var reasons: [CandidateKey.HoldReason] = []
    let isVouchedFor = candidate.vouching(needed) >= context.quorum
    if context.isOutvoted(by: others) { reasons.append(.vantagePoints) }
    if !isKnown(candidate.chain, context), !isVouchedFor { reasons.append(.newIssuer) }
    if !keys.isEmpty || context.isListed {
      // Undecided for a few looks, while others are looked at; then for good. What lasts longer than the
      // gauge remembers is no more trustworthy for that.
      let isDecided =
        candidate.reasons.contains(.suddenChange)
        && (candidate.looks > Self.looksWhileHeld
          || candidate.lastSeen - candidate.firstSeen > Self.undecided)
      if !isVouchedFor, context.isSudden || isDecided { reasons.append(.suddenChange) }
      if context.approval == .manual { reasons.append(.manual) }
    }
    return reasons.sorted()
  }

  /// Whether a chain is under a CA of this endpoint, or under one that was named. A leaf that is its own
  /// anchor has none.
  private func isKnown(_ chain: SeenChain, _ context: DecisionContext) -> Bool {
    let behind = Self.authorities(of: chain)
    return authorities.isEmpty || behind.isEmpty || behind.contains { authorities[$0] != nil }
      || chain.path.dropFirst().contains { context.issuers.contains($0.pin) }
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
    authorities = authorities.mapValues { max($0, min($0 + gap, now)) }
  }

  /// Only beside an older key that is shown: what nobody shows instead may be a server that is away.
  private mutating func withdrawPassing(_ now: Int64) -> [LedgerEvent] {
    guard let oldest = keys.first(where: { $0.state == .active })?.firstSeen else { return [] }
    let passing = keys.filter { $0.firstSeen > oldest && $0.isPassing(at: now) }.map(\.pin)
    for pin in passing { withdraw(pin) }
    return passing.map { .withdrawn($0) }
  }

  private mutating func retire(_ now: Int64, _ rule: ConfirmationRule) -> [LedgerEvent] {
    forgetAuthorities(rule)
    let retired = keys.filter { now - ($0.missedSince ?? now) > rule.grace }.map(\.pin)
    let left = keys.filter { !retired.contains($0.pin) && $0.staged == nil }
    guard !retired.isEmpty, !left.isEmpty else { return [] }
    keys.removeAll { retired.contains($0.pin) }
    return retired.map { .retired($0) }
  }
}
