import CanonicalJSON

/// What a client stores about a registry, to continue after a restart.
///
/// - The document is stored as received, and of older ones what is signed: everything that is believed from a state is
///   verified again, starting with the keys that the app ships.
/// - Unsigned parts can do no harm: the time floor is not stored but taken from the signed statement, stored times
///   are limited by the documents' times and the clock, vanished hosts are believed only with a document that
///   listed them, and a pattern in `enforced` only tightens. Who can write here can put an older document beside the
///   newest tag, and that is confirmed until the next one is published, a day at most, or a connection is refused.
/// - Nothing in it is secret.
public struct StoredState: Sendable {
  /// A host that vanished, and since when (Unix seconds).
  struct Vanished: Sendable {
    let pattern: HostPattern
    let since: Int64
  }

  /// The tag of the document, if it has one.
  public var tag: DocumentTag?
  /// `nil` if there are only key sets and no registry.
  var document: [UInt8]?
  /// The document of the believed statement, if that is another one.
  var statementDocument: [UInt8]?
  var keySets: [JSONValue]
  var confirmed: Int64
  var enforced: [HostPattern]
  /// Vanished hosts with the documents that listed them, each with the document of the retired statement beside
  /// which it was believed, if any.
  var vanished: [(document: [UInt8], retired: [UInt8]?, hosts: [Vanished])]

  private static let type = "registry-state"

  /// The state as canonical JSON: equal states have equal bytes.
  public var encoded: [UInt8] {
    func text(_ bytes: [UInt8]) -> JSONValue { .string(String(decoding: bytes, as: UTF8.self)) }
    func integer(_ value: Int64) -> JSONValue? {
      JSONNumber(exactly: value).map(JSONValue.number)
    }
    var json: JSONObject = [
      "type": .string(Self.type), "format": .number(1), "keySets": .array(keySets),
      "enforced": .array(
        enforced.map(\.description).sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
          .map(JSONValue.string)),
      "vanished": .array(
        vanished.map { document, retired, hosts in
          var entry: JSONObject = [
            "document": text(document),
            "hosts": .array(
              hosts.map {
                .object([
                  "domainName": .string($0.pattern.description),
                  "since": integer($0.since) ?? .null,
                ])
              }),
          ]
          entry["retired"] = retired.map(text)
          return .object(entry)
        }),
    ]
    json["document"] = document.map(text)
    json["statementDocument"] = statementDocument.map(text)
    json["confirmed"] = integer(confirmed)
    json["tag"] = (tag?.value).map(JSONValue.string)
    json["tagEpoch"] = (tag?.statementEpoch).flatMap(integer)
    return JSONValue.object(json).canonicalBytes
  }

  /// The same in at most `limit` bytes: documents of vanished hosts are left out, the oldest first, until it fits. What
  /// is believed now is never left out.
  package func encoded(within limit: Int) -> [UInt8] {
    let all = encoded
    var excess = all.count - limit
    guard excess > 0 else { return all }
    var state = self
    while excess > 0, let oldest = state.indexOfOldest {
      let gone = state.vanished.remove(at: oldest)
      for bytes in [gone.document, gone.retired ?? []] {
        excess -= JSONValue.string(String(decoding: bytes, as: UTF8.self)).canonicalBytes.count
      }
    }
    return state.encoded
  }

  /// The older documents, those first whose hosts vanished last.
  fileprivate var newestFirst: [(document: [UInt8], retired: [UInt8]?, hosts: [Vanished])] {
    vanished.sorted { one, other in
      one.hosts.map(\.since).max() ?? .min > other.hosts.map(\.since).max() ?? .min
    }
  }

  private var indexOfOldest: Int? {
    vanished.indices.min { one, other in
      vanished[one].hosts.map(\.since).max() ?? .min
        < vanished[other].hosts.map(\.since).max() ?? .min
    }
  }

  /// Whether a state that is refused for this reason is one that another client believes: a later version of this program,
  /// one that knows more members of statements, or one that has a key for lists without any, of a registry that ended them.
  /// Not one that says itself that it is older than what is believed here.
  package static func isAnothers(
    _ bytes: [UInt8], _ reason: RegistryError, beside own: RegistryStamp.Version? = nil
  ) -> Bool {
    let version = version(of: bytes)
    if let own, let version, version < own { return false }
    switch reason {
    case .clientTooOld, .invalidKeySet(_, .unknownCritical): return true
    case .noFormat1Key, .statementRequired: return version != nil
    case .unreadableState:
      let limits = JSONLimits(maximumBytes: JSONLimits.greatestBytes)
      let json = (try? JSONValue(parsing: bytes, limits: limits))?.objectValue
      return json?["type"] == .string(type) && (json?["format"]?.integerValue ?? 0) > 1
    default: return false
    }
  }

