import SslPinningRules

/// The keys that a document lists. It is parsed once: a large one takes long, and this is asked after each command.
struct ListedKeys: Sendable {
  private var document: [UInt8] = []
  private var pins: [HostPattern: Set<SPKIPin>] = [:]
  /// By the names in the ids of their endpoints.
  private var patterns: [String: Set<HostPattern>] = [:]

  /// Goes by another document, if it is one.
  mutating func follow(_ document: [UInt8]) {
    guard document != self.document else { return }
    self.document = document
    let entries = DocumentEntry.listed(in: document)
    pins = Dictionary(grouping: entries, by: \.pattern).mapValues { Set($0.map(\.pin)) }
    patterns = [:]
    for (fqdn, own) in Dictionary(grouping: entries, by: \.fqdn) {
      patterns[WatchedEndpoint.host(inID: WatchedEndpoint(fqdn: fqdn).id)] = Set(own.map(\.pattern))
    }
  }

  /// With these, where nothing is listed by their patterns. What wildcards list is nothing to one whose last key was revoked.
  func adding(_ hosts: [HostPattern: VanishedHost]) -> ListedKeys {
    var more = self
    for (pattern, host) in hosts where pins[pattern] == nil {
      more.pins[pattern] = Set(host.entries.map(\.pin))
      for entry in host.entries {
        more.patterns[entry.fqdn.description, default: []].insert(pattern)
      }
    }
    return more
  }

  mutating func insert(_ pin: SPKIPin, _ patterns: [HostPattern]) {
    for pattern in patterns { pins[pattern, default: []].insert(pin) }
  }

  /// For whatever host.
  var all: Set<SPKIPin> { pins.values.reduce(into: []) { $0.formUnion($1) } }

  /// What endpoints of a name speak for, as far as the document says so.
  func patterns(named host: String) -> Set<HostPattern> { patterns[host] ?? [] }

  /// By these patterns themselves.
  func pins(of patterns: [HostPattern]) -> Set<SPKIPin> {
    patterns.reduce(into: []) { $0.formUnion(pins[$1] ?? []) }
  }

  /// For all hosts of a pattern: by itself or, if it is not listed, by wildcards.
  func pins(for pattern: HostPattern) -> Set<SPKIPin> {
    pins[pattern] ?? pins(covering: pattern)
  }

  /// For all hosts of a pattern, by whatever pattern.
  func pins(covering pattern: HostPattern) -> Set<SPKIPin> { pins(of: pattern.covering) }

  /// The patterns of which something is listed that is not in another list, by the wider ones that speak of their hosts,
  /// also if only of one.
  func byCoveringPattern(beside other: ListedKeys) -> [HostPattern: [HostPattern]] {
    var covered: [HostPattern: [HostPattern]] = [:]
    for (pattern, own) in pins where !own.isSubset(of: other.pins[pattern] ?? []) {
      for wider in pattern.covering.dropFirst() + [pattern.crossing].compactMap(\.self) {
        covered[wider, default: []].append(pattern)
      }
    }
    return covered
  }
}

extension DocumentState {
  /// Whether keys may have been decided about that the signed document does not list yet.
  var mayLackKeys: Bool {
    !document.isEmpty
      && alerts.values.joined().contains {
        [.signing, .storing].contains($0.kind) || $0.kind == .unannouncedKey && $0.since >= signed
      }
  }

  /// The published keys that the signed document does not list for all hosts of their endpoints, by the endpoints' ids.
  func unlistedKeys(of endpoints: [WatchedEndpoint]) -> [String: [KnownKey]] {
    var listed = ListedKeys()
    listed.follow(document)
    let denied = deniedPins
    var unlisted: [String: [KnownKey]] = [:]
    for endpoint in endpoints {
      // One that no list has yet refuses nobody.
      let patterns = endpoint.patterns.map { listed.pins(for: $0) }.filter { !$0.isEmpty }
      let keys = (keysByEndpoint[endpoint.id]?.keys ?? []).filter { key in
        !denied.contains(key.pin) && patterns.contains { !$0.contains(key.pin) }
      }
      if !keys.isEmpty { unlisted[endpoint.id] = keys }
    }
    return unlisted
  }
}
