import CanonicalJSON

/// The hosts that stood in an older document and do not in the newest, with the pins they had.
///
/// - Under statements a host goes when `removed` names it; without, after 30 days.
/// - Across a new epoch, and at the first statement that is ever believed, a host stays only where the
///   online keys of that epoch signed its statement too. What only withdrawn keys vouched for, or the key of
///   format 1, is not believed any longer: a pattern that a thief once listed must not outlive his keys.
/// - They add neither pins nor terms to hosts that a listed pattern matches (`PolicyTable`).
/// - A host that is listed again has its new pins only.
struct VanishedHosts: Sendable {
  /// One host.
  struct Host: Sendable {
    /// The newest document that listed it.
    let source: AcceptedDocument
    /// What that document said of it.
    let last: Registry
    /// Unix time in seconds at which a document without it was first believed, never later than now.
    var since: Int64
  }

  private(set) var hosts: [HostPattern: Host] = [:]

  /// The hosts in the order of their patterns' bytes.
  var ordered: [(pattern: HostPattern, host: Host)] {
    hosts.map { (pattern: $0.key, host: $0.value) }.sorted {
      $0.pattern.description.utf8.lexicographicallyPrecedes($1.pattern.description.utf8)
    }
  }

  /// What becomes of the hosts when `new` takes the place of `old`.
  mutating func replace(
    _ old: AcceptedDocument, by new: AcceptedDocument, at now: Int64, limits: RegistryLimits
  ) {
    let spokenFor = new.registry.patterns.union(new.removed)
    hosts = hosts.filter { !spokenFor.contains($0.key) }
    for (pattern, last) in old.byPattern where !spokenFor.contains(pattern) {
      hosts[pattern] = Host(source: old, last: last, since: now)
    }
    expire(under: new, at: now, limits: limits)
    drop(beyond: limits.maximumOlderDocuments)
  }

  /// Lets go of the hosts whose time is over while `document` is the newest.
  mutating func expire(under document: AcceptedDocument, at now: Int64, limits: RegistryLimits) {
    hosts = hosts.mapValues { host in
      var host = host
      // A clock that ran ahead must not keep a host for longer; nor one that was behind for less, where anything
      // signed has a time.
      host.since = host.source.since(host.since, at: now)
      return host
    }
    release(under: document, at: now, limits: limits)
  }

  /// Lets go of them and leaves the others' times as they are: where no server has confirmed anything, the
  /// clock may be behind.
  mutating func release(under document: AcceptedDocument, at now: Int64, limits: RegistryLimits) {
    hosts = hosts.filter { _, host in
      (document.statement != nil && host.source.statement != nil)
        || limits.keepsVanished(since: host.source.since(host.since, at: now), at: now)
    }
  }

  /// Keeps what somebody still vouches for.
  mutating func keep(where isVouchedFor: (AcceptedDocument) -> Bool) {
    var verdicts: [[UInt8]: Bool] = [:]
    hosts = hosts.filter { _, host in
      let known = verdicts[host.source.bytes]
      let verdict = known ?? isVouchedFor(host.source)
      verdicts[host.source.bytes] = verdict
      return verdict
    }
  }

  /// Takes the hosts of an older document, and those that had vanished before it, save for those
  /// that are known already.
  mutating func adopt(
    _ document: AcceptedDocument?, andThoseOf older: VanishedHosts, unless known: Set<HostPattern>,
    at now: Int64
  ) {
    let listed = document.map { document in
      document.byPattern.mapValues { Host(source: document, last: $0, since: now) }
    }
    for (pattern, host) in (listed ?? [:]).merging(
      older.hosts, uniquingKeysWith: { first, _ in first })
    where !known.contains(pattern) && hosts[pattern] == nil {
      hosts[pattern] = host
    }
  }

  /// Takes a host from a stored state.
  mutating func restore(_ pattern: HostPattern, _ host: Host) { hosts[pattern] = host }

  /// A registry that drops a host a day and never says so must not grow for ever.
  private mutating func drop(beyond count: Int) {
    let times = Set(hosts.values.map(\.since)).sorted()
    guard times.count > count else { return }
    let kept = Set(times.suffix(count))
    hosts = hosts.filter { kept.contains($0.value.since) }
  }
}

/// A document that was believed, with the bytes as they came: whoever doubts it later, after a
/// restart or a change of keys, can check it again.
struct AcceptedDocument: Sendable {
  /// As received.
  let bytes: [UInt8]
  /// SHA-256 over the canonical payload, in lower-case hex.
  let payloadDigest: String
  /// What it says by itself.
  let registry: Registry
  /// The statement that vouches for the payload; `nil` where the format-1 signature does.
  let statement: Statement?
  /// What may vanish by it: as its own statement says, retired or not, or the retired one before it.
  var removed: Set<HostPattern> = []
  /// The document of the retired statement whose settings are in ``registry``, where that is another one.
  var retiredBytes: [UInt8]?
  /// The newest `date` of the payload's entries, in Unix seconds; most registries have none. Asked for where no
  /// statement has a time.
  var newestDate: Int64?

  /// What the document says of each of its patterns.
  var byPattern: [HostPattern: Registry] {
    let keys = Dictionary(grouping: registry.keys, by: \.pattern)
    let settings = Dictionary(grouping: registry.settings, by: \.pattern)
    let patterns = registry.patterns.map {
      ($0, Registry(keys: keys[$0] ?? [], settings: settings[$0] ?? []))
    }
    return Dictionary(uniqueKeysWithValues: patterns)
  }

  /// When a host was first missing, from a stored time that nobody signed: not after the clock, and not
  /// before the signed times of the document that still listed the host, unless the clock itself is.
  func since(_ stored: Int64, at clock: Int64) -> Int64 {
    let signed = statement?.issued ?? newestDate ?? .min
    return min(signed <= clock ? max(stored, signed) : stored, clock)
  }

  static func newestDate(of payload: JSONObject) -> Int64? {
    let entries = payload["keys"]?.arrayValue ?? []
    return entries.compactMap { $0.objectValue?["date"]?.stringValue.flatMap(RFC3339.unixSeconds) }
      .max()
  }

  /// Whether the pin was one to be used when its statement was issued. It then lives as long as a
  /// statement does.
  func isActive(_ key: RegistryKey) -> Bool {
    guard let statement else { return false }
    return key.expires.map { $0 >= statement.issued } ?? true
  }
}

extension TrustedRegistry.Standing {
  /// Whether the online keys of the believed statement's epoch signed the document's statement too. Documents
  /// without one, and those of a retired one, are vouched for by nobody: a thief could have made them.
  func vouches(for document: AcceptedDocument) -> Bool {
    guard let other = document.statement,
      let keys = statement.flatMap({ chain?.set($0.number.epoch) }),
      // It was within the app's limit when it was believed, which may be another than the usual one.
      let envelope = try? RegistryEnvelope(
        parsing: document.bytes, limits: RegistryLimits(maximumBytes: document.bytes.count)),
      let signatures = try? DocumentSignature.list(
        envelope.document["statementSignatures"], "statementSignatures")
    else { return false }
    return keys.online.isMet(by: signatures, over: other.signedBytes)
  }
}
