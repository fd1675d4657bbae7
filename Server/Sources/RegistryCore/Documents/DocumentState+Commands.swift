import SslPinningRules

/// What people decide. Each change says what it did, as entries of the history, or throws and changed
/// nothing.
extension DocumentState {
  /// Who asks, and when.
  package struct Request: Sendable {
    var who: String
    package var at: Int64
    var why: String

    package init(who: String, at: Int64, why: String) {
      (self.who, self.at, self.why) = (who, at, why)
    }

    func entry(_ event: String, _ endpoint: String = "", _ pin: SPKIPin? = nil) -> HistoryEntry {
      HistoryEntry(time: at, event: event, endpoint: endpoint, pin: pin, why: why, who: who)
    }
  }

  /// Watches one more endpoint, or again one that was taken out.
  ///
  /// - Throws: ``AdministrationError/termsDiffer(_:_:)`` if the configuration has one ask for something else than others
  ///   do that speak of the same host. Where it says nothing of it, theirs are taken, unless its hosts have others, or none.
  package mutating func add(
    _ endpoint: WatchedEndpoint, configured: [WatchedEndpoint], _ request: Request
  ) throws(AdministrationError) -> [HistoryEntry] {
    let id = endpoint.id
    let others = endpoints(configured: configured)
    guard !others.contains(where: { $0.id == id }) else { throw .endpointExists(id) }
    let said = endpoint
    let own = configured.first { $0.id == id }
    let endpoint = own ?? endpoint
    // What people said of one that merely left counts on, unless this says otherwise.
    var override = tombstones[id] == nil ? overrides[id] : nil
    override?.isPaused = false
    if endpoint.interval != nil { override?.interval = nil }
    if endpoint.approval != nil { override?.approval = nil }
    // Of one that was taken out, a person's word counts more than the configuration's, as in a change.
    if let own {
      override = Override(
        interval: said.interval == own.interval ? nil : said.interval,
        approval: said.approval == own.approval ? nil : said.approval)
    }
    var asking = endpoint
    asking.terms = override?.terms ?? endpoint.terms
    if asking.terms.isStandard, override?.terms == nil {
      // What clients ask for by now, also though the endpoint that said so left. They are those of each of its hosts, or of
      // none: another host would be asked for them, or opened by them.
      let now = asked(of: others)
      let terms = endpoint.patterns.map { now.inEffect(for: $0)?.terms ?? .standard }
      guard let said = terms.first, terms.allSatisfy(said.isSame(as:)) else {
        let other = (others + askingOrphans).first { other in
          !other.terms.isStandard
            && endpoint.patterns.contains { other.patterns.contains(where: $0.overlaps) }
        }
        throw .termsDiffer(other?.id ?? id, id)
      }
      if !said.isStandard {
        asking.terms = said
        override = override ?? Override()
        override?.terms = said
      }
    }
    // Of an orphan whose pattern it takes over nothing is left to differ from.
    let beside = others + askingOrphans.filter { !endpoint.patterns.contains($0.patterns[0]) }
    if let pair = HostTerms.conflict(among: beside + [asking], with: id) {
      throw .termsDiffer(pair.one, pair.other)
    }
    tombstones[id] = nil
    added.removeAll { $0.id == id }
    if own == nil { added.append(endpoint) }
    overrides[id] = override?.isEmpty == false ? override : nil
    let inForce = endpoints(configured: configured)
    removed.removeAll { pattern in inForce.contains { $0.patterns.contains(pattern) } }
    // Whoever says who decides about its keys means it.
    if said.approval ?? endpoint.approval != nil {
      for orphan in orphans
      where orphan.place == id || endpoint.patterns.contains(orphan.patterns[0]) {
        overrides[orphan.id]?.approval = nil
      }
    }
    follow(inForce)
    return [request.entry("endpoint_added", id)]
  }

