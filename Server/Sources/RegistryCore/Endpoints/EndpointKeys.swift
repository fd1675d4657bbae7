import SslPinningRules

/// What is known about one endpoint, and every decision about which keys are published for it.
///
/// - The first key is published after one probe with a valid chain and the right name: with nothing
///   published yet there is no list that it could break into. So are the other kinds of key that the same probe shows at
///   the same place: whoever stands there has the first already. If other endpoints have keys for the
///   same hosts there is one, and a first key that none of them has counts as changed: also if a key was announced
///   here, which says nothing of a CA.
/// - A *changed* key is published beside the old ones only after the configured number of probes each
///   showed it, with a valid chain and the right name. A probe that shows a published key in between does
///   not count against it (behind a load balancer both answer in turn); a probe that shows nothing but
///   chains that prove nothing does: then the count starts again.
/// - Under a CA that is known here nothing else is asked: a rotation that nobody announced must lock nobody
///   out, however many endpoints change and whoever is silent. It is *held* only while a quorum of vantage
///   points answers and sees other keys, while this server does and no quorum sees it, and if the operator
///   asks for a person.
/// - Under a CA that is neither known here nor named beforehand it is held for a person, unless a quorum
///   vouches for it within the window. Known are the CAs (issuer or anchor) of published keys, and those that
///   keys here were under within the grace time; for a first key those of the other endpoints for its hosts, and beside
///   keys that were only announced, or are anchors themselves, none.
/// - A held key is judged anew with every probe that shows it, and published once nothing holds it any more. If its CA is
///   forgotten, it waits for that, too, also while no probe shows it.
/// - If too many new keys wait, one under a known CA takes the place of one that is not, and one that is shown
///   now the place of one that is not. What gives way is told.
/// - A denied key is not published, whoever shows it, nor is a new key under one (but see `DocumentContent`: a list is
///   never empty). A published key under one stays, and is told: its servers show it, and clients refuse it until they
///   have another path.
/// - A probe *misses* a key if every place that showed it answers, and none shows it (``ProbeCoverage``). If one of
///   them is silent nothing is known: that time counts for nothing, and somebody is told if it lasts.
/// - A key that nobody announced, was there for less than an hour and is missed is *withdrawn*: somebody
///   stood between (``KnownKey/isPassing(at:)``). That takes a shown key that it interrupted, or that somebody spoke for
///   (``KnownKey/disproves(_:)``); beside another one it stays for its grace time, and is told. Until it is an hour old, a
///   probe in which it is outvoted misses it, too, whether it shows it or is silent where it was.
/// - A vantage point that was asked for a kind of key and got no answer is silent about keys of that kind.
/// - A failed probe changes nothing that is published, and what it showed never becomes a pin.
/// - A key that was announced by somebody who may do nothing else makes no CA known but at first sight, before a person or
///   a quorum of vantage points speaks for it: whoever stole the means to announce would have all keys under his CA published.
/// - No CA becomes known by a handshake that was not finished, but at first sight: it proves the key, and not the chain. Nor is it
///   when a person approves the key, unless that person names its issuer.
/// - An old key stays until probes have missed it for its whole grace time. Keys leave only on a successful probe,
///   so an endpoint that is down loses none, and no endpoint loses all that are not denied. A staged key, announced and never seen,
///   leaves only by hand.
/// - Time without a successful probe is not part of a grace time: after a long stop, an outage or a clock
///   that jumped ahead, the first probe shows one server of a fleet, and says nothing about the others' key.
/// - Time never runs backwards here: if the clock is less than an hour behind, the newest time seen is kept. Times
///   further ahead were written by a fast clock that was corrected, and are taken back (``endTimesToCome(at:)``).
///
/// Pure: values in, values out, the time an argument in Unix seconds.
public struct EndpointKeys: Sendable, Hashable {
  /// The published keys, the oldest first; keys first seen in the same second are sorted by pin.
  public internal(set) var keys: [KnownKey]
  /// Keys that were seen and are not published yet. Those that only need more probes do not survive a
  /// restart: counting starts again.
  public internal(set) var candidates: [SPKIPin: CandidateKey] = [:]
  /// The issuers and anchors under which published keys were seen, and when they last were.
  public internal(set) var authorities: [SPKIPin: Int64] {
    didSet { doubtHeldKeys(since: oldValue) }
  }
  /// When a probe last succeeded, in Unix seconds; `nil` if none has since this state was read.
  var lastSuccess: Int64?
  /// When this state was first probed since it was read, or since nobody watched, and the vantage points that had seen a listed key before.
  /// What they saw later may not have been stored.
  private var (firstProbed, readPoints): (Int64?, Set<String>) = (nil, [])
  /// Which alerts come and go.
  var returning = ReturningAlerts()
  /// Since when fewer vantage points than the quorum reach the endpoint, though others are there.
  var blockedSince: Int64?