  /// What a state says of its newest statement's number, which nobody has verified.
  private static func version(of bytes: [UInt8]) -> RegistryStamp.Version? {
    let limits = JSONLimits(maximumBytes: JSONLimits.greatestBytes)
    let json = (try? JSONValue(parsing: bytes, limits: limits))?.objectValue
    return ["document", "statementDocument"].compactMap { name in
      guard let text = json?[name]?.stringValue,
        let document = (try? JSONValue(parsing: [UInt8](text.utf8), limits: limits))?.objectValue,
        let statement = document["statement"]?.objectValue,
        let epoch = statement["epoch"]?.integerValue,
        let version = statement["version"]?.integerValue
      else { return nil }
      return RegistryStamp.Version(epoch: epoch, version: version)
    }.max()
  }

  /// Reads a stored state without believing any of it yet.
  ///
  /// - Throws: ``RegistryError/unreadableState``.
  public init(decoding bytes: [UInt8]) throws(RegistryError) {
    let limits = JSONLimits(maximumBytes: JSONLimits.greatestBytes)
    guard let json = (try? JSONValue(parsing: bytes, limits: limits))?.objectValue,
      json["type"] == .string(Self.type), json["format"] == .number(1),
      let keySets = json["keySets"]?.arrayValue,
      let enforced = json["enforced"]?.arrayValue, let vanished = json["vanished"]?.arrayValue
    else { throw .unreadableState }
    document = json["document"]?.stringValue.map { [UInt8]($0.utf8) }
    statementDocument = json["statementDocument"]?.stringValue.map { [UInt8]($0.utf8) }
    self.keySets = keySets
    confirmed = json["confirmed"]?.integerValue ?? 0
    tag = json["tag"]?.stringValue.flatMap {
      DocumentTag($0, statementEpoch: json["tagEpoch"]?.integerValue)
    }
    self.enforced = enforced.compactMap { try? HostPattern(member: $0, "enforced") }
    self.vanished = vanished.compactMap { entry in
      guard let entry = entry.objectValue, let document = entry["document"]?.stringValue,
        let hosts = entry["hosts"]?.arrayValue
      else { return nil }
      return (
        [UInt8](document.utf8), entry["retired"]?.stringValue.map { [UInt8]($0.utf8) },
        hosts.compactMap { host in
          guard let host = host.objectValue, let since = host["since"]?.integerValue,
            let pattern = try? HostPattern(member: host["domainName"], "domainName")
          else { return nil }
          return Vanished(pattern: pattern, since: since)
        }
      )
    }
  }

  init(
    document: [UInt8]?, statementDocument: [UInt8]?, keySets: [JSONValue], confirmed: Int64,
    enforced: [HostPattern], vanished: [(document: [UInt8], retired: [UInt8]?, hosts: [Vanished])]
  ) {
    (self.document, self.statementDocument) = (document, statementDocument)
    (self.keySets, self.confirmed) = (keySets, confirmed)
    (self.enforced, self.vanished) = (enforced, vanished)
  }

  /// Whether it holds a registry and not only key sets.
  public var holdsRegistry: Bool { document != nil }

  init(_ trusted: TrustedRegistry) {
    document = trusted.document.bytes
    let standing = trusted.standing
    statementDocument =
      standing.statement == nil || standing.statementBytes == document
      ? nil : standing.statementBytes
    keySets = standing.chain?.entries ?? []
    confirmed = trusted.stamp.confirmed
    enforced = Array(standing.enforced)
    vanished = []
    var places: [[UInt8]: [Int]] = [:]
    for (pattern, host) in trusted.vanished.ordered {
      let own = Vanished(pattern: pattern, since: host.since)
      let source = host.source
      let same = places[source.digest, default: []]
      if let index = same.first(where: { vanished[$0].retired == source.retiredBytes }) {
        vanished[index].hosts.append(own)
      } else {
        places[source.digest, default: []].append(vanished.count)
        vanished.append((source.bytes, source.retiredBytes, [own]))
      }
    }
  }
}

