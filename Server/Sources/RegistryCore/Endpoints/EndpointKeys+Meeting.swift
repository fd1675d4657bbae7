import SslPinningRules

/// Keys that are not published yet.
extension EndpointKeys {
  /// Counts a probe that shows a new key, and decides about the key.
  ///
  /// - Parameter isBesideFirst: whether it is of another kind than the endpoint's first key, which the probe showed at the
  ///   same place.
  mutating func meet(
    _ sighting: ObservedKey, in probe: [ObservedKey], _ now: Int64, _ rule: ConfirmationRule,
    _ context: DecisionContext, isBesideFirst: Bool = false
  ) -> [KeyEvent] {
    let pin = sighting.pin
    var events: [KeyEvent] = []
    if candidates[pin] == nil, candidates.count >= Self.maximumCandidates {
      guard let last = whoGivesWay(to: sighting, in: probe, context) else {
        return [.tooManyCandidates(pin)]
      }
      candidates[last] = nil
      events = [.tooManyCandidates(last)]
    }
    var candidate =
      candidates[pin]
      ?? CandidateKey(firstSeen: now, chain: sighting.chain, interrupted: context.standing)
    candidate.enter(sighting, at: now, window: rule.window)
    let joinsList = context.isListed && !context.listedPins.contains(pin)
    let isFirst = (keys.isEmpty || isBesideFirst) && !joinsList
    let needed = isFirst ? 1 : rule.probes
    let before = candidate.reasons
    let reasons = reasons(against: &candidate, isFirst, isBesideFirst, probe, now, rule, context)
    candidate.reasons = candidate.probes < needed ? [] : reasons
    candidate.isGainingVoices =
      candidate.reasons != [.manual]
      && candidate.voices(among: context.vantages, probes: 1).count
        > candidate.voices(among: context.vantages, probes: needed).count
    candidates[pin] = candidate
    if candidate.probes < needed {
      return events + [.waiting(pin, probes: candidate.probes, needed: needed)]
    }
    guard candidate.reasons.isEmpty else {
      return candidate.reasons == before ? events : events + [.held(pin, candidate.reasons)]
    }
    // Nobody announced what stands beside the first key: it goes with whoever showed it.
    publish(pin, at: now, isUnannounced: !isFirst || isBesideFirst)
    return events + [.published(pin, isFirst: isFirst)]
  }

  /// The waiting key that a new one displaces: one that this probe does not show or, if the new key is under a
  /// known CA, one that is not under any. A key under a known CA never gives way to one that is not. Keys under
  /// no known CA give way first, then those that were not seen for longest.
  private func whoGivesWay(
    to sighting: ObservedKey, in probe: [ObservedKey], _ context: DecisionContext
  ) -> SPKIPin? {
    let shown = Set(probe.map(\.pin))
    let deserves = isKnown(sighting.chain, context)
    return candidates.map { pin, candidate in
      (isKnown: isKnown(candidate.chain, context), lastSeen: candidate.lastSeen, pin: pin)
    }.filter {
      deserves ? !$0.isKnown || !shown.contains($0.pin) : !$0.isKnown && !shown.contains($0.pin)
    }.min {
      ($0.isKnown ? 1 : 0, $0.lastSeen, $0.pin) < ($1.isKnown ? 1 : 0, $1.lastSeen, $1.pin)
    }?.pin
  }

