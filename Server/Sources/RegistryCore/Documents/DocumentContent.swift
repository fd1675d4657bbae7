import CanonicalJSON
import SslPinningRules

/// What a document is to say, before it is signed.
package struct DocumentContent: Sendable, Equatable {
  package var entries: [DocumentEntry]
  package var denied: [SPKIPin] = []
  package var removed: [HostPattern] = []
  package var mirrors: [RegistryMirror] = []
  /// What the statement says of hosts besides their keys.
  package var hosts: [HostSettings] = []
  /// What it does not say of hosts that vanished. In the order of their names, and also those of which all keys are denied.
  package var vanished: [VanishedHost] = []

  /// What a state amounts to.
  package init(
    _ state: DocumentState, endpoints: [WatchedEndpoint], mirrors: [RegistryMirror] = []
  ) {
    let spokenFor = Set(endpoints.flatMap(\.patterns))
    let denied = state.deniedPins
    // A wildcard's terms would count for hosts below it that ask for others.
    var gone = state.vanished(beside: endpoints).values.filter { !$0.entries.isEmpty }
    let below = TermsBelow(endpoints, gone, but: denied)
    for index in gone.indices where below.differ(from: gone[index]) { gone[index].settings = nil }
    let left =
      gone
      .sorted { Self.order($0.pattern) < Self.order($1.pattern) }
    let (hasLaterKeys, told) = (state.number?.epoch ?? 0 > 0, spokenFor.union(state.removed))
    let kept = left.filter {
      !spokenFor.contains($0.pattern) && (hasLaterKeys || $0.pattern.isBelow(told))
    }
    entries = DocumentEntry.entries(
      of: endpoints, state: state, keeping: kept.flatMap { $0.entries(but: denied) })
    self.denied = state.denied.map(\.pin)
    removed = state.removed
    let listed = Set(entries.map(\.pattern))
    hosts =
      HostTerms.settings(of: endpoints, listed: listed)
      + kept.filter { listed.contains($0.pattern) }.compactMap(\.settings)
    vanished = left.filter { !listed.contains($0.pattern) }
    self.mirrors = mirrors
  }

  /// What the first statement under a new key set says besides: clients let go at once of hosts that no statement of that set
  /// vouches for, and a slip in a file must lock nobody out on the day on which keys change. Hosts whose keys are all denied are
  /// listed without any, so that they are refused and not unlisted.
  package var carried: (entries: [DocumentEntry], hosts: [HostSettings]) {
    let denied = Set(denied)
    return vanished.reduce(into: ([], [])) { carried, host in
      let usable = host.entries(but: denied)
      carried.entries += usable
      // Any: it has no key and no CA, and must not ask more of hosts below it.
      let nothing = HostSettings(host.pattern, match: .any)
      if let told = usable.isEmpty ? nothing : host.settings {
        carried.hosts.append(told)
      }
    }
  }

  /// A host before the wildcard below it, as an endpoint has them: the payload stays the same then.
  private static func order(_ pattern: HostPattern) -> (String, Int) {
    (pattern.base.description, pattern.description.utf8.count)
  }

  /// Whether a document says just this.
  package func isSaid(by bytes: [UInt8]) -> Bool {
    (try? JSONValue(parsing: bytes))?.objectValue.map(isSaid) ?? false
  }

  /// Whether a document with these members says just this.
  func isSaid(by document: JSONObject) -> Bool {
    guard
      let keys = document["payload"]?.objectValue?["keys"]?.arrayValue,
      keys.count == entries.count,
      let expires = keys.first?.objectValue?["expire"]?.integerValue,
      zip(keys, entries).allSatisfy({ $0 == $1.json(expires: expires) })
    else { return false }
    guard let statement = document["statement"]?.objectValue else {
      return denied.isEmpty && removed.isEmpty && mirrors.isEmpty && hosts.isEmpty
    }
    return statement["denied"]?.arrayValue == denied.map { .string($0.base64) }
      && statement["removed"]?.arrayValue == removed.map { .string($0.description) }
      && statement["hosts"]?.arrayValue ?? [] == hosts.map(\.json)
      && statement["mirrors"]?.arrayValue ?? [] == mirrors.map { .string($0.description) }
  }
}