/// The `ETag` with which a server sent the believed document (RFC 9110 section 8.8.3), to ask later whether that
/// is still the newest.
///
/// A server confirms by it what a client has, so a client keeps only a tag that is the digest of what came with it. Then a wrong one
/// can stand only in what was stored.
public struct DocumentTag: Hashable, Sendable {
  /// The tag as received.
  public let value: String
  /// The epoch in the request, if only the statement part was requested; `nil` for the whole document.
  public let statementEpoch: Int64?

  /// The longest tag that is kept, in bytes.
  static let longest = 1024

  /// `nil` unless the value is a single tag, `"…"` or `W/"…"`, of at most ``longest`` bytes. In a later request,
  /// `*` or a list would match whatever the server has, so the answer would be "unchanged" for ever.
  public init?(_ value: String, statementEpoch: Int64? = nil) {
    let quoted = value.hasPrefix("W/") ? value.dropFirst(2) : value[...]
    let quote = UInt8(ascii: "\"")
    guard value.utf8.count <= Self.longest, quoted.utf8.count >= 2, quoted.utf8.first == quote,
      quoted.utf8.last == quote,
      quoted.utf8.dropFirst().dropLast().allSatisfy({ (0x21...0x7e).contains($0) && $0 != quote })
    else { return nil }
    self.value = value
    self.statementEpoch = statementEpoch
  }
}

/// Continuing after a restart.
extension TrustedRegistry {
  /// What to store.
  public var state: StoredState { StoredState(self) }

  /// Believes a stored state, as far as its documents still verify with what the app ships now.
  ///
  /// The statement may have expired since, and its key set may be superseded: it still counts as before. Vanished
  /// hosts that cannot be proved are left out.
  ///
  /// - Parameters:
  ///   - state: what an earlier run stored.
  ///   - trust: what the app ships now.
  ///   - clock: Unix time in seconds.
  /// - Throws: ``RegistryError``; then the state is useless, and the client must start as if for the first
  ///   time.
  public init(
    restoring state: StoredState, under trust: RegistryTrust, at clock: Int64
  ) throws(RegistryError) {
    var standing = Standing()
    var chain = KeySetChain(shipped: trust.shipped)
    if let fault = chain.walk(.array(state.keySets), under: trust, wasBelieved: true) {
      throw fault
    }
    standing.chain = chain
    var judge = DocumentJudge(trust: trust, clock: clock, standing: standing, origin: .stored)
    if let bytes = state.statementDocument {
      _ = try judge.judge(try RegistryEnvelope(believed: bytes), bytes: bytes)
    }
    guard let bytes = state.document else { throw .unreadableState }
    let document = try judge.judge(try RegistryEnvelope(believed: bytes), bytes: bytes)
    standing = judge.standing
    if standing.statement != nil { standing.enforce(first: state.enforced) }
    var vanished = VanishedHosts()
    let listed = document.registry.patterns.union(document.removed)
    var room = trust.limits.maximumOlderBytes
    for (bytes, retired, hosts) in state.newestFirst {
      // Before it is read: a start must not take a minute over what is dropped then.
      room -= bytes.count + (retired?.count ?? 0)
      guard room >= 0 else { break }
      guard let source = judge.older(bytes, beside: retired) else { continue }
      let known = source.byPattern
      for host in hosts where !listed.contains(host.pattern) {
        guard let last = known[host.pattern] else { continue }
        vanished.restore(
          host.pattern,
          // Keep the stored time until a server confirms something: with a slow clock, as after a dead
          // battery, a changed time would end the host's grace once the clock is right again.
          .init(source: source, last: last, since: host.since))
      }
    }
    vanished.keepNewest(trust.limits)
    // A confirmation in the future was written under a fast clock, and one from before its statement was issued
    // under a slow one. Ignore both: every start of a device that has no time of its own would consider the
    // state fresh, and never refresh. (A second or two may be another process's reading of the clock, but of two
    // format-1 lists the later one wins, and this one would win over every list fetched since.)
    let isKnown =
      document.statement.map {
        RegistryStamp.isPast(state.confirmed, at: clock)
          && RegistryStamp.isPast($0.issued, at: state.confirmed)
      } ?? (state.confirmed <= clock)
    let confirmed = isKnown ? min(state.confirmed, clock) : 0
    self.init(
      document: document, standing: standing, vanished: vanished, confirmed: confirmed,
      limits: trust.limits)
  }
}