  /// Changes how an endpoint is watched; `nil` leaves a setting as it is.
  package mutating func change(
    _ id: String, interval: Int64?, approval: ApprovalMode?, isPaused: Bool?, _ request: Request
  ) -> [HistoryEntry] {
    var override = overrides[id] ?? Override()
    let before = override
    override.interval = interval ?? override.interval
    override.approval = approval ?? override.approval
    override.isPaused = isPaused ?? override.isPaused
    overrides[id] = override.isEmpty ? nil : override
    guard override != before else { return [] }
    if override.isPaused == before.isPaused { return [request.entry("endpoint_changed", id)] }
    return [request.entry(override.isPaused ? "endpoint_paused" : "endpoint_resumed", id)]
  }

  /// Takes an endpoint out, with its keys, and tells clients that they may forget its hosts, unless others speak for them.
  /// Also what is left of one that left the configuration; or of one host that it left alone, by the orphan's own id.
  ///
  /// - Parameter elsewhere: the other documents: one of them may speak for the same hosts.
  /// - Throws: ``AdministrationError/leavesUnseen(_:)`` if none of those others was seen yet: the host would be on no
  ///   list, and whatever they show, also what waits there for a person, a first sight.
  package mutating func remove(
    _ id: String, configured: [WatchedEndpoint], beside elsewhere: [DocumentState] = [],
    _ request: Request
  ) throws(AdministrationError) -> [HistoryEntry] {
    let live = endpoints(configured: configured)
    let own = live.filter { $0.id == id }
    let gone = own.isEmpty ? orphans(of: id) : own
    guard !gone.isEmpty else { throw .noSuchEndpoint(id, known: live.map(\.id)) }
    let others = live.filter { $0.id != id }
    let beside = elsewhere.flatMap { state in state.watched.map { ($0, state) } }
    let unseen = patternsLeftUnseen(without: gone, others.map { ($0, self) } + beside)
    guard unseen.isEmpty else { throw .leavesUnseen(unseen.map(\.description)) }
    var next = self
    if gone[0].place == id {
      next.tombstones[id] = Tombstone(at: request.at, by: request.who, why: request.why)
    }
    next.added.removeAll { $0.id == id }
    let ids = Set(gone.map(\.id)).union([id])
    next.orphans.removeAll { ids.contains($0.id) }
    for id in ids {
      (next.overrides[id], next.keysByEndpoint[id], next.alerts[id]) = (nil, nil, nil)
    }
    let place = gone[0].place
    if !live.contains(where: { $0.id == place }), next.orphans(of: place).isEmpty {
      next.overrides[place] = nil
    }
    let spoken = Set((others + next.orphans).flatMap(\.patterns)).union(removed)
    next.removed += gone.flatMap(\.patterns).filter { !spoken.contains($0) }
    guard document.isEmpty || next.hasEntries(of: others) else { throw .wouldBeEmpty }
    self = next
    return [request.entry("endpoint_removed", id)]
  }

  /// Publishes a key ahead of its use. One that is published already is announced anew if it is about to leave, since
  /// another key is shown in its place. Else it would be gone when it is used. One that is listed because probes found it is
  /// vouched for: else it would be withdrawn once it is not shown, though whoever announces it means to use it later.
  ///
  /// - Parameters:
  ///   - limit: how many announced keys that nobody has seen the endpoint may have by then.
  ///   - bringsCA: whether who asks may say that the CA of the key is one of the endpoint's.
  package mutating func stage(
    _ pin: SPKIPin, at id: String, atMost limit: Int = EndpointKeys.maximumStaged,
    bringsCA: Bool = true, _ request: Request
  ) throws(AdministrationError) -> [HistoryEntry] {
    let denied = deniedPins
    guard !denied.contains(pin) else { throw .keyDenied(pin) }
    var endpointKeys = keysByEndpoint[id] ?? EndpointKeys()
    var staging = KnownKey.Staging(at: request.at, by: request.who, note: request.why)
    if let key = endpointKeys.keys.first(where: { $0.pin == pin }) {
      guard key.state == .retiring,
        endpointKeys.keys.contains(where: { $0.state == .active && $0.isUsable(beside: denied) })
      else {
        guard endpointKeys.vouch(for: pin, andItsCA: bringsCA) else { throw .keyExists(pin) }
        keysByEndpoint[id] = endpointKeys
        settle(.unannouncedKey, id, pin: pin)
        return [request.entry("key_staged", id, pin)]
      }
      endpointKeys.withdraw(pin)
      // By a clock that is behind, what was seen before it would count as seen since, and end it.
      staging.at = max(staging.at, key.lastSeen &+ 1)
    }
    // Whoever may announce keys of one host must not fill the document of all until clients refuse it.
    let announced = endpointKeys.keys.count { $0.staged != nil && !denied.contains($0.pin) }
    guard announced < limit else { throw .tooManyAnnounced(id, announced) }
    endpointKeys.stage(pin, staging, bringsCA: bringsCA)
    keysByEndpoint[id] = endpointKeys
    settle(.keyHeld, id, pin: pin)
    settle(.unannouncedKey, id, pin: pin)
    return [request.entry("key_staged", id, pin)]
  }

