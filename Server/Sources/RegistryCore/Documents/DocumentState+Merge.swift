import CanonicalJSON
import SslPinningRules

extension DocumentState {
  /// This state after another server wrote `theirs`, both on top of `base`. What people decided is as
  /// they left it, denials as in ``uniteDenials(with:)``; what probes showed is united.
  package func merging(_ theirs: DocumentState, base: DocumentState) -> DocumentState {
    var merged = theirs
    let ids = Set(keysByEndpoint.keys).union(theirs.keysByEndpoint.keys)
    for id in ids where theirs.tombstones[id] == nil {
      let common = base.keysByEndpoint[id] ?? EndpointKeys()
      switch (keysByEndpoint[id], theirs.keysByEndpoint[id]) {
      case (let own?, let other?): merged.keysByEndpoint[id] = own.merging(other, base: common)
      // Theirs has lost it, or was never told of it.
      case (let own?, nil): merged.keysByEndpoint[id] = common.hasKept ? nil : own
      default: break
      }
    }
    for id in Set(alerts.keys).union(base.alerts.keys) where theirs.tombstones[id] == nil {
      merged.mergeAlerts(of: id, alerts[id] ?? [], base: base.alerts[id] ?? [])
    }
    merged.uniteDenials(with: self)
    // Those that came to be here, and that nobody took out there.
    let known = Set((theirs.orphans + base.orphans).map(\.id))
    merged.orphans += orphans.filter {
      !known.contains($0.id) && theirs.tombstones[$0.place] == nil
    }
    return merged
  }

  /// The same where an endpoint may have inherited a person's `approval: manual` or terms here meanwhile, which is nobody's
  /// command and in no record yet. What somebody decided since `base` counts all the same.
  package func uniting(_ theirs: DocumentState, base: DocumentState) -> DocumentState {
    var united = merging(theirs, base: base)
    for (id, override) in overrides where united.tombstones[id] == nil {
      let (before, now) = (base.overrides[id], united.overrides[id])
      if override.approval == .manual, before?.approval != .manual,
        now?.approval == before?.approval
      {
        united.overrides[id, default: Override()].approval = .manual
      }
      if let terms = override.terms, before?.terms == nil, now?.terms == nil {
        united.overrides[id, default: Override()].terms = terms
      }
    }
    return united
  }

  /// Those that began here come, those that ended here go.
  private mutating func mergeAlerts(of id: String, _ own: [ServerAlert], base: [ServerAlert]) {
    func has(_ alerts: [ServerAlert], _ alert: ServerAlert) -> Bool {
      alerts.contains { $0.kind == alert.kind && $0.pin == alert.pin }
    }
    settle(id) { has(base, $0) && !has(own, $0) }
    // With those of a moment that began anew.
    for alert in own where !base.contains(where: { $0.identity == alert.identity }) { raise(alert) }
  }

  /// What is said where a store went back.
  package static let wentBackMessage =
    "the store has an older record than it had; what probes showed and what was denied is written again; "
    + "hint: endpoints that people added, paused, changed or took out since must be so again"

  /// This state on top of an older record, which is in force again: what people decided is as it was then,
  /// but for denials, and what probes showed is as it is known here. What is written next is newer than
  /// everything up to `newest`. Hosts that people had added since are orphans.
  package func goingOn(
    from theirs: DocumentState, after newest: RecordAge, _ configured: [WatchedEndpoint]
  ) -> DocumentState {
    var theirs = theirs
    // Taken out by then, and added again since.
    for endpoint in watched { theirs.tombstones[endpoint.id] = nil }
    var merged = merging(theirs, base: theirs)
    // What people had said goes along with the hosts that left or moved since.
    var followed = theirs
    followed.follow(theirs.endpoints(configured: configured))
    merged.overrides = followed.overrides
    let known = Set((theirs.watched + theirs.orphans).flatMap(\.patterns))
    for endpoint in watched + orphans where merged.overrides[endpoint.id] == nil {
      let same = followed.orphans.first { $0.patterns == endpoint.patterns && endpoint.isOrphan }
      let own = endpoint.isOrphan || !endpoint.patterns.contains(where: known.contains)
      merged.overrides[endpoint.id] =
        same.flatMap { followed.overrides[$0.id] }
        ?? (own ? overrides[endpoint.id]?.inherited : nil)
    }
    let left = Set((watched + orphans).flatMap(\.patterns))
    merged.removed = (merged.removed + removed.filter { !merged.removed.contains($0) })
      .filter { !left.contains($0) }
    let live = merged.endpoints(configured: configured)
    let ids = Set(live.map(\.id))
    merged.watched = watched.map { ids.contains($0.id) ? $0 : merged.agreed($0, with: live) }
    merged.orphans = orphans.map { merged.agreed($0, with: live) }
    // What left since has no record any more.
    for id in theirs.keysByEndpoint.keys where keysByEndpoint[id] == nil && !ids.contains(id) {
      merged.keysByEndpoint[id] = nil
    }
    merged.returns = newest.nextReturns
    return merged
  }