/// One line of a document: a host and a key that it may have.
package struct DocumentEntry: Sendable, Hashable {
  package let pattern: HostPattern
  package let pin: SPKIPin
  package let fqdn: HostName
  /// When the key was first seen, in Unix seconds.
  let date: Int64

  /// The entries of a document: its endpoints and their patterns in the order configured, the keys of
  /// each oldest first. An endpoint without a key yet has none; where two endpoints have the same key
  /// for the same hosts, the first one's entry stands for both.
  ///
  /// Hosts that vanished (``VanishedHost``) stay under their own names where clients would let go of them otherwise:
  ///
  /// - if a wildcard in force, or one that was removed, matches them, since clients keep the pins of a host only if no
  ///   listed pattern matches it. Also while the wildcard has their keys: once that has others, nothing is left to tell
  ///   which were the host's.
  /// - under a key set of later: an app that did not ask since before it lets go of what no statement of it lists.
  ///
  /// Denied keys are left out. If nothing would be left, entries of the last document stay, because an empty registry
  /// is never published: those of keys that are not denied, or else of the one that was denied last, which clients
  /// that read the statement beside it refuse anyway. Keys that were out already never come back: clients of format 1
  /// would take them again.
  static func entries(
    of endpoints: [WatchedEndpoint], state: DocumentState, keeping vanished: [DocumentEntry]
  ) -> [DocumentEntry] {
    let denied = state.deniedPins
    let entries = entries(of: endpoints, keysByEndpoint: state.keysByEndpoint) {
      !denied.contains($0)
    }
    guard entries.isEmpty else { return entries + vanished }
    let listed = listed(in: state.document).filter { !state.removed.contains($0.pattern) }
    let left = listed.filter { !denied.contains($0.pin) }
    guard left.isEmpty else { return left }
    for last in state.denied.reversed() {
      let entries = listed.filter { $0.pin == last.pin }
      if !entries.isEmpty { return entries }
    }
    return []
  }

  /// The entries of a signed document. One that `sign` made may lack what only this server writes.
  static func listed(in document: [UInt8]) -> [DocumentEntry] {
    guard !document.isEmpty, let json = (try? JSONValue(parsing: document))?.objectValue else {
      return []
    }
    return (json["payload"]?.objectValue?["keys"]?.arrayValue ?? []).compactMap { entry in
      guard let entry = entry.objectValue,
        let pattern = entry["domainName"]?.stringValue.flatMap({ try? HostPattern($0) }),
        let pin = entry["key"]?.stringValue.flatMap({ try? SPKIPin(base64: $0) })
      else { return nil }
      let fqdn = entry["fqdn"]?.stringValue.flatMap { try? HostName($0) } ?? pattern.base
      let date = entry["date"]?.stringValue.flatMap { RFC3339.unixSeconds($0) }
      return DocumentEntry(pattern: pattern, pin: pin, fqdn: fqdn, date: date ?? 0)
    }
  }

  /// What the statement of a signed document says of hosts.
  static func settings(in document: [UInt8]) -> [HostPattern: HostSettings] {
    let json = (try? JSONValue(parsing: document))?.objectValue?["statement"]?.objectValue
    let settings = (json?["hosts"]?.arrayValue ?? []).compactMap { try? HostSettings($0) }
    return Dictionary(settings.map { ($0.pattern, $0) }, uniquingKeysWith: { one, _ in one })
  }

  private static func entries(
    of endpoints: [WatchedEndpoint], keysByEndpoint: [String: EndpointKeys],
    where isPublished: (SPKIPin) -> Bool
  ) -> [DocumentEntry] {
    struct Meaning: Hashable {
      let pattern: HostPattern
      let pin: SPKIPin
    }
    var said: Set<Meaning> = []
    var entries: [DocumentEntry] = []
    for endpoint in endpoints {
      for pattern in endpoint.patterns {
        for key in keysByEndpoint[endpoint.id]?.keys ?? []
        where isPublished(key.pin)
          && said.insert(Meaning(pattern: pattern, pin: key.pin)).inserted
        {
          entries.append(
            DocumentEntry(
              pattern: pattern, pin: key.pin, fqdn: endpoint.fqdn, date: key.firstSeen))
        }
      }
    }
    return entries
  }

  package func json(expires: Int64) -> JSONValue {
    // In the order in which they are written.
    var json: JSONObject = [
      "date": .string(RFC3339.text(date)), "domainName": .string(pattern.description),
    ]
    json["expire"] = JSONNumber(exactly: expires).map(JSONValue.number)
    json["fqdn"] = .string(fqdn.description)
    json["key"] = .string(pin.base64)
    return .object(json)
  }
}

extension HostPattern {
  /// Whether one of these patterns matches a host of it.
  func isBelow(_ patterns: Set<HostPattern>) -> Bool {
    covering.contains(where: patterns.contains) || crossing.map(patterns.contains) == true
  }
}