  /// Publishes a key no more, without denying it: an endpoint that shows it again has it confirmed anew. Also for what is left
  /// of endpoints that spoke for some of its hosts: nobody would find out that they do not show it any more. And for other endpoints
  /// of its hosts alone, or these would have it on their list all the same; but not for one that would be left bare, which nobody
  /// asked for.
  package mutating func revoke(
    _ pin: SPKIPin, at id: String, configured: [WatchedEndpoint], force: Bool, _ request: Request
  ) throws(AdministrationError) -> [HistoryEntry] {
    func has(_ endpoint: WatchedEndpoint) -> Bool {
      keysByEndpoint[endpoint.id]?.keys.contains { $0.pin == pin } ?? false
    }
    let live = endpoints(configured: configured)
    let asked = live.filter { $0.id == id } + orphans(of: id)
    guard asked.contains(where: has) else { throw .noSuchKey(pin, nil) }
    let patterns = Set(asked.flatMap(\.patterns))
    let near = orphans.filter { orphan in
      has(orphan) && patterns.contains { $0.overlaps(orphan.patterns[0]) }
    }
    let beside = live.filter { other in
      other.id != id && has(other) && !leavesBare(other, without: pin)
        && other.patterns.allSatisfy { !patterns.isDisjoint(with: $0.covering) }
    }
    let places = Set((asked + near).map(\.place))
    let alike =
      (live.filter { $0.id == id } + orphans.filter { places.contains($0.place) }).filter(has)
      + beside
    let bare = alike.filter { leavesBare($0, without: pin) }
    guard force || bare.isEmpty else { throw leavesWithoutPin(bare, without: pin) }
    var next = self
    for endpoint in alike { next.keysByEndpoint[endpoint.id]?.withdraw([pin]) }
    guard next.hasEntries(of: live + orphans) else { throw .wouldBeEmpty }
    self = next
    let ids = Set(alike.map(\.place)).sorted { ($0 == id ? 0 : 1, $0) < ($1 == id ? 0 : 1, $1) }
    return ids.map { request.entry("key_revoked", $0, pin) }
  }

  /// Denies a key wherever it stands.
  ///
  /// - Returns: nothing if it is denied already. The decision is newer then all the same. What another document shared of
  ///   this very request is judged as if it were not there: nobody has judged it here.
  /// - Throws: ``AdministrationError/leavesWithoutPin(_:areStaged:)`` and ``AdministrationError/locksOut(_:)``
  ///   unless forced.
  package mutating func deny(
    _ pin: SPKIPin, configured: [WatchedEndpoint], force: Bool, _ request: Request
  ) throws(AdministrationError) -> [HistoryEntry] {
    if let index = denied.lastIndex(where: { $0.pin == pin }) {
      let isOwn = denied[index].isMade(by: request)
      if !force, isOwn {
        var before = self
        before.denied.remove(at: index)
        try before.judgeDenial(of: pin, configured: configured, at: request.at)
      }
      // Decided again: it outlasts an allowance of before, which another server may remember though the store lost it. And if somebody
      // else made it, it is later than his, so that it stays if his is taken back.
      denied[index].at = max(denied[index].at &+ (isOwn ? 0 : 1), request.at)
      return []
    }
    if !force { try judgeDenial(of: pin, configured: configured, at: request.at) }
    // After what it takes back, also under a clock that was set back meanwhile.
    let time = max(request.at, (allowed.removeValue(forKey: pin) ?? .min) &+ 1)
    self.denied.append(Denial(pin: pin, at: time, by: request.who, why: request.why))
    forgetCandidate(pin)
    return [request.entry("key_denied", "", pin)]
  }