  /// A host that nobody speaks for, without its terms if endpoints in force ask for others: those of it may be what a person had
  /// said of them, which is lost, and apps would refuse the host by both.
  private mutating func agreed(
    _ left: WatchedEndpoint, with live: [WatchedEndpoint]
  ) -> WatchedEndpoint {
    guard !left.terms.isStandard, HostTerms.conflict(among: live + [left], with: left.id) != nil
    else { return left }
    var left = left
    (left.terms, left.overruled) = (.standard, nil)
    overrides[left.id]?.terms = nil
    if overrides[left.id]?.isEmpty == true { overrides[left.id] = nil }
    return left
  }

  /// Whether both deny and allow the same, by decisions of the same time.
  func hasDecisions(of other: DocumentState) -> Bool {
    (denied, allowed) == (other.denied, other.allowed)
  }

  /// Denies what other documents deny, and no more what was allowed again there: a document that was not kept, or whose
  /// record was not believed, when somebody decided that.
  ///
  /// - Returns: entries for the history.
  package mutating func takeOver(_ shared: SharedDenials, at now: Int64) -> [HistoryEntry] {
    var entries: [HistoryEntry] = []
    for denial in denied {
      guard let allowed = shared.end(of: denial) else { continue }
      end(denial, at: allowed)
      entries.append(
        HistoryEntry(
          time: now, event: "key_allowed", pin: denial.pin,
          why: "allowed while this document was away", who: ""))
    }
    for denial in shared.inForce
    where denial.at > allowed[denial.pin] ?? .min && !deniedPins.contains(denial.pin) {
      allowed[denial.pin] = nil
      denied.append(denial)
      forgetCandidate(denial.pin)
      entries.append(
        HistoryEntry(
          time: now, event: "key_denied", pin: denial.pin, why: denial.why, who: denial.by))
    }
    // So that the next denial here comes after it, also under a clock that was set back.
    for (pin, time) in shared.allowed where !deniedPins.contains(pin) {
      allowed[pin] = max(allowed[pin] ?? .min, time)
    }
    return entries
  }

  /// Ends what concerns endpoints that are not in force, and what says that hosts may be forgotten that are listed
  /// again. Not yet where an endpoint for them was configured again and has no key: another server may have another
  /// configuration.
  ///
  /// - Returns: whether something of the record or of the document changed.
  package mutating func forgetLeftovers(_ inForce: [WatchedEndpoint]) -> Bool {
    let ids = Set(inForce.map(\.id))
    var isChanged = false
    for id in Array(alerts.keys) where !id.isEmpty && !ids.contains(id) {
      alerts[id] = nil
      isChanged = true
    }
    guard !removed.isEmpty else { return isChanged }
    let patterns = Set(
      inForce.filter { keysByEndpoint[$0.id]?.keys.isEmpty == false }.flatMap(\.patterns))
    let left = removed.filter { !patterns.contains($0) }
    guard left.count < removed.count else { return isChanged }
    removed = left
    return true
  }

  /// A key that is denied waits for nothing any more, nor does a key under it, and its CA is no longer known for it.
  mutating func forgetCandidate(_ pin: SPKIPin) {
    let denied = deniedPins
    for id in Array(keysByEndpoint.keys) {
      let waiting = keysByEndpoint[id]?.candidates.filter {
        $0.key == pin || $0.value.chain.above.contains(pin)
      }
      for key in waiting?.keys.map({ $0 }) ?? [] {
        keysByEndpoint[id]?.candidates[key] = nil
        settle(.keyHeld, id, pin: key)
      }
      keysByEndpoint[id]?.disown(pin, among: denied)
    }
  }
}