  private func reasons(
    against candidate: inout CandidateKey, _ isFirst: Bool, _ isBesideFirst: Bool,
    _ probe: [ObservedKey],
    _ now: Int64,
    _ rule: ConfirmationRule, _ context: DecisionContext
  ) -> [CandidateKey.HoldReason] {
    var reasons: [CandidateKey.HoldReason] = []
    // What the first key's own place shows beside it is as good as that one.
    let isVouchedFor =
      isBesideFirst && !context.isListed
      || candidate.isVouchedFor(by: context, probes: isFirst ? 1 : rule.probes)
    let witnesses = candidate.witnesses(
      among: context.vantages, at: now, window: rule.window)
    // Whoever is before this server can have points, or the endpoint, refuse what is asked: that is no silence.
    let answering = Self.answering(probe, context)
      .subtracting(context.silent(about: candidate.paths.keys))
    let standing = context.contradicting(at: candidate.paths.keys)
    if candidate.isOutvoted(by: answering, and: standing, against: witnesses, at: now, context) {
      reasons.append(.vantagePoints)
    }
    let isKnown = isKnown(candidate.chain, context)
    candidate.assent =
      isKnown
      ? context.names(candidate.chain) ? .named : .known
      : isVouchedFor ? .vouched(by: Set(candidate.paths.keys.map(\.vantage))) : nil
    if candidate.assent == nil { reasons.append(.newIssuer) }
    if !isFirst {
      // Undecided for a few probes, while other endpoints are probed; then decided for good. Lasting longer
      // than the detector remembers makes a key no more trustworthy.
      let isDecided =
        candidate.reasons.contains(.massChange)
        && (candidate.probes > Self.probesWhileHeld
          || candidate.lastSeen - candidate.firstSeen > Self.undecided)
      if !isVouchedFor, context.isMassChange || isDecided { reasons.append(.massChange) }
      if context.approval == .manual { reasons.append(.manual) }
    }
    return reasons.sorted()
  }

  /// Whether a published key that was seen for less than an hour would be held now: vantage points that were silent
  /// when it was published count as soon as they answer. One that ever saw it is no word against it: the servers of a fleet,
  /// or those behind a balancer, show themselves to a point in their turn, or by chance.
  ///
  /// - Parameter sighting: what the probe showed of it, if anything: whoever stood between may hide it, and have this server's
  ///   own probes hang. Then those have a word that got keys of its kind, or were refused it. Who gets no answer to that
  ///   question any more has none: a limit of the endpoint's would take a key in use off the list.
  func isOutvoted(
    _ key: KnownKey, _ sighting: ObservedKey? = nil, in probe: [ObservedKey],
    _ context: DecisionContext
  ) -> Bool {
    guard key.isShortLived else { return false }
    let witnesses = key.vantages.union(sighting?.vantages ?? []).intersection(context.vantages)
    let kinds = Set(key.seenAt.keys.map(\.keyType))
    let answering =
      sighting == nil
      ? Self.answering(probe, context) { kinds.contains($0.keyType) }
        .union(kinds.flatMap { context.lacking[$0] ?? [] }).intersection(context.vantages)
      : Self.answering(probe, context).subtracting(context.silent(about: sighting?.places ?? []))
    return context.isOutvoted(by: answering.subtracting(witnesses), against: witnesses)
  }

  /// The same of a published key that the probe shows. What points said stands through a minute and three probes of their
  /// silence: whoever is before this server may have them silent for a probe.
  mutating func isOutvoted(
    at index: Int, _ sighting: ObservedKey, in probe: [ObservedKey], _ now: Int64,
    _ context: DecisionContext
  ) -> Bool {
    if isOutvoted(keys[index], sighting, in: probe, context) {
      (keys[index].outvotedAt, keys[index].silentProbes) = (now, 0)
      return true
    }
    guard keys[index].outvotedAt != nil else { return false }
    keys[index].silentProbes += 1
    let points = context.vantages.subtracting([ProbeObservation.direct])
    let isSeen =
      sighting.vantages.intersection(points).count >= min(context.quorum, points.count)
    return keys[index].isShortLived && !isSeen
      && CandidateKey.echoes(keys[index].outvotedAt, keys[index].silentProbes, at: now)
  }

  /// After how many seconds it is told that points are blocked.
  private static let blockedNotice: Int64 = 600

  /// Tells if points that had seen the endpoint do not get there any more, and fewer than the quorum are left to contradict this server.
  mutating func noteBlocked(
    beside answering: Set<String>, at now: Int64, _ context: DecisionContext
  ) -> [KeyEvent] {
    let points = context.vantages.subtracting([ProbeObservation.direct])
    let blocked = context.blocked.subtracting(answering).intersection(pointsSeeing(since: .min))
    guard !blocked.isEmpty, !context.isUnion,
      answering.intersection(points).count < min(context.quorum, points.count)
    else {
      blockedSince = nil
      return []
    }
    let since = blockedSince ?? now
    blockedSince = since
    return now - since >= Self.blockedNotice ? [.vantageBlocked(blocked.sorted())] : []
  }

