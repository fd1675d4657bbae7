import CanonicalJSON
import SslPinningRules

/// What a document is to say, before it is signed.
package struct DocumentContent: Sendable, Equatable {
  package var entries: [DocumentEntry]
  package var denied: [SPKIPin] = []
  package var removed: [HostPattern] = []
  package var mirrors: [RegistryMirror] = []
  /// What the statement says of hosts besides their keys. Those whose keys are all denied, or were taken off, are among them: a
  /// client that has not seen them before, or lets go of them with a new key set, is to refuse them and not to take them for
  /// unlisted.
  package var hosts: [HostSettings] = []

  /// What a state amounts to.
  ///
  /// - Parameter live: the endpoints that are watched.
  package init(
    _ state: DocumentState, endpoints live: [WatchedEndpoint], mirrors: [RegistryMirror] = []
  ) {
    var state = state
    state.follow(live)
    let endpoints = state.inForce(live)
    entries = DocumentEntry.entries(of: endpoints, state: state)
    denied = state.denied.map(\.pin)
    let listed = Set(entries.map(\.pattern))
    removed = state.removed.filter { !listed.contains($0) }
    let bare = endpoints.filter { state.keysByEndpoint[$0.id]?.hadKeys == true }
      .flatMap(\.patterns).filter { !listed.contains($0) && !state.removed.contains($0) }
    // Any: it has no key and no CA, and must not ask more of hosts below it.
    let denying = Set(bare).sorted { $0.description < $1.description }.map {
      HostSettings($0, match: .any)
    }
    hosts = HostTerms.settings(of: endpoints, listed: listed) + denying
    self.mirrors = mirrors
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
  /// Denied keys are left out. If nothing would be left, entries of the last document stay, because an empty registry
  /// is never published: those of keys that are not denied, or else of the one that was denied last, which clients
  /// that read the statement beside it refuse anyway. Keys that were out already never come back: clients of format 1
  /// would take them again.
  static func entries(
    of endpoints: [WatchedEndpoint], state: DocumentState
  ) -> [DocumentEntry] {
    let denied = state.deniedPins
    let entries = entries(of: endpoints, keysByEndpoint: state.keysByEndpoint) {
      !denied.contains($0)
    }
    guard entries.isEmpty else { return entries }
    let back = Set(endpoints.filter { state.keysByEndpoint[$0.id] != nil }.flatMap(\.patterns))
    let listed = listed(in: state.document).filter {
      !state.removed.contains($0.pattern) || back.contains($0.pattern)
    }
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