  private func judgeDenial(
    of pin: SPKIPin, configured: [WatchedEndpoint], at now: Int64
  ) throws(AdministrationError) {
    let inForce = endpoints(configured: configured) + orphans
    let bare = inForce.filter { leavesBare($0, without: pin) }
    guard bare.isEmpty else { throw leavesWithoutPin(bare, without: pin) }
    let denied = deniedPins
    let under = inForce.filter {
      keysByEndpoint[$0.id]?.pathsInUse(at: now, but: denied).contains { $0.contains(pin) } == true
    }
    guard under.isEmpty else { throw .locksOut(Self.hosts(of: under)) }
  }

  /// Ends what a request denied, since another document objects to it. What was decided again since stays.
  package mutating func takeBackDenial(
    of pin: SPKIPin, by request: Request, because objection: AdministrationError, at now: Int64
  ) -> [HistoryEntry] {
    guard let denial = denied.last(where: { $0.pin == pin }), denial.isMade(by: request),
      denial.at == request.at
    else { return [] }
    end(denial, at: denial.at)
    return [
      HistoryEntry(
        time: now, event: "key_allowed", pin: pin, why: "the denial is taken back: \(objection)",
        who: request.who)
    ]
  }

  /// Denies a key no more.
  package mutating func allow(
    _ pin: SPKIPin, _ request: Request
  ) throws(AdministrationError) -> [HistoryEntry] {
    guard let denial = denied.last(where: { $0.pin == pin }) else { throw .noSuchKey(pin, .none) }
    end(denial, at: max(request.at, denial.at))
    return [request.entry("key_allowed", "", pin)]
  }

  /// Ends a denial by an allowance of this time.
  mutating func end(_ denial: Denial, at time: Int64) {
    let pin = denial.pin
    denied.removeAll { $0.pin == pin }
    allowed[pin] = time
    for id in Array(keysByEndpoint.keys) { keysByEndpoint[id]?.readmit(pin) }
    for id in Array(alerts.keys) { settle(.deniedKeySeen, id, pin: pin) }
  }

  /// Of the hosts of an endpoint that has keys those that others speak for, none of which has shown a key that
  /// clients would believe. Of a wildcard each of them counts for itself: a neighbour's key says nothing of a host.
  private func patternsLeftUnseen(
    without gone: [WatchedEndpoint], _ others: [(endpoint: WatchedEndpoint, state: DocumentState)]
  ) -> [HostPattern] {
    let gone = gone.filter { keysByEndpoint[$0.id]?.keys.isEmpty == false }
    guard !gone.isEmpty else { return [] }
    let denied = deniedPins
    let seen = Set(
      others.filter { other in
        other.state.keysByEndpoint[other.endpoint.id]?.keys.contains {
          $0.staged == nil && $0.isUsable(beside: denied)
        } == true
      }.flatMap(\.endpoint.patterns))
    let next = others.flatMap(\.endpoint.patterns)
    let shared = gone.flatMap(\.patterns).flatMap { pattern in
      next.filter { $0.overlaps(pattern) }
        .map { pattern.covering.contains($0) ? pattern : $0 }
    }
    return Set(shared).filter { seen.isDisjoint(with: $0.covering) }
      .sorted { $0.description < $1.description }
  }

  /// Whether the document would have an entry by these endpoints' own keys.
  private func hasEntries(of endpoints: [WatchedEndpoint]) -> Bool {
    let pins = Set(endpoints.flatMap { keysByEndpoint[$0.id]?.keys.map(\.pin) ?? [] })
    return DocumentEntry.entries(of: endpoints, state: self)
      .contains { pins.contains($0.pin) }
  }

