import SslPinningRules

/// Whose keys are listed for a host once another endpoint speaks for it.
///
/// - A configuration that moves a host to another endpoint takes no key from its list at once: not the one in use,
///   and none that was announced. Otherwise what the endpoint shows next would be a first sight.
/// - What left the list of a host does not come back with an endpoint of before: a key may have been withdrawn or
///   revoked meanwhile.
extension DocumentState {
  /// Gives keys that are listed for a host to the endpoints that speak for it now: its port, its address or its name is
  /// another one, or it changed places with another host.
  ///
  /// - Parameters:
  ///   - listed: what was listed when this was last asked.
  ///   - stored: the keys that were published when the document was signed, if others may be in force since.
  /// - Returns: whether there was any.
  mutating func inheritKeys(
    _ inForce: [WatchedEndpoint], _ listed: inout ListedKeys,
    _ stored: [String: EndpointKeys]? = nil
  ) -> Bool {
    let before = keysByEndpoint
    if let stored { forgetUnlisted(inForce, &listed, stored) }
    inheritFromLeft(inForce, &listed)
    if stored != nil { inheritMoved(inForce, &listed) }
    return keysByEndpoint != before
  }

  /// Gives the keys of endpoints that left the configuration to those that speak for their hosts now, as far as they are
  /// listed for these.
  ///
  /// - An endpoint inherits while it is new, and when it comes back: what left was seen no earlier than it, with a key
  ///   that it lacks. One that comes back has nothing of before that is not listed.
  /// - A new one waits for a person, too, if the other did.
  private mutating func inheritFromLeft(
    _ inForce: [WatchedEndpoint], _ listed: inout ListedKeys
  ) {
    let ids = Set(inForce.map(\.id))
    let left = keysByEndpoint.filter { id, endpointKeys in
      !ids.contains(id) && tombstones[id] == nil && !endpointKeys.keys.isEmpty
    }.sorted { $0.key < $1.key }
    guard let newest = left.map(\.value.lastSeen).max() else { return }
    let heirs = inForce.filter { endpoint in
      keysByEndpoint[endpoint.id].map { $0.isUnseen || $0.lastSeen <= newest } ?? true
    }
    guard !heirs.isEmpty else { return }
    listed.follow(document)
    for endpoint in heirs {
      let pins = listed.pins(of: endpoint.patterns)
      let own = keysByEndpoint[endpoint.id] ?? EndpointKeys()
      for (id, former) in left where own.isUnseen || former.lastSeen >= own.lastSeen {
        let keys = former.keys.filter { pins.contains($0.pin) }
        // One that was seen and has them all already never left.
        let isNews = keys.contains { key in !own.keys.contains { $0.pin == key.pin } }
        guard !keys.isEmpty, own.isUnseen || isNews else { continue }
        if !own.isUnseen { keysByEndpoint[endpoint.id]?.keys.removeAll { !pins.contains($0.pin) } }
        give(keys, of: id, former, to: endpoint.id, isNew: own.isUnseen)
      }
    }
  }

  /// Gives the keys that a host is about to lose to the endpoints that speak for it now, if they are of endpoints that
  /// speak for other hosts now, and for which they are not listed.
  ///
  /// - What it showed itself stays beside them: until it is probed, nobody knows which of both it shows now.
  /// - The other one keeps them as well, unless none of its hosts was listed: then it is new.
  private mutating func inheritMoved(
    _ inForce: [WatchedEndpoint], _ listed: inout ListedKeys
  ) {
    let before = keysByEndpoint
    listed.follow(document)
    var moved: [SPKIPin: [String]] = [:]
    var current: [HostPattern: Set<SPKIPin>] = [:]
    var newcomers: Set<String> = []
    for endpoint in inForce {
      let own = Set(before[endpoint.id]?.keys.map(\.pin) ?? [])
      for pattern in endpoint.patterns { current[pattern, default: []].formUnion(own) }
      let pins = listed.pins(of: endpoint.patterns)
      if pins.isEmpty { newcomers.insert(endpoint.id) }
      for pin in own.subtracting(pins) { moved[pin, default: []].append(endpoint.id) }
    }
    guard !moved.isEmpty else { return }
    for endpoint in inForce {
      let lost = endpoint.patterns.reduce(into: Set<SPKIPin>()) {
        $0.formUnion(listed.pins(of: [$1]).subtracting(current[$1] ?? []))
      }
      for pin in lost.sorted() {
        for id in moved[pin] ?? [] {
          guard let former = before[id] else { continue }
          give(
            former.keys.filter { $0.pin == pin }, of: id, former, to: endpoint.id, isNew: true)
          if newcomers.contains(id) { keysByEndpoint[id]?.letGo(of: [pin]) }
        }
      }
    }
  }

  private mutating func give(
    _ keys: [KnownKey], of id: String, _ former: EndpointKeys, to heir: String, isNew: Bool
  ) {
    keysByEndpoint[heir] = (keysByEndpoint[heir] ?? EndpointKeys()).merging(
      EndpointKeys(keys: keys, authorities: former.authorities), base: EndpointKeys())
    guard isNew, overrides[id]?.approval == .manual else { return }
    overrides[heir, default: Override()].approval = .manual
  }

  /// Forgets keys of endpoints that come back beside others that speak for their hosts now: those that were in force when
  /// the document was signed are listed in it.
  private mutating func forgetUnlisted(
    _ inForce: [WatchedEndpoint], _ listed: inout ListedKeys, _ stored: [String: EndpointKeys]
  ) {
    listed.follow(document)
    let known = listed.all.union(deniedPins)
    for endpoint in inForce where !listed.pins(of: endpoint.patterns).isEmpty {
      let gone = Set(stored[endpoint.id]?.keys.map(\.pin) ?? []).subtracting(known)
      guard !gone.isEmpty, var own = keysByEndpoint[endpoint.id] else { continue }
      own.letGo(of: gone)
      keysByEndpoint[endpoint.id] = own
    }
  }
}

extension EndpointKeys {
  /// Forgets keys, and with the last of them what else is known: the CAs are those of other hosts, or of before.
  fileprivate mutating func letGo(of pins: Set<SPKIPin>) {
    keys.removeAll { pins.contains($0.pin) }
    if keys.isEmpty { self = EndpointKeys() }
  }
}

/// The keys that a document lists. It is parsed once: a large one takes long, and this is asked after each command.
struct ListedKeys: Sendable {
  private var document: [UInt8] = []
  private var pins: [HostPattern: Set<SPKIPin>] = [:]

  /// Goes by another document, if it is one.
  mutating func follow(_ document: [UInt8]) {
    guard document != self.document else { return }
    self.document = document
    pins = Dictionary(grouping: DocumentEntry.listed(in: document), by: \.pattern)
      .mapValues { Set($0.map(\.pin)) }
  }

  /// For whatever host.
  var all: Set<SPKIPin> { pins.values.reduce(into: []) { $0.formUnion($1) } }

  func pins(of patterns: [HostPattern]) -> Set<SPKIPin> {
    patterns.reduce(into: []) { $0.formUnion(pins[$1] ?? []) }
  }
}
