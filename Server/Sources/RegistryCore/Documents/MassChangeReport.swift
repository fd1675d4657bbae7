import SslPinningRules

/// A mass change as one alert, also if each endpoint has a document of its own, as by default.
///
/// - Each document has its part on record: an alert that lists its own keys. Documents that changed before the change was known
///   to be one have an alert for each key instead; those of the ten minutes before a part are joined to it.
/// - Parts are joined while there is room for their keys (``DocumentState/mostListed``). What is beyond keeps its own
///   alerts, so that every key is named by one.
///
/// Derived anew from the alerts that stand, and never stored.
package struct MassChangeReport: Sendable {
  /// What one alert of a document adds to it.
  package struct Part: Sendable, Hashable {
    var file: String
    var since: Int64
    /// Whether it tells of a mass change, and not of one key.
    var isMassChange: Bool
    /// The endpoints that changed, each after its document.
    var endpoints: [String]
    /// The keys that nobody announced, each after its endpoint.
    var keys: [String]

    /// All that a message names of it.
    var listed: Set<String> { Set(endpoints + keys) }
  }

  /// The one alert, of no document.
  let alert: ServerAlert
  /// At which places the alerts are that it stands for.
  let joined: Set<Int>
  /// The endpoints and keys of the parts that it stands for.
  let listed: Set<String>

  /// `nil` if there are no two to join.
  ///
  /// - Parameter parts: what each alert adds; `nil` of one that is about something else.
  init?(of parts: [Part?]) {
    let all = parts.enumerated().compactMap { place, part in part.map { (place: place, part: $0) } }
    let changes = all.filter(\.part.isMassChange)
    let (files, times) = (Set(changes.map(\.part.file)), Set(changes.map(\.part.since)))
    let earlier = all.filter { _, part in
      !part.isMassChange && !files.contains(part.file)
        && times.contains { 0...MassChangeDetector.window ~= $0 - part.since }
    }
    var (joined, endpoints, documents) = (Set<Int>(), Set<String>(), Set<String>())
    var (keys, since) = ([String](), Int64.min)
    // The oldest first: a document more does not push one out that was joined before.
    for (place, part) in changes.sorted(by: Self.isBefore) + earlier.sorted(by: Self.isBefore)
    where keys.count + part.keys.count <= DocumentState.mostListed {
      keys += part.keys
      endpoints.formUnion(part.endpoints)
      documents.insert(part.file)
      joined.insert(place)
      since = max(since, part.since)
    }
    guard joined.count > 1 else { return nil }
    self.joined = joined
    listed = endpoints.union(keys)
    alert = ServerAlert(
      kind: .massChange,
      message: "\(endpoints.count) endpoints of \(documents.count) documents show new keys"
        + " at once: " + endpoints.sorted().prefix(20).joined(separator: ", ")
        + (endpoints.count > 20 ? " and others" : "") + Self.listing(keys),
      since: since)
  }

  private static func isBefore(_ one: (place: Int, part: Part), _ other: (place: Int, part: Part))
    -> Bool
  {
    (one.part.since, one.part.file) < (other.part.since, other.part.file)
  }

  /// What a message says after the endpoints.
  static func listing(_ keys: [String]) -> String {
    (keys.isEmpty
      ? "" : "; published without an announcement: \(keys.joined(separator: ", "))")
      + "; hint: if nobody renewed them, somebody stands between; deny the keys"
  }
}

extension Array {
  /// With one mass change in place of all that documents have of it.
  ///
  /// - Parameters:
  ///   - part: what an element adds to it.
  ///   - element: the one alert as an element, with the endpoints and keys that it stands for.
  package func joiningMassChanges(
    _ part: (Element) -> MassChangeReport.Part?,
    as element: (ServerAlert, Set<String>) -> Element
  ) -> [Element] {
    guard let report = MassChangeReport(of: map(part)) else { return self }
    let others = indices.filter { !report.joined.contains($0) }
    return others.map { self[$0] } + [element(report.alert, report.listed)]
  }
}

extension DocumentState {
  /// What an alert adds to a mass change of several documents; `nil` if it is about something else.
  package func part(of alert: ServerAlert, in file: String) -> MassChangeReport.Part? {
    switch alert.kind {
    case .unannouncedKey:
      guard let pin = alert.pin else { return nil }
      return MassChangeReport.Part(
        file: file, since: alert.since, isMassChange: false,
        endpoints: ["\(file) \(alert.endpoint)"], keys: ["\(alert.endpoint) \(pin.base64)"])
    case .massChange:
      let keys = unannouncedKeys(at: alert.since, haveOwnAlert: false)
      let held = keysByEndpoint.filter { _, endpointKeys in
        endpointKeys.held.values.contains { $0.reasons.contains(.massChange) }
      }
      return MassChangeReport.Part(
        file: file, since: alert.since, isMassChange: true,
        endpoints: Set(keys.map(\.id)).union(held.keys).map { "\(file) \($0)" },
        keys: keys.map { "\($0.id) \($0.pin.base64)" })
    default: return nil
    }
  }
}