  /// The configured vantage points that got an answer, by name.
  static func answering(
    _ probe: [ObservedKey], _ context: DecisionContext,
    where isMeant: (Place) -> Bool = { _ in true }
  ) -> Set<String> {
    Set(probe.flatMap(\.places).filter(isMeant).map(\.vantage)).intersection(context.vantages)
  }

  /// Stands for the CAs of a key that only a signed list speaks of: it says no CA, and an endpoint that knows none
  /// would believe any. It is no CA's, and leaves with the grace time of what is seen afterwards.
  static let unknownAuthority = SPKIPin(computed: [UInt8](repeating: 0, count: 32))

  /// Whether a chain is under a known CA of this endpoint, or under a named one. A leaf that is its own
  /// anchor has no CA: it waits where others have one.
  private func isKnown(_ chain: SeenChain, _ context: DecisionContext) -> Bool {
    let behind = chain.authorities
    if context.names(chain) { return true }
    if behind.isEmpty {
      let isBesideCAs = keys.isEmpty && context.isListed && !context.listedAuthorities.isEmpty
      // Of keys that only a copy lists nobody knows whether they have one.
      let isUnderOne = authorities.keys.contains { $0 != Self.unknownAuthority }
      return !isUnderOne && !isBesideCAs
    }
    if context.isListed, keys.isEmpty || authorities.isEmpty {
      // As where the copy's endpoint itself shows it.
      if context.copiedPins.contains(chain.leaf.pin) { return true }
      // Where a person took the last key its CAs are left.
      return behind.contains {
        context.listedAuthorities.contains($0) || authorities[$0] != nil
      }
    }
    // Keys that were only announced, and leaves that are anchors themselves, are a list and say nothing of a CA: whoever
    // shows another key is not vouched for.
    if authorities.isEmpty { return keys.isEmpty }
    return behind.contains { authorities[$0] != nil }
  }

  /// Holds keys for their CA, too, if it was known before and is no more. A key that no probe shows is not judged anew otherwise,
  /// and could be approved without its CA's name.
  mutating func doubtHeldKeys(since before: [SPKIPin: Int64]) {
    for (pin, candidate) in held where !candidate.reasons.contains(.newIssuer) {
      let behind = candidate.chain.authorities
      // After a restart nobody knows why its CA was in no question.
      guard candidate.assent == nil || candidate.assent == .known,
        behind.contains(where: { before[$0] != nil }), behind.allSatisfy({ authorities[$0] == nil })
      else { continue }
      candidates[pin]?.assent = nil
      candidates[pin]?.reasons = (candidate.reasons + [.newIssuer]).sorted()
    }
  }

  /// Forgets waiting keys that were not seen again in time.
  mutating func dropLapsedCandidates(_ now: Int64, _ rule: ConfirmationRule) -> [KeyEvent] {
    let lapsed = candidates.filter { _, candidate in
      candidate.isHeld
        ? now - candidate.lastSeen > rule.grace : now - candidate.firstSeen > rule.window
    }.keys.sorted()
    for pin in lapsed { candidates[pin] = nil }
    return lapsed.map { .lapsed($0) }
  }
}

/// Keys that are not seen any more, and their CAs.
extension EndpointKeys {
  /// When a probe last succeeded. Other servers' probes count, too: `lastSeen` of their keys shows them.
  private var lastProbe: Int64? {
    (keys.map(\.lastSeen) + [lastSuccess].compactMap(\.self)).max()
  }

  /// Whether nobody has watched for a time.
  func isUnwatched(until now: Int64, _ rule: ConfirmationRule) -> Bool {
    lastProbe.map { now - $0 > max(rule.window, Self.watchedGap) } ?? false
  }

  /// Moves the beginning of every grace time forward by the time in which nobody watched. Gaps of up to an hour
  /// between probes count as watched, whatever the interval.
  ///
  /// - Returns: when a probe last succeeded, as far as is known.
  mutating func excuseUnwatchedTime(before now: Int64, _ rule: ConfirmationRule) -> Int64 {
    defer { lastSuccess = now }
    guard let last = lastProbe else { return now }
    guard isUnwatched(until: now, rule) else { return last }
    let gap = now - last
    for index in keys.indices {
      keys[index].missedSince = keys[index].missedSince.map { max($0, min($0 + gap, now)) }
    }
    authorities = authorities.mapValues { max($0, min($0 + gap, now)) }
    return last
  }

