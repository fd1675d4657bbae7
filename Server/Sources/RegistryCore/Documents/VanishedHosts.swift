import CanonicalJSON
import SslPinningRules

/// Hosts that nobody speaks for and nobody removed, as their endpoints left them: clients keep their pins where the document
/// says nothing of them.
package struct VanishedHosts: Sendable, Equatable {
  /// Their keys, but for denied ones and for those that were there for a moment.
  package var entries: [DocumentEntry] = []
  /// What clients ask for besides.
  package var settings: [HostSettings] = []
  /// Those that left before the key set in force.
  var ofEarlierEpochs: Set<HostPattern> = []

  /// Those of them that something holds for.
  func filter(_ isMeant: (HostPattern) -> Bool) -> VanishedHosts {
    VanishedHosts(
      entries: entries.filter { isMeant($0.pattern) },
      settings: settings.filter { isMeant($0.pattern) },
      ofEarlierEpochs: ofEarlierEpochs.filter(isMeant))
  }
}

/// What an endpoint speaks for, or did when it left. The configuration that said so is gone by then, and hosts behind a
/// gateway have other names than it.
struct SpokenHosts: Sendable, Equatable {
  var patterns: [HostPattern]
  var terms: HostTerms
  /// When it was found to have left, in Unix seconds. Those of one edit have one time.
  var left: Int64?
  /// In which epoch that was.
  var epoch: Int64 = 0

  /// An endpoint that left.
  init(_ former: WatchedEndpoint, left: Int64, epoch: Int64) {
    (patterns, terms, self.left, self.epoch) = (former.patterns, former.terms, left, epoch)
  }

  /// One in force; `nil` if the endpoint's name says it all.
  init?(_ endpoint: WatchedEndpoint) {
    guard
      !endpoint.terms.isStandard
        || endpoint.patterns != WatchedEndpoint.standardPatterns(for: endpoint.fqdn)
    else { return nil }
    (patterns, terms) = (endpoint.patterns, endpoint.terms)
  }

  /// Its part of a record.
  var json: JSONValue {
    var json: JSONObject = ["patterns": .array(patterns.map { .string($0.description) })]
    if !terms.isStandard { json["terms"] = terms.json }
    json["left"] = left.map { .integer($0) }
    if epoch > 0 { json["epoch"] = .integer(epoch) }
    return .object(json)
  }

  init(_ reader: StateReader) throws(StateFault) {
    patterns = []
    for text in try reader.strings("patterns") {
      guard let pattern = try? HostPattern(text) else { throw reader.fault("patterns") }
      patterns.append(pattern)
    }
    terms = try HostTerms(in: reader) ?? .standard
    left = reader.object["left"]?.integerValue
    epoch = reader.object["epoch"]?.integerValue ?? 0
  }
}

extension DocumentState {
  /// Takes down what the endpoints in force speak for, so that it is known once they left. With each write: before that
  /// nobody has their keys.
  mutating func noteSpokenHosts(of inForce: [WatchedEndpoint], at now: Int64) {
    let ids = Set(inForce.map(\.id))
    spokenHosts = spokenHosts.filter { keysByEndpoint[$0.key] != nil }
    for endpoint in inForce { spokenHosts[endpoint.id] = SpokenHosts(endpoint) }
    for id in keysByEndpoint.keys where !ids.contains(id) && spokenHosts[id]?.left == nil {
      spokenHosts[id] = formerEndpoint(id).map {
        SpokenHosts($0, left: now, epoch: number?.epoch ?? 0)
      }
    }
  }

  /// An endpoint that left and that nobody took out, as it was; `nil` if there is none.
  func formerEndpoint(_ id: String) -> WatchedEndpoint? {
    guard keysByEndpoint[id]?.keys.isEmpty == false, tombstones[id] == nil,
      var endpoint = WatchedEndpoint(id: id)
    else { return nil }
    if let spoken = spokenHosts[id] {
      (endpoint.patterns, endpoint.terms) = (spoken.patterns, spoken.terms)
    }
    endpoint.terms = overrides[id]?.terms ?? endpoint.terms
    return endpoint
  }

  /// The hosts that nobody speaks for. Of several endpoints that spoke for one those count that left last: whoever left
  /// before left its keys to them.
  package func vanished(beside inForce: [WatchedEndpoint]) -> VanishedHosts {
    let ids = Set(inForce.map(\.id))
    let removed = Set(removed)
    var last: [HostPattern: (left: Int64, endpoints: [WatchedEndpoint])] = [:]
    for id in keysByEndpoint.keys.sorted() where keysByEndpoint[id]?.isUnseen == false {
      // One that is just coming back counts: else what it had lost would come back from one that left before it.
      let isBack = ids.contains(id)
      guard !isBack || spokenHosts[id]?.left != nil, let endpoint = formerEndpoint(id) else {
        continue
      }
      // What is about to leave is not written yet.
      let left = spokenHosts[id]?.left ?? .max
      for pattern in endpoint.patterns where !removed.contains(pattern) {
        let known = last[pattern]?.left ?? .min
        if left > known { last[pattern] = (left, []) }
        if left >= known { last[pattern]?.endpoints.append(endpoint) }
      }
    }
    let denied = deniedPins
    let hosts = last.sorted { $0.key.description < $1.key.description }
    let entries = hosts.flatMap { pattern, leavers -> [DocumentEntry] in
      var said = denied
      return leavers.endpoints.flatMap { endpoint in
        (keysByEndpoint[endpoint.id]?.keys ?? [])
          .filter { !$0.wasThereForAMoment && said.insert($0.pin).inserted }.map {
            DocumentEntry(pattern: pattern, pin: $0.pin, fqdn: endpoint.fqdn, date: $0.firstSeen)
          }
      }
    }
    let speakers = hosts.flatMap { pattern, leavers in
      leavers.endpoints.map { endpoint in
        var speaker = endpoint
        speaker.patterns = [pattern]
        return speaker
      }
    }
    let settings = HostTerms.settings(of: speakers, listed: Set(entries.map(\.pattern)))
    let earlier = hosts.filter { _, leavers in
      leavers.endpoints.contains {
        spokenHosts[$0.id].map { $0.left != nil && $0.epoch < number?.epoch ?? 0 } ?? false
      }
    }
    return VanishedHosts(
      entries: entries, settings: settings, ofEarlierEpochs: Set(earlier.map(\.key)))
  }
}