  /// Whether an endpoint has this key and would be left without one that its servers show, without
  /// any that clients would believe, or without any.
  private func leavesBare(_ endpoint: WatchedEndpoint, without pin: SPKIPin) -> Bool {
    let denied = deniedPins
    let keys = keysByEndpoint[endpoint.id]?.keys ?? []
    let usable = keys.filter { $0.isUsable(beside: denied) }
    // Without any key, a denied one included, the next would be its first, for which nobody is asked.
    return keys.map(\.pin) == [pin] || usable.map(\.pin) == [pin]
      || usable.filter { $0.state == .active }.map(\.pin) == [pin]
  }

  private func leavesWithoutPin(_ bare: [WatchedEndpoint], without pin: SPKIPin)
    -> AdministrationError
  {
    let denied = deniedPins
    let areStaged = bare.allSatisfy { endpoint in
      keysByEndpoint[endpoint.id]?.keys.contains {
        $0.staged != nil && $0.pin != pin && !denied.contains($0.pin)
      } ?? false
    }
    return .leavesWithoutPin(Self.hosts(of: bare), areStaged: areStaged)
  }

  private static func hosts(of endpoints: [WatchedEndpoint]) -> [String] {
    endpoints.filter { !$0.isOrphan }.flatMap { $0.patterns.map(\.description) }
      + Set(endpoints.filter(\.isOrphan).map(\.patterns[0].description)).sorted()
  }
}

/// Why a change that somebody asked for was not made. Nothing of it was, but for what the last two cases say.
public enum AdministrationError: Error, Equatable, Sendable {
  /// No document of this name is configured.
  case noSuchDocument(String)
  /// The document has no such endpoint, but those that are known.
  case noSuchEndpoint(String, known: [String] = [])
  /// The endpoint is there already, or was taken out and is to be brought back by adding it.
  case endpointExists(String)
  /// The endpoint has no such key in the state that the change needs.
  case noSuchKey(SPKIPin, KeyState?)
  /// The key is published for the endpoint already.
  case keyExists(SPKIPin)
  /// The key is denied.
  case keyDenied(SPKIPin)
  /// The key is shown under another issuer than the one that was read.
  case otherIssuer(SPKIPin)
  /// The endpoint has so many announced keys already that no probe has seen, as many as whoever asks may leave there.
  case tooManyAnnounced(String, Int)
  /// Hosts would be left without a key that their servers show; `force` does it all the same. Whether
  /// each of them has a staged key, which no probe has seen its server show yet.
  case leavesWithoutPin([String], areStaged: Bool = false)
  /// Hosts would be left to endpoints that have shown no key yet.
  case leavesUnseen([String])
  /// The key stands above a published one in the last validated path of a place of these hosts, so that clients would
  /// refuse every connection there; `force` does it all the same.
  case locksOut([String])
  /// The servers of these hosts show paths with none of the CAs that clients would ask for; `force` does it all the same.
  case lacksCA([String])
  /// Two endpoints speak of one host, and clients would ask for other CAs, or another match, than either does; `force`
  /// does it all the same.
  case termsDiffer(String, String)
  /// The document would be left without an entry.
  case wouldBeEmpty
  /// Clients would accept a CA in place of a listed key, and none is named.
  case namesNoCA
  /// A denial is in force though a document objected to it: what others had made of it could not be taken back, or was
  /// decided again meanwhile. With why the document objected.
  case notTakenBack([SPKIPin], String)
  /// An edit of the configuration changed the document's endpoints since the change was judged.
  case editedMeanwhile(String)
  /// What two people saw, the first of them being this one, is otherwise by now.
  case changedMeanwhile(String)
  /// A token that asks for the change was revoked, or the key of all tokens was changed, since it was asked for.
  case tokenEnded
  /// The store did not take it; whether it was made is to be read again.
  case notStored(String)

  /// Whether a denial that it keeps out of one document is to be in none: hosts would be lost, or whoever asks may not make it
  /// any more.
  package var isObjection: Bool {
    switch self {
    case .leavesWithoutPin, .locksOut, .editedMeanwhile, .changedMeanwhile, .tokenEnded: true
    default: false
    }
  }
}