  /// Enters that a probe did not show the other keys.
  ///
  /// - Parameters:
  ///   - last: when the previous probe succeeded.
  ///   - isMissed: whether the probe can tell that a key is gone.
  mutating func miss(
    allBut seen: Set<SPKIPin>, at now: Int64, since last: Int64, _ rule: ConfirmationRule,
    where isMissed: (KnownKey) -> Bool
  ) -> [KeyEvent] {
    var events: [KeyEvent] = []
    for index in keys.indices where !seen.contains(keys[index].pin) && keys[index].staged == nil {
      keys[index].miss(isMissed(keys[index]), at: now, since: last)
      guard let since = keys[index].unaskedSince else { continue }
      let patience = keys[index].patience(rule)
      if now - since >= patience, last - since < patience {
        events.append(.undecided(keys[index].pin))
      }
    }
    return events
  }

  /// The short-lived keys that had been gone for long enough by the last probe, as far as is known, and are still published.
  var passing: Set<SPKIPin> {
    guard let last = lastProbe else { return [] }
    return Set(keys.filter { $0.isPassing(at: last) }.map(\.pin))
  }

  /// The keys that are not seen and that stay because nobody knows whether they are gone.
  var undecided: Set<SPKIPin> {
    passing.union(keys.filter { $0.unaskedSince != nil }.map(\.pin))
  }

  /// The unannounced keys whose place a key takes that appears now, and those whose place the short-lived ones among them took:
  /// whoever shows one key after the other interrupts the same one with each.
  var standing: Set<SPKIPin> {
    guard let last = keys.filter({ $0.staged == nil }).map(\.lastSeen).max() else { return [] }
    let present = keys.filter { $0.isStanding(beside: last) }
    let pins = present.filter(\.isShortLived).reduce(into: Set(present.map(\.pin))) {
      $0.formUnion($1.interrupted ?? [])
    }
    let known = keys.filter { $0.isUnannounced && pins.contains($0.pin) }
    // An attacker can have any number of keys listed, and each keeps this in the record.
    return Set(
      (known.filter { !$0.isShortLived } + known.filter(\.isShortLived))
        .prefix(KnownKey.mostInterrupted).map(\.pin))
  }

  /// Withdraws passing keys, but only if a key is shown that disproves them. Otherwise the key shown now may be the
  /// middleman's, and the missing one the server's: it stays for its grace time, and people are told.
  ///
  /// - Parameter told: those that were passing at the last probe.
  mutating func withdrawPassing(
    beside shown: Set<SPKIPin>, _ now: Int64, told: Set<SPKIPin>
  ) -> [KeyEvent] {
    let gone = keys(disprovedBy: shown) { $0.isPassing(at: now) }
    withdraw(Set(gone))
    let left = keys.filter { $0.isPassing(at: now) && !told.contains($0.pin) }
    return gone.map { .withdrawn($0) } + left.map { .undecided($0.pin) }
  }

  /// Publishes keys no more, and forgets the CAs that they alone had brought in: whoever showed them may come back with another key
  /// under such a CA.
  mutating func withdraw(_ gone: Set<SPKIPin>) {
    let brought = Set(keys.filter { gone.contains($0.pin) }.flatMap(\.authorities))
    keys.removeAll { gone.contains($0.pin) }
    let others = keys.filter { $0.staged == nil }
    // Where an older record does not say under which CAs the others are, all stay known.
    guard !others.isEmpty, others.allSatisfy({ !$0.authorities.isEmpty }) else { return }
    let kept = Set(others.flatMap(\.authorities))
    authorities = authorities.filter { kept.contains($0.key) || !brought.contains($0.key) }
  }

  /// The keys that are about to be withdrawn after the last probe.
  var leaving: Set<SPKIPin> {
    let seen = keys.filter { $0.staged == nil }
    guard let last = seen.map(\.lastSeen).max() else { return [] }
    let shown = seen.filter { $0.lastSeen == last }.map(\.pin)
    return Set(keys(disprovedBy: Set(shown)) { $0.isLeaving(at: last) })
  }