  /// How many keys can wait at once: more than a fleet shows mid-rotation, and few enough that a server
  /// which shows a new key each time cannot fill memory.
  public static let maximumCandidates = 16
  /// The most keys that are announced and that nobody has seen.
  package static let maximumStaged = 64
  /// How many probes a held key gets in quick succession.
  static let probesWhileHeld = 12
  /// For how many seconds a key that is held for a mass change may turn out to be one of few changes.
  static let undecided: Int64 = 60
  /// How many authorities are remembered.
  static let maximumAuthorities = 32
  /// How many seconds may lie between two probes for that time to count as watched.
  static let watchedGap: Int64 = 3600
  /// For how many seconds a point that is there and does not get to the endpoint stands by what it saw.
  package static let lastWord: Int64 = 3600

  /// The state of an endpoint with these published keys.
  public init(
    keys: [KnownKey] = [], held: [SPKIPin: CandidateKey] = [:], authorities: [SPKIPin: Int64] = [:]
  ) {
    self.keys = Self.sorted(keys)
    self.authorities = authorities
    candidates = held
  }

  /// Enters one probe and returns what it led to.
  ///
  /// - Parameter clock: Unix time in seconds.
  public mutating func enter(
    _ probe: ProbeResult, at clock: Int64, rule: ConfirmationRule,
    context: DecisionContext = DecisionContext()
  ) -> [KeyEvent] {
    endTimesToCome(at: clock)
    for pin in candidates.keys { candidates[pin]?.isGainingVoices = false }
    var context = context
    context.unheard = probe.unheard
    let now = max(clock, lastSuccess ?? clock, keys.map(\.lastSeen).max() ?? clock)
    let passing = self.passing
    let isFirstSight = isUnseen && authorities.isEmpty && !context.isListed
    let observed = ObservedKey.all(in: probe)
    let sightings = isFirstSight ? observed : believed(observed, context)
    guard !sightings.isEmpty else { return fail(probe) + deniedAbove([], at: now, context) }
    if firstProbed == nil || isUnwatched(until: now, rule) {
      // A copy does not say who saw its keys.
      let isUnsaid = !keys.isEmpty && keys.allSatisfy(\.seenAt.isEmpty)
      (firstProbed, readPoints) = (now, isUnsaid ? context.vantages : pointsSeeing(since: .min))
    }
    // A server may limit what one point asks, and whoever is before this server may use that up, or this server's time.
    let lastWord = sawKeys(within: max(Self.lastWord, rule.window), at: now)
    context.blocked = probe.unreached.intersection(context.vantages)
    context.lacking = probe.lacking
    context.withheld = probe.withheld.mapValues { $0.intersection(lastWord) }
    context.contradicting = probe.overasked.union(probe.unreached.intersection(lastWord))
      .union(probe.delayed.intersection(sawKeys(within: rule.window, at: now)))
    let last = excuseUnwatchedTime(before: now, rule)
    context.standing = standing
    var events = dropLapsedCandidates(now, rule)
    var shown: Set<SPKIPin> = []
    var outvoted: Set<SPKIPin> = []
    let coverage = ProbeCoverage(probe, context)
    // Entered before the sightings: a place that shows the key now is taken out again by its sighting.
    for index in keys.indices where !probe.leftOut.isEmpty {
      keys[index].answered.formUnion(keys[index].seenAt.keys.filter(coverage.hasAnsweredHere))
    }
    let isNew = keys.isEmpty && authorities.isEmpty
    var first: Set<Place> = []
    for sighting in sightings {
      if context.denied.contains(sighting.pin) {
        candidates[sighting.pin] = nil
        events.append(.deniedKeySeen(sighting.pin))
      } else if let index = keys.firstIndex(where: { $0.pin == sighting.pin }) {
        guard !isOutvoted(at: index, sighting, in: sightings, now, context) else {
          outvoted.insert(sighting.pin)
          continue
        }
        let taught = taught(by: index, isFirstSight, sighting, rule, context)
        if keys[index].staged != nil {
          let isUnderNewCA = taught.count < sighting.paths.count
          events.append(.activated(sighting.pin, isUnderNewCA: isUnderNewCA))
        }
        keys[index].note(sighting, at: now)
        learn(taught, now)
        shown.insert(sighting.pin)
      } else if let usable = sighting.without(context.denied) {
        let met = meet(
          usable, in: sightings, now, rule, context,
          isBesideFirst: isNew && usable.isAskedFor && !usable.points.isDisjoint(with: first))
        if first.isEmpty, met.contains(.published(usable.pin, isFirst: true)) {
          first = usable.points
        }
        events += met
      } else {
        candidates[sighting.pin] = nil
      }
    }
    let seen = Set(sightings.map(\.pin)).subtracting(outvoted)
    for key in keys where !seen.contains(key.pin) && isOutvoted(key, in: sightings, context) {
      outvoted.insert(key.pin)
    }
    let answering = Self.answering(sightings, context)
    events += noteBlocked(beside: answering, at: now, context)
    for pin in candidates.keys where !seen.contains(pin) {
      candidates[pin]?.miss(among: answering, at: now, window: rule.window, context)
    }
    events += miss(allBut: seen, at: now, since: last, rule) { key in
      outvoted.contains(key.pin) || coverage.misses(key)
    }
    for index in keys.indices {
      keys[index].forgetPaths(before: now - rule.grace, where: coverage.isGone)
    }
    events +=
      refusals(in: probe, proving: seen.subtracting(context.denied))
      + withdrawPassing(beside: shown, now, told: passing)
      + retire(now, rule, denied: context.denied)
    return events + lackingCA(sightings, context) + deniedAbove(sightings, at: now, context)
  }