extension DocumentState {
  /// What is said where the copy in `publish.dir` is newer than the store.
  package static let behindCopyMessage =
    "publish.dir has a newer document than the store: what that lists and denies counts, and what people decided"
    + " since the store's is lost; hint: is the store an old backup?"
  /// What is said where an older copy denies, or says is removed, what the store does not know of.
  package static let lostDecisionsMessage =
    "the copy in publish.dir denies keys, or says that hosts are removed, of which the store knows nothing: that counts again;"
    + " hint: was the store lost or restored while this server was down? what people decided here since is lost, too"

  /// What is said where only the copy in `publish.dir` is left.
  package static let lastCopyMessage =
    "the store has nothing of this document: it goes on from the copy in publish.dir; a key under another CA"
    + " than the endpoint shows with a key of the copy waits for a person, and a key that was listed for less than"
    + " a day is withdrawn unless it is shown; hint: announce again what was announced since, and do again what"
    + " people decided beside keys: endpoints paused or changed, what apps ask for"

  /// What is said where the store was lost as a whole.
  package static let lostStoreMessage =
    "the store was lost, and the document goes on from its copy in publish.dir: what that lists and denies counts;"
    + " hint: restore a backup if there is one, or do again what people decided beside it: endpoints paused or"
    + " changed, what apps ask for beside a key, keys allowed again, the ports of"
    + " endpoints that they added"

  /// Has the hosts of a copy watched again that no configured endpoint speaks for, and none that the record knows did:
  /// people had added them since. Of their endpoints it has the names alone. Where the configuration has one of that name, or
  /// another host of that name has other keys or terms, the host's own stands in: it must stay listed, and what was said
  /// of one endpoint is not said of another.
  package mutating func watchHosts(of copy: SignedCopy, beside configured: [WatchedEndpoint]) {
    let known = Set((configured + watched + orphans).flatMap(\.patterns)).union(removed)
    let ids = Set(configured.map(\.id))
    let settings = DocumentEntry.settings(in: copy.bytes)
    let entries = DocumentEntry.listed(in: copy.bytes)
    let pins = Dictionary(grouping: entries, by: \.pattern).mapValues { Set($0.map(\.pin)) }
    func isTheSame(_ one: HostPattern, _ other: HostPattern) -> Bool {
      pins[one] == pins[other]
        && settings[one].map { HostTerms($0) } == settings[other].map { HostTerms($0) }
    }
    var asked: [String: HostTerms] = [:]
    defer {
      // What clients ask for is not forgotten with the record.
      for (id, terms) in asked where overrides[id]?.terms == nil {
        overrides[id, default: Override()].terms = terms
      }
    }
    for entry in entries where !known.contains(entry.pattern) {
      let endpoints = [entry.fqdn, entry.pattern.base].map {
        WatchedEndpoint(fqdn: $0, patterns: [entry.pattern])
      }
      let endpoint = endpoints.first { endpoint in
        let others = added.first { $0.id == endpoint.id }?.patterns ?? []
        return !ids.contains(endpoint.id) && others.allSatisfy { isTheSame($0, entry.pattern) }
      }
      guard let endpoint else { continue }
      tombstones[endpoint.id] = nil
      if let terms = settings[entry.pattern].map({ HostTerms($0) }) {
        asked[endpoint.id] = terms
      }
      if let index = added.firstIndex(where: { $0.id == endpoint.id }) {
        if !added[index].patterns.contains(entry.pattern) {
          added[index].patterns.append(entry.pattern)
        }
      } else {
        added.append(endpoint)
      }
    }
  }

  /// For how many seconds a key must have been listed when a copy was signed to be no key of a moment: one that was
  /// there for less than an hour is withdrawn within eight hours (``KnownKey/isPassing(at:)``).
  static let pastDoubt: Int64 = 86_400