  private func keys(
    disprovedBy shown: Set<SPKIPin>, where isGone: (KnownKey) -> Bool
  ) -> [SPKIPin] {
    let shown = keys.filter { shown.contains($0.pin) }
    return keys.filter { key in
      isGone(key) && shown.contains { $0.disproves(key) }
    }.map(\.pin)
  }

  /// Stops publishing keys that were missed for their whole grace time, unless only denied or staged ones are left.
  mutating func retire(
    _ now: Int64, _ rule: ConfirmationRule, denied: Set<SPKIPin>
  ) -> [KeyEvent] {
    defer { forgetAuthorities(rule) }
    let retired = keys.filter {
      $0.unaskedSince == nil && now - ($0.missedSince ?? now) > rule.grace
    }.map(\.pin)
    let left = keys.filter {
      !retired.contains($0.pin) && $0.staged == nil && !denied.contains($0.pin)
    }
    guard !retired.isEmpty, !left.isEmpty else { return [] }
    keys.removeAll { retired.contains($0.pin) }
    return retired.map { .retired($0) }
  }

  /// The paths of a published key, just seen, that make their CAs known. Of one that brings no CA those under a known CA, until a
  /// quorum of vantage points has seen it under another one in as many probes in a row as a new key takes.
  mutating func taught(
    by index: Int, _ isFirstSight: Bool, _ sighting: ObservedKey, _ rule: ConfirmationRule,
    _ context: DecisionContext
  ) -> [[SPKIPin]] {
    let paths = sighting.paths
    guard keys[index].bringsNoCA, !isFirstSight else { return Array(paths.values) }
    let known = paths.filter { _, above in
      above.isEmpty || !context.issuers.isDisjoint(with: above)
        || SeenChain.authorities(of: above).contains {
          authorities[$0] != nil || context.listedAuthorities.contains($0)
        }
    }
    let voices = Set(paths.keys.filter { known[$0] == nil }.map(\.vantage))
    keys[index].secondedProbes = context.isQuorum(voices) ? keys[index].secondedProbes + 1 : 0
    guard keys[index].secondedProbes >= rule.probes else { return Array(known.values) }
    keys[index].bringsNoCA = false
    return Array(paths.values)
  }

  /// Remembers the CAs of a published key, by the keys above it.
  mutating func learn(_ paths: some Sequence<[SPKIPin]>, _ now: Int64) {
    for pin in paths.flatMap(SeenChain.authorities) { authorities[pin] = now }
    while authorities.count > Self.maximumAuthorities,
      let oldest = authorities.min(by: { ($0.value, $0.key) < ($1.value, $1.key) })
    {
      authorities[oldest.key] = nil
    }
  }

  /// Forgets abandoned CAs: those under which no published key was last seen, and none at all within the grace
  /// time, while keys were seen under others.
  private mutating func forgetAuthorities(_ rule: ConfirmationRule) {
    guard let newest = authorities.values.max() else { return }
    let inUse = Set(keys.flatMap(\.authorities))
    authorities = authorities.filter {
      newest - $0.value <= rule.grace || inUse.contains($0.key)
    }
  }

  /// Makes the CAs of a key known again after its denial ended, so that the next key under them does not wait until
  /// this one is seen again.
  mutating func readmit(_ pin: SPKIPin) {
    for key in keys where key.pin == pin && !key.bringsNoCA {
      for authority in key.authorities {
        authorities[authority] = max(authorities[authority] ?? .min, key.lastSeen)
      }
    }
  }

  /// Forgets the CAs that a newly denied key may have brought in: those that no remaining key is under. All CAs
  /// stay known if no key remains, or if an older record does not say under which CAs the remaining keys are.
  ///
  /// - Parameter denied: all denied keys, this one among them.
  mutating func disown(_ pin: SPKIPin, among denied: Set<SPKIPin>) {
    let others = keys.filter { !denied.contains($0.pin) && $0.staged == nil }
    guard keys.contains(where: { $0.pin == pin }), !others.isEmpty,
      others.allSatisfy({ !$0.authorities.isEmpty })
    else { return }
    let kept = Set(others.flatMap(\.authorities))
    authorities = authorities.filter { kept.contains($0.key) }
  }
}
