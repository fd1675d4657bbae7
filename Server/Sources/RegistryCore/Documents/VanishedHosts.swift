import CanonicalJSON
import SslPinningRules

/// A host that no endpoint in force has a key for, and that nobody removed. Clients keep what the document said of it last
/// where it says nothing now.
package struct VanishedHost: Sendable, Equatable {
  package let pattern: HostPattern
  /// Its keys as they were listed, but for those that were revoked since. Those that were denied, too: whoever speaks for it
  /// next has no first sight.
  package internal(set) var entries: [DocumentEntry]
  /// What clients ask for besides a key.
  package internal(set) var settings: HostSettings?
  /// What a person said of that, rather than the configuration.
  let decided: HostTerms?
  /// Whether a person decides about its keys.
  let isManual: Bool
  /// The CAs that were known beside its keys, and when they were last seen, in Unix seconds.
  private(set) var authorities: [SPKIPin: Int64]
  /// The endpoints that spoke for it, by their ids.
  private(set) var speakers: Set<String>
  /// When the document was signed that listed it last for an endpoint's sake, in Unix seconds.
  let signed: Int64

  var terms: HostTerms { settings.map { HostTerms($0) } ?? .standard }

  /// Forgets the CAs that are known no more for the endpoints that spoke for it, since a key was denied.
  mutating func disown(_ pin: SPKIPin, knowing keys: [EndpointKeys]) {
    guard entries.contains(where: { $0.pin == pin }), !keys.isEmpty else { return }
    let known = Set(keys.flatMap(\.authorities.keys))
    let left = authorities.filter { known.contains($0.key) }
    authorities = left.isEmpty ? [EndpointKeys.unknownAuthority: signed] : left
  }

  /// Its keys, but for these.
  package func entries(but denied: Set<SPKIPin>) -> [DocumentEntry] {
    entries.filter { !denied.contains($0.pin) }
  }
}

/// What clients ask for at hosts below those that vanished: of endpoints in force, and of other hosts that vanished and have a
/// usable key.
struct TermsBelow {
  private let neighbours: PatternNeighbours
  private let terms: [HostTerms]

  init(_ inForce: [WatchedEndpoint], _ hosts: [VanishedHost], but denied: Set<SPKIPin>) {
    guard hosts.contains(where: { $0.settings != nil }) else {
      (neighbours, terms) = (PatternNeighbours([]), [])
      return
    }
    let usable = hosts.filter { !$0.entries(but: denied).isEmpty }
    neighbours = PatternNeighbours(inForce.map(\.patterns) + usable.map { [$0.pattern] })
    terms = inForce.map(\.terms) + usable.map(\.terms)
  }

  /// Whether they ask for something else than a host did, for which its terms would count as well.
  func differ(from host: VanishedHost) -> Bool {
    guard host.settings != nil else { return false }
    let own = host.terms
    return neighbours.below(host.pattern).contains { !terms[$0].asksTheSame(as: own) }
  }
}

extension DocumentState {
  /// The hosts that vanished, and those that the document lists and no endpoint in force has a key for, by their patterns.
  package func vanished(beside inForce: [WatchedEndpoint]) -> [HostPattern: VanishedHost] {
    var hosts = vanishedHosts
    let listed = listedPatterns(of: inForce)
    let left = DocumentEntry.listed(in: document).filter {
      hosts[$0.pattern] == nil && !listed.contains($0.pattern)
    }
    if !left.isEmpty {
      let leaving = Leaving(of: self, Set(left.map(\.pin)))
      for (pattern, entries) in Dictionary(grouping: left, by: \.pattern) {
        hosts[pattern] = leaving.host(pattern, entries)
      }
    }
    for pattern in removed { hosts[pattern] = nil }
    return hosts
  }

  /// Takes down which hosts vanished and, for the next time, what the endpoints in force speak for. Before a document is
  /// signed: nothing else says what the last one was about.
  mutating func noteVanished(beside inForce: [WatchedEndpoint]) {
    let listed = listedPatterns(of: inForce)
    vanishedHosts = vanished(beside: inForce).filter { !listed.contains($0.key) }
    spokenPatterns = spokenPatterns.filter { keysByEndpoint[$0.key] != nil }
    for endpoint in inForce {
      let isStandard = endpoint.patterns == WatchedEndpoint.standardPatterns(for: endpoint.fqdn)
      spokenPatterns[endpoint.id] = isStandard ? nil : endpoint.patterns
    }
  }

  /// What an endpoint spoke for when the record was written last.
  func lastPatterns(of id: String) -> [HostPattern] {
    spokenPatterns[id] ?? WatchedEndpoint(id: id)?.patterns ?? []
  }