  /// This state on top of the newest document that was published, whose signatures are known to be good: what it
  /// lists, denies and lets go of counts, and what probes showed or people decided beside it is as it is here.
  ///
  /// - A document does not say who spoke for a key. One that it had listed for less than a day counts as
  ///   unannounced, unless it is the oldest of its endpoint: it stays listed, and is withdrawn if probes miss it.
  ///   Otherwise the key of somebody who stood between for a moment would be kept for its grace time.
  ///
  /// - Parameter endpoints: the endpoints in force: keys are entered for those whose patterns it lists, by themselves or
  ///   by a wildcard that nobody speaks for now. Orphans have what it lists, and no more: no probe withdraws the rest.
  package func goingOn(
    from copy: SignedCopy, endpoints: [WatchedEndpoint]
  ) -> DocumentState {
    guard let json = copy.members else { return self }
    var next = self
    next.follow(endpoints)
    let known = self.deniedPins
    next.deny(copy.denied.filter { !known.contains($0) }, asIn: copy)
    var removed = Set(next.removed)
    for pattern in copy.removed where removed.insert(pattern).inserted {
      next.removed.append(pattern)
    }
    for orphan in next.orphans where removed.contains(orphan.patterns[0]) {
      (next.keysByEndpoint[orphan.id], next.overrides[orphan.id]) = (nil, nil)
    }
    next.orphans.removeAll { removed.contains($0.patterns[0]) }
    let listed = Self.listed(in: json, signed: copy.signed)
    let spokenFor = Set((endpoints + next.orphans).flatMap(\.patterns))
    let settings = DocumentEntry.settings(in: copy.bytes)
    next.adoptHosts(of: copy, beside: endpoints)
    let deniedPins = next.deniedPins
    for endpoint in endpoints + next.orphans {
      var endpointKeys = next.keysByEndpoint[endpoint.id] ?? EndpointKeys()
      if endpoint.isOrphan, let own = listed[endpoint.patterns[0]] {
        let pins = deniedPins.union(own.map(\.pin))
        endpointKeys.keys.removeAll { !pins.contains($0.pin) }
        next.keysByEndpoint[endpoint.id] = endpointKeys
      }
      // Denied ones, too: an endpoint of which nothing else is listed must not have a first sight.
      var known = Set(endpointKeys.keys.map(\.pin))
      let all = EndpointKeys.sorted(
        endpoint.patterns.flatMap { pattern in
          listed[pattern]
            ?? pattern.covering.filter { !spokenFor.contains($0) }.flatMap { listed[$0] ?? [] }
        })
      let keys = all.filter { known.insert($0.pin).inserted }.map { key in
        var key = key
        key.isUnannounced =
          key.pin != all.first?.pin && copy.signed - key.firstSeen < Self.pastDoubt
        if key.isUnannounced { key.shownFor = 0 }
        return key
      }
      guard !keys.isEmpty else {
        // A host that is said without any key had some: what it shows next is no first sight.
        if endpointKeys.keys.isEmpty, endpointKeys.authorities.isEmpty,
          endpoint.patterns.contains(where: { settings[$0] != nil })
        {
          next.keysByEndpoint[endpoint.id] = EndpointKeys(
            held: endpointKeys.candidates, authorities: [EndpointKeys.unknownAuthority: copy.signed]
          )
        }
        continue
      }
      for key in keys where key.isUnannounced && !endpoint.isOrphan {
        next.raise(
          ServerAlert(
            kind: .unannouncedKey, endpoint: endpoint.id, pin: key.pin,
            message:
              "listed for less than a day in the last copy: nothing says whether anybody announced it",
            since: key.firstSeen))
      }
      let authorities =
        endpointKeys.authorities.isEmpty
        ? [EndpointKeys.unknownAuthority: copy.signed] : endpointKeys.authorities
      next.keysByEndpoint[endpoint.id] = EndpointKeys(
        keys: endpointKeys.keys + keys, held: endpointKeys.candidates, authorities: authorities)
    }
    next.document = copy.bytes
    next.signed = max(signed, copy.signed)
    next.number = [number, copy.number].compactMap(\.self).max()
    return next
  }

  /// What a copy tells of a document whose record is not there, or not believed: what it lists, denies and took out.
  ///
  /// - Parameter configured: endpoints that may be among those that were taken out.
  package init(of copy: SignedCopy, keepingOut configured: [WatchedEndpoint]) {
    self.init()
    goOn(asLeftBy: copy, keepingOut: configured)
  }

  /// Puts a copy of a document that nobody keeps any more on top of this, its record: what that lists, denies and took out counts.
  package mutating func goOn(asLeftBy copy: SignedCopy, keepingOut configured: [WatchedEndpoint]) {
    keepOut(configured, of: copy)
    self = goingOn(from: copy, endpoints: [])
  }