  /// The vantage points that saw a listed key within so many seconds.
  private func sawKeys(within seconds: Int64, at now: Int64) -> Set<String> {
    let read = now - (firstProbed ?? now) <= seconds ? readPoints : []
    return pointsSeeing(since: now - seconds).union(read)
  }

  func pointsSeeing(since time: Int64) -> Set<String> {
    Set(keys.flatMap { $0.seenAt.filter { $0.value >= time }.map(\.key.vantage) })
  }

  /// What a probe showed, as far as it is believed after the first sight.
  private func believed(_ sightings: [ObservedKey], _ context: DecisionContext) -> [ObservedKey] {
    let known = Set(authorities.keys).union(context.listedAuthorities).union(context.issuers)
      .union(context.demanded)
    return sightings.map { $0.believed(beside: known) }
  }

  /// Whether a key waits for more probes, so that the next one should come soon. A few more probes may also
  /// settle why a key is held, unless it waits for a person or is gone.
  public var isWaiting: Bool {
    candidates.values.contains { candidate in
      !candidate.isHeld || candidate.isGainingVoices
        || candidate.isShown && candidate.probes < Self.probesWhileHeld
          && candidate.reasons.allSatisfy { $0 == .massChange || $0 == .vantagePoints }
    }
  }

  /// Whether no probe has shown a published key yet: one that was only announced says nothing of a CA.
  package var isUnseen: Bool { keys.allSatisfy { $0.staged != nil } }

  /// When one of its keys was last seen, or announced, in Unix seconds.
  var lastSeen: Int64 { keys.map(\.lastSeen).max() ?? .min }

  /// The keys that wait for more than probes.
  public var held: [SPKIPin: CandidateKey] { candidates.filter(\.value.isHeld) }

  /// Whether a key may be about to be withdrawn, so that the next probe should not wait for its turn.
  public var isDoubtful: Bool { keys.contains(where: \.isDoubtful) }