  /// What endpoints have a key for that is not denied.
  private func listedPatterns(of endpoints: [WatchedEndpoint]) -> Set<HostPattern> {
    let denied = deniedPins
    let listed = endpoints.filter {
      keysByEndpoint[$0.id]?.keys.contains { !denied.contains($0.pin) } == true
    }
    return Set(listed.flatMap(\.patterns))
  }

  /// Takes down what a copy lists and no endpoint in force speaks for, just as it lists it: a record that is older knows less of
  /// those keys.
  mutating func noteCopied(beside inForce: [WatchedEndpoint]) {
    let spokenFor = Set(inForce.flatMap(\.patterns))
    let left = DocumentEntry.listed(in: document).filter { !spokenFor.contains($0.pattern) }
    let leaving = Leaving(of: self, Set(left.map(\.pin)))
    for (pattern, entries) in Dictionary(grouping: left, by: \.pattern) {
      // Who spoke for it, and its CAs, the record knows better.
      let copied = leaving.host(pattern, entries)
      vanishedHosts[pattern] = vanishedHosts[pattern] ?? copied
      vanishedHosts[pattern]?.entries = entries
      vanishedHosts[pattern]?.settings = copied.settings
    }
  }

  /// An endpoint that left and that nobody took out, with the hosts that vanished with it; `nil` if there is none.
  func formerEndpoint(_ id: String) -> WatchedEndpoint? {
    guard keysByEndpoint[id]?.keys.isEmpty == false, tombstones[id] == nil,
      var endpoint = WatchedEndpoint(id: id)
    else { return nil }
    endpoint.patterns = vanishedHosts.values.filter { $0.speakers.contains(id) }.map(\.pattern)
      .sorted { $0.description < $1.description }
    return endpoint
  }

  /// Takes a key that an endpoint's probes withdrew off the hosts that it left alone, unless another one that spoke for them has
  /// it still. Not the last one: clients would have none, as no endpoint loses its last usable key by probes.
  mutating func withdraw(_ pin: SPKIPin, seenAt id: String) {
    let denied = deniedPins
    for (pattern, host) in vanishedHosts where host.speakers.contains(id) {
      let known = host.speakers.flatMap { keysByEndpoint[$0]?.keys ?? [] }
      let announced = Set(known.filter { $0.staged != nil }.map(\.pin))
      let left = host.entries(but: denied.union(announced)).filter { $0.pin != pin }
      if !known.contains(where: { $0.pin == pin }), !left.isEmpty {
        vanishedHosts[pattern]?.entries.removeAll { $0.pin == pin }
      }
    }
  }

  /// The hosts that vanished from these endpoints, and those below or above what they speak for.
  func vanished(from ids: Set<String>, _ patterns: Set<HostPattern>) -> [VanishedHost] {
    let above = Set(patterns.flatMap(\.covering))
    return vanishedHosts.values.filter { host in
      !ids.isDisjoint(with: host.speakers) || above.contains(host.pattern)
        || host.pattern.covering.contains(where: patterns.contains)
    }
  }

  /// Takes a key off such hosts: a key set of later would list it again.
  mutating func withdraw(_ pin: SPKIPin, from ids: Set<String>, _ patterns: Set<HostPattern>) {
    for host in vanished(from: ids, patterns) {
      vanishedHosts[host.pattern]?.entries.removeAll { $0.pin == pin }
    }
    // Until the next is signed, the document lists them: that is not what is left of hosts whose last key this is.
    let (denied, known) = (deniedPins, ids.sorted().compactMap { keysByEndpoint[$0] })
    for pattern in patterns where vanishedHosts[pattern] == nil {
      vanishedHosts[pattern] = VanishedHost(pattern, keeping: known, denied: denied)
    }
  }

  /// Takes an endpoint that left off a host that vanished.
  ///
  /// - Returns: whether others that spoke for it are left.
  mutating func leave(_ pattern: HostPattern, by id: String) -> Bool {
    let others = vanishedHosts[pattern]?.speakers.filter { $0 != id && tombstones[$0] == nil }
    let known = (others ?? []).compactMap { keysByEndpoint[$0] }.filter { !$0.keys.isEmpty }
    guard !known.isEmpty else { return false }
    vanishedHosts[pattern]?.leave(id, to: known)
    return true
  }
}

/// What is known of keys whose hosts leave the document.
private struct Leaving {
  private let state: DocumentState
  private var holders: [SPKIPin: [(id: String, key: KnownKey)]] = [:]
  private let settings: [HostPattern: HostSettings]

  init(of state: DocumentState, _ pins: Set<SPKIPin>) {
    self.state = state
    settings = DocumentEntry.settings(in: state.document)
    for (id, endpointKeys) in state.keysByEndpoint where state.tombstones[id] == nil {
      for key in endpointKeys.keys where pins.contains(key.pin) {
        holders[key.pin, default: []].append((id, key))
      }
    }
  }