  private mutating func deny(_ pins: [SPKIPin], asIn copy: SignedCopy) {
    for pin in pins {
      // After what it takes back, as in ``deny(_:configured:force:_:)``.
      let time = max(copy.signed, (allowed.removeValue(forKey: pin) ?? .min) &+ 1)
      denied.append(
        Denial(
          pin: pin, at: time, by: HistoryEntry.monitor, why: "denied in the last published copy"))
      forgetCandidate(pin)
    }
  }

  /// Denies what a copy denies that is older than this state, but for keys that were allowed again here, and takes out whose
  /// hosts it says are removed, but for those that were added again here: of these no key is as old. The store may have lost it,
  /// and begun again from an older copy, at another server. What an older one has than the store began from, that one ended.
  ///
  /// - Returns: what is to be told; `nil` if it had lost nothing.
  mutating func decideWhatWasLost(
    with copy: SignedCopy?, _ configured: [WatchedEndpoint]
  ) -> DocumentNotice? {
    guard let copy, copy.bytes != document else { return nil }
    if let beganFrom, copy.number.map({ $0 <= beganFrom }) ?? true { return nil }
    let known = deniedPins
    let lost = copy.denied.filter { !known.contains($0) && allowed[$0] == nil }
    deny(lost, asIn: copy)
    let removed = Set(copy.removed)
    var out: [String] = []
    for endpoint in configured
    where !endpoint.patterns.isEmpty && removed.isSuperset(of: endpoint.patterns)
      && keysByEndpoint[endpoint.id]?.keys.contains(where: { $0.firstSeen <= copy.signed }) == true
    {
      let request = Request(who: HistoryEntry.monitor, at: copy.signed, why: Self.removedInCopy)
      guard (try? remove(endpoint.id, configured: configured, request)) != nil else { continue }
      out.append(endpoint.id)
    }
    return lost.isEmpty && out.isEmpty ? nil : .lostDecisions(denied: lost, removed: out)
  }

  /// Takes endpoints out of whose hosts a copy says that some are removed, if others speak for the rest: what was taken out
  /// stays out, also if the configuration names it. Nothing says whether its line was taken out and put back since: `admin add`
  /// ends it.
  package mutating func keepOut(_ configured: [WatchedEndpoint], of copy: SignedCopy) {
    let removed = Set(copy.removed)
    for endpoint in configured
    where tombstones[endpoint.id] == nil && endpoint.patterns.contains(where: removed.contains)
      && endpoint.patterns.allSatisfy({ pattern in
        removed.contains(pattern)
          || configured.contains { $0.id != endpoint.id && $0.patterns.contains(pattern) }
      })
    {
      tombstones[endpoint.id] = Tombstone(
        at: copy.signed, by: HistoryEntry.monitor, why: Self.removedInCopy)
    }
  }

  private static let removedInCopy = "removed in the last published copy"

  /// Has the hosts of a copy that nobody speaks for as orphans.
  private mutating func adoptHosts(of copy: SignedCopy, beside endpoints: [WatchedEndpoint]) {
    let settings = DocumentEntry.settings(in: copy.bytes)
    var known = Set((endpoints + orphans).flatMap(\.patterns)).union(removed)
    for entry in DocumentEntry.listed(in: copy.bytes) where known.insert(entry.pattern).inserted {
      var former = WatchedEndpoint(fqdn: entry.fqdn)
      former.terms = settings[entry.pattern].map { HostTerms($0) } ?? .standard
      orphans.append(former.orphan(for: entry.pattern))
    }
  }

  /// The keys that a document lists, by pattern.
  private static func listed(
    in document: JSONObject, signed: Int64
  ) -> [HostPattern: [KnownKey]] {
    var listed: [HostPattern: [KnownKey]] = [:]
    for entry in document["payload"]?.objectValue?["keys"]?.arrayValue ?? [] {
      guard let entry = entry.objectValue,
        let pattern = entry["domainName"]?.stringValue.flatMap({ try? HostPattern($0) }),
        let pin = entry["key"]?.stringValue.flatMap({ try? SPKIPin(base64: $0) })
      else { continue }
      let date = entry["date"]?.stringValue.flatMap { RFC3339.unixSeconds($0) } ?? signed
      listed[pattern, default: []].append(
        KnownKey(pin: pin, firstSeen: min(date, signed), lastSeen: signed))
    }
    return listed
  }
}