  /// Publishes a key that is not published yet, and remembers its evidence, if any.
  ///
  /// - Parameter isUnannounced: whether only probes support it, beside keys that were published before.
  mutating func publish(_ pin: SPKIPin, at now: Int64, isUnannounced: Bool = false) {
    let candidate = candidates.removeValue(forKey: pin)
    guard !keys.contains(where: { $0.pin == pin }) else { return }
    var key = KnownKey(
      pin: pin, firstSeen: candidate?.firstSeen ?? now, lastSeen: candidate?.lastSeen ?? now,
      certificateExpires: candidate?.chain.leaf.expiry, isUnannounced: isUnannounced,
      longestGap: candidate?.longestGap ?? 0, shownFor: candidate?.shownFor)
    if isUnannounced { key.interrupted = candidate?.interrupted }
    if let candidate {
      // The last probe did not show it. Until one does, it is no reason to take another key off the list.
      if candidate.missedProbes > 0 {
        (key.missedSince, key.missedProbes) = (now, candidate.missedProbes)
      }
      // The record of a held key does not say where it was seen.
      let isPlaced = !candidate.paths.isEmpty
      if isPlaced { key.remember(candidate.paths, at: candidate.lastSeen) }
      // Points that saw it in an earlier probe, in which each is asked without an address, too.
      let points = candidate.witnesses.filter { $0.key != ProbeObservation.direct }
      for (point, witness) in points where !key.vantages.contains(point) {
        key.seenAt[Place(vantage: point, address: "")] = witness.lastSeen
      }
      if !isPlaced {
        let (chain, known) = (candidate.chain, authorities)
        key.paths[.unknown] = chain.above.filter { chain.isConfirmed || known[$0] != nil }
      }
      learn(key.paths.values, now)
    }
    keys = Self.sorted(keys + [key])
  }

  static func sorted(_ keys: [KnownKey]) -> [KnownKey] {
    keys.sorted { ($0.firstSeen, $0.pin) < ($1.firstSeen, $1.pin) }
  }

  /// The denied keys above the keys shown, or above a published key at its last known places.
  func deniedAbove(_ sightings: [ObservedKey] = [], at now: Int64, _ context: DecisionContext)
    -> [KeyEvent]
  {
    let shown = sightings.flatMap(\.paths.values)
    return (shown + pathsInUse(at: now)).reduce(into: Set<SPKIPin>()) {
      $0.formUnion(context.denied.intersection($1))
    }.sorted().map { .deniedAuthoritySeen($0) }
  }

  /// The paths of published keys that are still in use.
  ///
  /// - Parameter denied: keys whose paths do not matter, because clients refuse them anyway.
  package func pathsInUse(at now: Int64, but denied: Set<SPKIPin> = []) -> [[SPKIPin]] {
    keys.filter { !$0.isLeft(at: now) && !denied.contains($0.pin) }.flatMap(\.paths.values)
  }

  private mutating func fail(_ probe: ProbeResult) -> [KeyEvent] {
    let refusals = refusals(in: probe, proving: [])
    guard refusals.isEmpty else {
      candidates = held
      return refusals
    }
    for case .unreachable(let reason) in probe.observations.map(\.outcome) {
      return [.unreachable(reason: reason)]
    }
    return [.unreachable(reason: "nobody probed")]
  }

  /// The chains that prove nothing. Where only vantage points are shown one, while a listed key is proved, apps elsewhere are
  /// served: one point behind a proxy that inspects is no outage.
  ///
  /// - Parameter proved: the keys that the probe proved, without denied and outvoted ones.
  private func refusals(in probe: ProbeResult, proving proved: Set<SPKIPin>) -> [KeyEvent] {
    let isRefusedHere = probe.observations.contains {
      if case .refused = $0.outcome { $0.vantage == ProbeObservation.direct } else { false }
    }
    let isDisputed = !isRefusedHere && keys.contains { proved.contains($0.pin) }
    var events: [KeyEvent] = []
    for case .refused(let reason, let presented) in probe.observations.map(\.outcome) {
      let event = KeyEvent.refused(reason: reason, presented: presented, isDisputed: isDisputed)
      if !events.contains(event) { events.append(event) }
    }
    return events
  }
}

extension EndpointKeys {
  /// Sets times in the future to now: they were written by a fast clock that was corrected since.
  ///
  /// - If kept, they would remain the newest time until the clock catches up: confirmations would add up
  ///   over days, and no key would retire.
  /// - Probes counted under the fast clock confirm nothing: counting starts again. Held keys stay.
  /// - Times up to ``SteadyTime/tolerance`` ahead are left alone: another server's clock may differ.
  mutating func endTimesToCome(at clock: Int64) {
    let times =
      keys.flatMap { [$0.lastSeen, $0.missedSince ?? $0.lastSeen] } + authorities.values
      + candidates.values.map(\.lastSeen) + [lastSuccess].compactMap(\.self)
    guard let newest = times.max(), newest > clock + SteadyTime.tolerance else { return }
    lastSuccess = lastSuccess.map { min($0, clock) }
    authorities = authorities.mapValues { min($0, clock) }
    for index in keys.indices { keys[index].endTimesToCome(at: clock) }
    keys = Self.sorted(keys)
    candidates = held.mapValues { candidate in
      var candidate = candidate
      candidate.endTimesToCome(at: clock)
      return candidate
    }
  }
}

