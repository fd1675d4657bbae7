import SslPinningRules

/// Keys that are not published yet.
extension EndpointKeys {
  /// Counts a probe that shows a new key, and decides about the key.
  mutating func meet(
    _ sighting: ObservedKey, in probe: [ObservedKey], _ now: Int64, _ rule: ConfirmationRule,
    _ context: DecisionContext
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
    var candidate = candidates[pin] ?? CandidateKey(firstSeen: now, chain: sighting.chain)
    candidate.enter(sighting, at: now, window: rule.window)
    let joinsList = context.isListed && !context.listedPins.contains(pin)
    let isFirst = keys.isEmpty && !joinsList
    let needed = isFirst ? 1 : rule.probes
    let before = candidate.reasons
    candidate.reasons =
      candidate.probes < needed ? [] : reasons(against: candidate, isFirst, probe, now, rule, context)
    candidates[pin] = candidate
    if candidate.probes < needed {
      return events + [.waiting(pin, probes: candidate.probes, needed: needed)]
    }
    guard candidate.reasons.isEmpty else {
      return candidate.reasons == before ? events : events + [.held(pin, candidate.reasons)]
    }
    publish(pin, at: now, isUnannounced: !isFirst)
    return events + [.published(pin, isFirst: isFirst)]
  }

  /// The waiting key that a new one displaces: one that this probe does not show or, for a key under a known CA,
  /// one that is not. Never one under a known CA for one that is not. Of several the one that is under none
  /// first, then the one that was not seen for longest.
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
    against candidate: CandidateKey, _ isFirst: Bool, _ probe: [ObservedKey], _ now: Int64,
    _ rule: ConfirmationRule, _ context: DecisionContext
  ) -> [CandidateKey.HoldReason] {
    var reasons: [CandidateKey.HoldReason] = []
    let isVouchedFor =
      candidate.voices(among: context.vantages, probes: isFirst ? 1 : rule.probes) >= context.quorum
    let witnesses = candidate.witnesses(
      among: context.vantages, at: now, window: rule.window)
    let others = Self.answering(probe, context).subtracting(witnesses)
    if context.isOutvoted(by: others, against: witnesses) { reasons.append(.vantagePoints) }
    if !isKnown(candidate.chain, context), !isVouchedFor { reasons.append(.newIssuer) }
    if !isFirst {
      // Undecided for a few probes, while others are probed; then for good. What lasts longer than the
      // gauge remembers is no more trustworthy for that.
      let isDecided =
        candidate.reasons.contains(.massChange)
        && (candidate.probes > Self.probesWhileHeld
          || candidate.lastSeen - candidate.firstSeen > Self.undecided)
      if !isVouchedFor, context.isMassChange || isDecided { reasons.append(.massChange) }
      if context.approval == .manual { reasons.append(.manual) }
    }
    return reasons.sorted()
  }

  /// Whether a key that is published, and not an hour old, would be held now. If the vantage points were silent
  /// when it was published they are asked as soon as they answer.
  func isOutvoted(
    _ key: KnownKey, _ sighting: ObservedKey, in probe: [ObservedKey], _ now: Int64,
    _ rule: ConfirmationRule, _ context: DecisionContext
  ) -> Bool {
    guard key.isShortLived else { return false }
    let witnesses = sighting.vantages.union(key.vantages(at: now, window: rule.window))
      .intersection(context.vantages)
    let others = Self.answering(probe, context).subtracting(witnesses)
    return context.isOutvoted(by: others, against: witnesses)
  }

  /// Who of those configured got an answer, by the vantage points' names.
  private static func answering(_ probe: [ObservedKey], _ context: DecisionContext) -> Set<String> {
    probe.reduce(into: Set()) { $0.formUnion($1.vantages) }.intersection(context.vantages)
  }

  /// Whether a chain is under a CA of this endpoint, or under one that was named. A leaf that is its own
  /// anchor has none.
  private func isKnown(_ chain: SeenChain, _ context: DecisionContext) -> Bool {
    let behind = chain.authorities
    if behind.isEmpty
      || chain.path.dropFirst().contains(where: { context.issuers.contains($0.pin) })
    {
      return true
    }
    if keys.isEmpty, context.isListed {
      return behind.contains(where: context.listedAuthorities.contains)
    }
    return authorities.isEmpty || behind.contains { authorities[$0] != nil }
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