  /// - Parameter listed: what the document lists for the host. Without keys that its endpoints lost since, or that are about to
  ///   be withdrawn, which nobody would do any more. Of what is less certain people are told (`markingWhoLeft`).
  func host(_ pattern: HostPattern, _ listed: [DocumentEntry]) -> VanishedHost {
    var known = listed.flatMap { holders[$0.pin] ?? [] }
    let own = known.filter { spoke($0.id, for: pattern) }
    if !own.isEmpty { known = own }
    let lasting = Set(known.filter { !$0.key.wasThereForAMoment }.map(\.key.pin))
    let entries = listed.filter { lasting.contains($0.pin) }
    let speakers = Set(known.map(\.id))
    let authorities = speakers.reduce(into: [:]) {
      $0.merge(state.keysByEndpoint[$1]?.authorities ?? [:], uniquingKeysWith: max)
    }
    let decided = speakers.sorted().compactMap { state.overrides[$0]?.terms }
    return VanishedHost(
      pattern: pattern, entries: entries.isEmpty ? listed : entries, settings: settings[pattern],
      decided: decided.dropFirst().reduce(decided.first) { $0?.united(with: $1) },
      isManual: speakers.contains { state.overrides[$0]?.approval == .manual },
      authorities: authorities.isEmpty
        ? [EndpointKeys.unknownAuthority: state.signed] : authorities,
      speakers: speakers, signed: state.signed)
  }

  private func spoke(_ id: String, for pattern: HostPattern) -> Bool {
    state.lastPatterns(of: id).contains(pattern)
  }
}

extension VanishedHost {
  /// One that lost its last usable key to a person, with the denied ones that are left: it has no first sight then.
  init(_ pattern: HostPattern, keeping keys: [EndpointKeys], denied: Set<SPKIPin>) {
    self.pattern = pattern
    entries = keys.flatMap(\.keys).filter { denied.contains($0.pin) }.map {
      DocumentEntry(pattern: pattern, pin: $0.pin, fqdn: pattern.base, date: $0.firstSeen)
    }
    (settings, decided, isManual, speakers, signed) = (nil, nil, false, [], 0)
    authorities =
      entries.isEmpty
      ? [:]
      : keys.reduce(into: [:]) {
        $0.merge($1.authorities, uniquingKeysWith: max)
      }
  }

  /// Lets go of an endpoint that is taken out, and of the keys that it alone had.
  mutating func leave(_ id: String, to others: [EndpointKeys]) {
    speakers.remove(id)
    let known = Set(others.flatMap(\.keys).map(\.pin))
    let left = entries.filter { known.contains($0.pin) }
    if !left.isEmpty { entries = left }
  }

  /// Its part of a record.
  var json: JSONValue {
    var json: JSONObject = [
      "pattern": .string(pattern.description),
      "entries": .array(
        entries.map {
          .object([
            "pin": .string($0.pin.base64), "fqdn": .string($0.fqdn.description),
            "date": .integer($0.date),
          ])
        }),
      "authorities": .array(
        authorities.sorted { $0.key < $1.key }.map {
          .object(["pin": .string($0.base64), "lastSeen": .integer($1)])
        }),
      "speakers": .array(speakers.sorted().map(JSONValue.string)), "signed": .integer(signed),
    ]
    json["settings"] = settings?.json
    json["terms"] = decided?.json
    if isManual { json["manual"] = .bool(true) }
    return .object(json)
  }

  init(_ reader: StateReader) throws(StateFault) {
    guard let pattern = try? HostPattern(try reader.string("pattern")) else {
      throw reader.fault("pattern")
    }
    self.pattern = pattern
    entries = try reader.list("entries") { entry throws(StateFault) in
      guard let fqdn = try? HostName(try entry.string("fqdn")) else { throw entry.fault("fqdn") }
      return DocumentEntry(
        pattern: pattern, pin: try entry.pin("pin"), fqdn: fqdn, date: try entry.integer("date"))
    }
    let known = try reader.list("authorities") { entry throws(StateFault) in
      (try entry.pin("pin"), try entry.integer("lastSeen"))
    }
    authorities = Dictionary(known, uniquingKeysWith: max)
    speakers = Set(try reader.strings("speakers"))
    signed = try reader.integer("signed")
    decided = try HostTerms(in: reader)
    isManual = reader.object["manual"] == .bool(true)
    settings = try reader.object["settings"].map { json throws(StateFault) in
      guard let settings = try? HostSettings(json) else { throw reader.fault("settings") }
      return settings
    }
  }
}