extension KnownKey {
  fileprivate mutating func endTimesToCome(at clock: Int64) {
    firstSeen = min(firstSeen, clock)
    lastSeen = min(lastSeen, clock)
    seenAt = seenAt.mapValues { min($0, clock) }
    missedSince = missedSince.map { min($0, clock) }
    unaskedSince = unaskedSince.map { min($0, clock) }
    outvotedAt = outvotedAt.map { min($0, clock) }
    if let staging = staged { staged?.at = min(staging.at, clock) }
  }
}

extension CandidateKey {
  fileprivate mutating func endTimesToCome(at clock: Int64) {
    firstSeen = min(firstSeen, clock)
    outvotedAt = outvotedAt.map { min($0, clock) }
    lastSeen = min(lastSeen, clock)
    witnesses = witnesses.mapValues {
      Witness(probes: $0.probes, lastSeen: min($0.lastSeen, clock))
    }
  }
}

extension EndpointKeys {
  /// What is kept across restarts: everything but keys that only need more probes.
  package var kept: EndpointKeys { EndpointKeys(keys: keys, held: held, authorities: authorities) }

  /// Whether a key is there, or was: its CAs are remembered.
  var hadKeys: Bool { !keys.isEmpty || !authorities.isEmpty }

  /// Whether there is anything to keep; records leave out endpoints without.
  var hasKept: Bool { !keys.isEmpty || !authorities.isEmpty || !held.isEmpty }

  /// Whether this state must be written over `stored`: its keys differ, or its times moved by more than a
  /// 24th of the grace time. (Writing every probe would cost a disk flush per endpoint and minute for times
  /// that matter only after hours.)
  public func isWorthStoring(over stored: EndpointKeys, at now: Int64, rule: ConfirmationRule)
    -> Bool
  {
    guard keys.count == stored.keys.count, authorities.keys == stored.authorities.keys,
      held.mapValues(\.reasons) == stored.held.mapValues(\.reasons),
      held.mapValues(\.isContradicted) == stored.held.mapValues(\.isContradicted),
      held.mapValues(\.chain.issuer) == stored.held.mapValues(\.chain.issuer),
      held.mapValues(\.chain.isConfirmed) == stored.held.mapValues(\.chain.isConfirmed),
      // Servers that follow tell by it whether apps are refused.
      held.mapValues(\.isShown) == stored.held.mapValues(\.isShown)
    else { return true }
    let slack = max(1, rule.grace / 24)
    guard authorities.allSatisfy({ abs($0.value - (stored.authorities[$0.key] ?? 0)) <= slack })
    else { return true }
    return zip(keys, stored.keys).contains { own, old in
      own.pin != old.pin || own.staged != old.staged || own.isUnannounced != old.isUnannounced
        || own.certificateExpires != old.certificateExpires || own.bringsNoCA != old.bringsNoCA
        || own.authorityPaths != old.authorityPaths || own.isShortLived != old.isShortLived
        || abs(own.lastSeen - old.lastSeen) > slack
        || abs((own.missedSince ?? now) - (old.missedSince ?? now)) > slack
    }
  }

