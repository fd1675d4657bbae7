import CanonicalJSON

/// The hosts that were in an older document and are not in the newest, with their last pins.
///
/// - Under statements a host is dropped if `removed` names it; without statements, after 30 days.
/// - At a new epoch, and at the first believed statement, a host stays only if the online keys of that epoch also
///   signed its statement. Documents for which only withdrawn keys or the format-1 key vouched no longer count: a
///   pattern that a thief once listed must not outlive his keys.
/// - They add neither pins nor settings to hosts that a listed pattern matches (`PolicyTable`).
/// - A host that is listed again has only its new pins.
struct VanishedHosts: Sendable {
  /// One host.
  struct Host: Sendable {
    /// The newest document that listed it.
    let source: AcceptedDocument
    /// The host's entries in that document.
    let last: Registry
    /// Unix time in seconds at which a document without the host was first believed, never later than now.
    var since: Int64

    /// Whether a newer document listed this host than the other one. Without a statement, or beside the same retired
    /// one, nobody knows.
    func isNewer(than other: Host) -> Bool {
      guard let mine = source.number, let others = other.source.number else { return false }
      return mine > others
    }
  }

  private(set) var hosts: [HostPattern: Host] = [:]

  /// The hosts in the order of their patterns' bytes.
  var ordered: [(pattern: HostPattern, host: Host)] {
    // Each text is made once: a thief's list has hundreds of thousands.
    hosts.map { (text: Array($0.key.description.utf8), entry: (pattern: $0.key, host: $0.value)) }
      .sorted { $0.text.lexicographicallyPrecedes($1.text) }
      .map(\.entry)
  }

  /// Updates the hosts when `new` replaces `old`.
  mutating func replace(
    _ old: AcceptedDocument, by new: AcceptedDocument, at now: Int64, limits: RegistryLimits
  ) {
    let spokenFor = new.registry.patterns.union(new.removed)
    hosts = hosts.filter { !spokenFor.contains($0.key) }
    let source = old.asOlder
    for (pattern, last) in old.byPattern where !spokenFor.contains(pattern) {
      hosts[pattern] = Host(source: source, last: last, since: now)
    }
    expire(under: new, at: now, limits: limits)
  }

  /// Drops the hosts whose time is over while `document` is the newest.
  mutating func expire(under document: AcceptedDocument, at now: Int64, limits: RegistryLimits) {
    hosts = hosts.mapValues { host in
      var host = host
      // A fast clock must not keep a host for longer, nor a slow one for less, if there is a signed time.
      host.since = host.source.since(host.since, at: now)
      return host
    }
    release(under: document, at: now, limits: limits)
  }

  /// Drops them and leaves the times of the others alone: until a server has confirmed something, the clock may
  /// be slow.
  mutating func release(under document: AcceptedDocument, at now: Int64, limits: RegistryLimits) {
    hosts = hosts.filter { _, host in
      (document.statement != nil && host.source.statement != nil)
        || limits.keepsVanished(since: host.source.since(host.since, at: now), at: now)
    }
    keepNewest(limits)
  }

  /// Keeps only the hosts whose documents pass `isVouchedFor`.
  mutating func keep(where isVouchedFor: (AcceptedDocument) -> Bool) {
    var verdicts: [[UInt8]: Bool] = [:]
    hosts = hosts.filter { _, host in
      let verdict = verdicts[host.source.digest] ?? isVouchedFor(host.source)
      verdicts[host.source.digest] = verdict
      return verdict
    }
  }

  /// Adds the hosts of an older document, and those that had vanished before it, except known ones. If a host is here
  /// already, the newer of the two documents that listed it counts.
  mutating func adopt(
    _ document: AcceptedDocument?, andThoseOf older: VanishedHosts, unless known: Set<HostPattern>,
    at now: Int64
  ) {
    let listed = document.map { document in
      let source = document.asOlder
      return document.byPattern.mapValues { Host(source: source, last: $0, since: now) }
    }
    for (pattern, host) in (listed ?? [:]).merging(
      older.hosts, uniquingKeysWith: { first, _ in first })
    where !known.contains(pattern) && hosts[pattern].map(host.isNewer) ?? true {
      hosts[pattern] = host
    }
  }

  /// Adds a host from a stored state.
  mutating func restore(_ pattern: HostPattern, _ host: Host) { hosts[pattern] = host }

