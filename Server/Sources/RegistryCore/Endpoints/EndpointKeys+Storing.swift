import SslPinningRules

extension EndpointKeys {
  /// What is kept across restarts: everything but keys that need more probes.
  package var kept: EndpointKeys { EndpointKeys(keys: keys, held: held, authorities: authorities) }

  /// Whether anything of it is kept. A record says nothing of a endpointKeys that has nothing to keep.
  var hasKept: Bool { !keys.isEmpty || !authorities.isEmpty || !held.isEmpty }

  /// Whether so much happened since `stored` was written that this endpointKeys must be: other keys, or
  /// times that moved by more than a 24th of the grace time. (Writing every probe would cost a disk
  /// flush per endpoint and minute for times that nobody acts on within hours.)
  public func isWorthStoring(over stored: EndpointKeys, at now: Int64, rule: ConfirmationRule)
    -> Bool
  {
    guard keys.count == stored.keys.count, authorities.keys == stored.authorities.keys,
      held.mapValues(\.reasons) == stored.held.mapValues(\.reasons)
    else { return true }
    let slack = max(1, rule.grace / 24)
    guard authorities.allSatisfy({ abs($0.value - (stored.authorities[$0.key] ?? 0)) <= slack })
    else { return true }
    return zip(keys, stored.keys).contains { own, old in
      own.pin != old.pin || own.staged != old.staged || own.isUnannounced != old.isUnannounced
        || own.certificateExpires != old.certificateExpires
        || own.authorityPaths != old.authorityPaths
        || abs(own.lastSeen - old.lastSeen) > slack
        || abs((own.missedSince ?? now) - (old.missedSince ?? now)) > slack
    }
  }

  /// This endpointKeys after another server wrote `theirs`, both on top of `base`: what either published
  /// since then is published, what either took away is gone (a CA as well as a key), and keys were seen as late
  /// as either saw them. Waiting keys stay this server's own.
  public func merging(_ theirs: EndpointKeys, base: EndpointKeys) -> EndpointKeys {
    func has(_ endpointKeys: EndpointKeys, _ pin: SPKIPin) -> Bool {
      endpointKeys.keys.contains { $0.pin == pin }
    }
    var merged = self
    for (pin, seen) in authorities.merging(theirs.authorities, uniquingKeysWith: max) {
      let isForgotten =
        base.authorities[pin] != nil
        && (authorities[pin] == nil || theirs.authorities[pin] == nil)
      merged.authorities[pin] = isForgotten ? nil : seen
    }
    merged.keys = keys.filter { has(theirs, $0.pin) || !has(base, $0.pin) }
    for key in theirs.keys {
      guard let index = merged.keys.firstIndex(where: { $0.pin == key.pin }) else {
        if !has(base, key.pin) { merged.keys.append(key) }
        continue
      }
      let own = merged.keys[index]
      // Where neither saw it since, what changed here since then, or else what they say.
      let before = base.keys.first { $0.pin == key.pin }
      let isOwnNewer =
        own.lastSeen != key.lastSeen
        ? own.lastSeen > key.lastSeen : before.map { own.missedSince != $0.missedSince } ?? true
      merged.keys[index] = own.united(with: key, isNewer: isOwnNewer)
    }
    merged.keys = Self.sorted(merged.keys)
    for (pin, candidate) in theirs.held {
      guard let own = merged.candidates[pin], own.isHeld, own.lastSeen >= candidate.lastSeen else {
        merged.candidates[pin] = candidate
        continue
      }
    }
    for pin in base.held.keys where theirs.held[pin] == nil { merged.candidates[pin] = nil }
    for key in merged.keys { merged.candidates[key.pin] = nil }
    return merged
  }
}

extension KnownKey {
  /// Its paths, but those of a leaf that is its own anchor.
  fileprivate var authorityPaths: Set<[SPKIPin]> { Set(paths.values.filter { !$0.isEmpty }) }

  /// This key as two servers know it.
  ///
  /// - Parameter isNewer: whether this side saw last how it stands.
  fileprivate func united(with theirs: KnownKey, isNewer: Bool) -> KnownKey {
    let newer = isNewer ? self : theirs
    var united = KnownKey(
      pin: pin, firstSeen: min(firstSeen, theirs.firstSeen),
      lastSeen: max(lastSeen, theirs.lastSeen), missedSince: newer.missedSince,
      certificateExpires: newer.certificateExpires,
      staged: staged == nil || theirs.staged == nil ? nil : staged,
      isUnannounced: isUnannounced && theirs.isUnannounced, missedProbes: newer.missedProbes,
      longestGap: max(longestGap, theirs.longestGap), shownFor: max(shownFor, theirs.shownFor))
    united.unaskedSince = newer.unaskedSince
    united.paths = paths.merging(theirs.paths) { isNewer ? $0 : $1 }
    united.seenAt = seenAt.merging(theirs.seenAt, uniquingKeysWith: max)
    return united
  }
}