  /// This state merged with `theirs`, which another server wrote; both started from `base`. What either has
  /// published since is published, what either removed is gone (CAs as well as keys), and the later sighting
  /// counts. Waiting keys stay this server's own.
  public func merging(_ theirs: EndpointKeys, base: EndpointKeys) -> EndpointKeys {
    func has(_ endpointKeys: EndpointKeys, _ pin: SPKIPin) -> Bool {
      endpointKeys.keys.contains { $0.pin == pin }
    }
    var merged = self
    merged.authorities = authorities.merging(theirs.authorities, uniquingKeysWith: max).filter {
      base.authorities[$0.key] == nil
        || authorities[$0.key] != nil && theirs.authorities[$0.key] != nil
    }
    merged.keys = keys.filter { has(theirs, $0.pin) || !has(base, $0.pin) }
    for key in theirs.keys {
      guard let index = merged.keys.firstIndex(where: { $0.pin == key.pin }) else {
        // Announced anew there while probes here ended its last use.
        let isAnnounced =
          key.staged != nil && !base.keys.contains { $0.pin == key.pin && $0.staged != nil }
        if isAnnounced || !has(base, key.pin) { merged.keys.append(key) }
        continue
      }
      let own = merged.keys[index]
      // If neither has seen it since: this side if it changed since `base`, else the other.
      let before = base.keys.first { $0.pin == key.pin }
      let isOwnNewer =
        own.lastSeen != key.lastSeen
        ? own.lastSeen > key.lastSeen : before.map { own.missedSince != $0.missedSince } ?? true
      merged.keys[index] = own.united(with: key, isNewer: isOwnNewer)
    }
    merged.keys = Self.sorted(merged.keys)
    for (pin, candidate) in theirs.held {
      let own = merged.candidates[pin]
      let isOwnNewer = own.map { $0.isHeld && $0.lastSeen >= candidate.lastSeen } ?? false
      if !isOwnNewer { merged.candidates[pin] = candidate }
      merged.candidates[pin]?.isContradicted =
        candidate.isContradicted || own?.isContradicted ?? false
    }
    for pin in base.held.keys where theirs.held[pin] == nil { merged.candidates[pin] = nil }
    for key in merged.keys { merged.candidates[key.pin] = nil }
    return merged
  }
}

extension KnownKey {
  /// Its paths, except those of a leaf that is its own anchor.
  fileprivate var authorityPaths: Set<[SPKIPin]> { Set(paths.values.filter { !$0.isEmpty }) }

  /// Its announcement, unless the other server has seen the key since, by clocks that agree.
  private func announcement(beside other: KnownKey) -> Staging? {
    staged.flatMap { other.staged != nil || other.lastSeen < $0.at ? $0 : nil }
  }

  /// This key, merged from two servers.
  ///
  /// - Parameter isNewer: whether this side's view is the newer one.
  fileprivate func united(with theirs: KnownKey, isNewer: Bool) -> KnownKey {
    let newer = isNewer ? self : theirs
    var united = KnownKey(
      pin: pin, firstSeen: min(firstSeen, theirs.firstSeen),
      lastSeen: max(lastSeen, theirs.lastSeen), missedSince: newer.missedSince,
      certificateExpires: newer.certificateExpires,
      staged: announcement(beside: theirs) ?? theirs.announcement(beside: self),
      isUnannounced: isUnannounced && theirs.isUnannounced, missedProbes: newer.missedProbes,
      longestGap: max(longestGap, theirs.longestGap), shownFor: max(shownFor, theirs.shownFor))
    united.unaskedSince = newer.unaskedSince
    // What somebody has said to either server counts.
    united.bringsNoCA = bringsNoCA && theirs.bringsNoCA
    // Whoever saw it first knows best what it interrupted; an older program does not say.
    let (first, second) = firstSeen <= theirs.firstSeen ? (self, theirs) : (theirs, self)
    if united.isUnannounced { united.interrupted = first.interrupted ?? second.interrupted }
    united.paths = paths.merging(theirs.paths) { isNewer ? $0 : $1 }
    united.seenAt = seenAt.merging(theirs.seenAt, uniquingKeysWith: max)
    return united
  }
}

/// What people change.
extension EndpointKeys {
  /// Publishes a key that nobody has seen yet.
  mutating func stage(_ pin: SPKIPin, _ staging: KnownKey.Staging, bringsCA: Bool = true) {
    candidates[pin] = nil
    var key = KnownKey(
      pin: pin, firstSeen: staging.at, lastSeen: staging.at, staged: staging)
    key.bringsNoCA = !bringsCA
    keys = Self.sorted(keys + [key])
  }

  /// Takes a person's word for a key that nobody announced, or for the CA of one that brings none.
  ///
  /// - Returns: whether there is such a key.
  mutating func vouch(for pin: SPKIPin, andItsCA: Bool = true) -> Bool {
    let index = keys.firstIndex {
      $0.pin == pin && ($0.isUnannounced || andItsCA && $0.bringsNoCA)
    }
    guard let index else { return false }
    (keys[index].isUnannounced, keys[index].interrupted) = (false, nil)
    if andItsCA { keys[index].bringsNoCA = false }
    return true
  }

  /// Publishes a key no more.
  mutating func withdraw(_ pin: SPKIPin) { keys.removeAll { $0.pin == pin } }
}