  /// Limits the documents, in number, bytes and entries, to the newest: a registry that silently drops a host every day must not
  /// grow for ever, nor what is merged with a stored state.
  ///
  /// The order is that of ``Host/isNewer(than:)``: a host that has moved to a newer list stays with it. Lists that never had a number
  /// go first, so a thief of the format-1 key pushes nothing out. Beside a retired statement he can, but there his list may
  /// as well have the hosts with his pins.
  mutating func keepNewest(_ limits: RegistryLimits) {
    var documents: [[UInt8]: (source: AcceptedDocument, since: Int64, hosts: Int)] = [:]
    for host in hosts.values {
      let known = documents[host.source.digest]
      documents[host.source.digest] = (
        host.source, max(known?.since ?? .min, host.since), (known?.hosts ?? 0) + 1
      )
    }
    var (room, places) = (limits.maximumOlderBytes, limits.maximumOlderEntries)
    let kept = documents.values.sorted { one, other in
      let (mine, others) = (one.source.number, other.source.number)
      let (left, right) = (
        (mine?.epoch ?? -1, mine?.version ?? -1, one.since),
        (others?.epoch ?? -1, others?.version ?? -1, other.since)
      )
      // By the number first: two processes must keep the same, and each has a time of its own at which it saw a host leave.
      return left == right
        ? one.source.digest.lexicographicallyPrecedes(other.source.digest) : left > right
    }.prefix(limits.maximumOlderDocuments).prefix { document in
      room -= document.source.signed.count + (document.source.retiredBytes?.count ?? 0)
      let registry = document.source.registry
      places -= max(document.hosts, registry.keys.count + registry.settings.count)
      return room >= 0 && places >= 0
    }
    guard kept.count < documents.count else { return }
    let digests = Set(kept.map(\.source.digest))
    hosts = hosts.filter { digests.contains($0.value.source.digest) }
  }
}

/// A believed document with its bytes, so that it can be verified again after a restart or a change of keys.
struct AcceptedDocument: Sendable {
  /// As received, or ``signed`` of an older one.
  var bytes: [UInt8]
  /// ``RegistryEnvelope/signedPart(_:by:)``.
  let signed: [UInt8]
  /// SHA-256 over ``signed``. Documents are compared by it, once for each host that vanished. With a thief's documents of many hosts,
  /// comparing the bytes takes minutes, and the epoch that heals does not take force meanwhile.
  let digest: [UInt8]
  /// SHA-256 over the canonical payload, in lower-case hex.
  let payloadDigest: String
  /// Its own contents.
  let registry: Registry
  /// The statement that vouches for the payload; `nil` if the format-1 signature does.
  let statement: Statement?
  /// The number of ``statement``, or of the retired one in this document or in force beside it.
  var number: RegistryStamp.Version?
  /// The hosts that may vanish, according to its own statement, retired or not, or to the retired one before it.
  var removed: Set<HostPattern> = []
  /// The document of the retired statement whose settings are in ``registry``, if that is another one.
  var retiredBytes: [UInt8]?
  /// The newest `date` of the payload's entries, in Unix seconds; most registries have none. Only used if there is
  /// no statement's time.
  var newestDate: Int64?

  /// The same without what nobody signed.
  var asOlder: AcceptedDocument {
    var older = self
    older.bytes = signed
    return older
  }

  /// The document's contents for each of its patterns.
  var byPattern: [HostPattern: Registry] {
    let keys = Dictionary(grouping: registry.keys, by: \.pattern)
    let settings = Dictionary(grouping: registry.settings, by: \.pattern)
    let patterns = registry.patterns.map {
      ($0, Registry(keys: keys[$0] ?? [], settings: settings[$0] ?? []))
    }
    return Dictionary(uniqueKeysWithValues: patterns)
  }

  /// When a host was first missing, from an unsigned stored time: not after the clock, and not before the signed
  /// times of the document that still listed the host, unless the clock itself is before them.
  func since(_ stored: Int64, at clock: Int64) -> Int64 {
    let signed = statement?.issued ?? newestDate ?? .min
    return min(signed <= clock ? max(stored, signed) : stored, clock)
  }

  static func newestDate(of payload: JSONView) -> Int64? {
    let entries = payload["keys"]?.arrayValue ?? []
    return entries.compactMap { $0["date"]?.stringValue.flatMap(RFC3339.unixSeconds) }
      .max()
  }

  /// Whether the pin was active when its statement was issued. Then it is valid for as long as the statement.
  func isActive(_ key: RegistryKey) -> Bool {
    guard let statement else { return false }
    return key.expires.map { $0 >= statement.issued } ?? true
  }
}

extension TrustedRegistry.Standing {
  /// Whether the online keys of the believed statement's epoch also signed the document's statement. Documents
  /// without a statement, or with a retired one, do not qualify: a thief could have made them.
  func vouches(for document: AcceptedDocument) -> Bool {
    guard let other = document.statement,
      let keys = statement.flatMap({ chain?.set($0.number.epoch) }),
      let envelope = try? RegistryEnvelope(believed: document.bytes),
      let signatures = try? DocumentSignature.list(
        envelope.member("statementSignatures"), "statementSignatures")
    else { return false }
    return keys.online.isMet(by: signatures, over: other.signedBytes)
  }
}