extension AdministrationError {
  /// What programs tell it by: words are for people, and change.
  package var code: String {
    switch self {
    case .noSuchDocument: "no-such-document"
    case .noSuchEndpoint: "no-such-endpoint"
    case .endpointExists: "endpoint-exists"
    case .noSuchKey: "no-such-key"
    case .keyExists: "key-exists"
    case .keyDenied: "key-denied"
    case .otherIssuer: "other-issuer"
    case .tooManyAnnounced: "too-many-announced"
    case .leavesWithoutPin: "leaves-without-pin"
    case .leavesUnseen: "leaves-unseen"
    case .locksOut: "locks-out"
    case .lacksCA: "lacks-ca"
    case .termsDiffer: "terms-differ"
    case .wouldBeEmpty: "would-be-empty"
    case .namesNoCA: "names-no-ca"
    case .notTakenBack: "not-taken-back"
    case .editedMeanwhile: "edited-meanwhile"
    case .changedMeanwhile: "changed-meanwhile"
    case .tokenEnded: "token-ended"
    case .notStored: "not-stored"
    }
  }
}

extension AdministrationError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .noSuchDocument(let file): "no document \(file) is configured"
    case .noSuchEndpoint(let id, known: []): "no endpoint \(id)"
    case .noSuchEndpoint(let id, let known):
      "no endpoint \(id); hint: the document has \(known.prefix(5).joined(separator: ", "))"
        + (known.count > 5 ? " and \(known.count - 5) more" : "")
    case .endpointExists(let id): "\(id) is watched already"
    case .noSuchKey(let pin, nil): "no key \(pin.base64)"
    case .noSuchKey(let pin, let state?): "no \(state.rawValue) key \(pin.base64)"
    case .keyExists(let pin): "\(pin.base64) is published already"
    case .keyDenied(let pin): "\(pin.base64) is denied; hint: allow it first"
    case .otherIssuer(let pin):
      "\(pin.base64) is under another issuer than was read; hint: read its chain again"
    case .tooManyAnnounced(let id, let count):
      "\(id) has \(count) announced keys that its servers have not shown"
        + "; hint: have those revoked that are not used, or this one announced by somebody with a token for everything"
    case .leavesWithoutPin(let hosts, let areStaged):
      "no key that these hosts' servers show would be left: \(hosts.joined(separator: ", "))"
        + (areStaged
          ? "; hint: the next key is staged and was not seen yet: switch the servers to it, and wait"
            + " for the next probe"
          : "; hint: stage the next key first, or force it")
    case .leavesUnseen(let hosts):
      "the other endpoints of these hosts have shown no key that is published: \(hosts.joined(separator: ", "))"
        + "; hint: wait for a probe of them, approve what waits there, or take them out first"
    case .locksOut(let hosts):
      "the key stands above the leaf in the paths of these hosts, and clients would refuse every connection there:"
        + " \(hosts.joined(separator: ", ")); hint: move their servers to another CA first, or force it"
    case .lacksCA(let hosts):
      "the servers of these hosts show paths with none of these CAs, and clients would refuse every connection there:"
        + " \(hosts.joined(separator: ", ")); hint: name the CAs that issue their certificates, or force it"
    case .termsDiffer(let one, let other):
      "\(one) and \(other) speak of the same host, and clients take the CAs of both and the stricter match"
        + "; hint: give both the same CAs and match, the first of them by force"
    case .wouldBeEmpty: "the document would be empty; hint: add another endpoint first"
    case .namesNoCA: "match is any, and no CA is named; hint: name the CAs that are enough"
    case .editedMeanwhile(let file):
      "the configuration of \(file) was edited meanwhile; hint: look at it again, and ask again"
    case .changedMeanwhile(let who):
      "what it is about, or the key of all tokens, is not as it was when \(who) proposed it"
        + "; hint: look at the key and its hosts, take this back, and propose it anew"
    case .tokenEnded:
      "a token that asks for it was revoked, or the key of all tokens changed, before its turn came"
        + "; hint: if it is a proposal, take it back"
    case .notTakenBack(let pins, let reason):
      "\(pins.map(\.base64).joined(separator: ", ")) is denied, though a document objected: \(reason)"
        .replacing("; hint: ", with: "; ")
        + "; hint: read the denials again, and allow what is not meant"
    case .notStored(let reason): "the change is not stored: \(reason)"
    }
  }
}
