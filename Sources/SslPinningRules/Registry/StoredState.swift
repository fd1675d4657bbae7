import CanonicalJSON

/// What a client stores of a registry, to go on from after a restart.
///
/// - The signed documents themselves are stored, as they came: all that is believed from a state is
///   verified again, from the keys that the app ships on.
/// - What is not signed can do no harm: the time floor is not stored but taken from the signed statement,
///   the times of belief are held between what the documents say and the clock, hosts that vanished are
///   believed only with a document that listed them, and a pattern in `enforced` only tightens.
/// - Nothing in here is secret.
public struct StoredState: Sendable {
  /// A host that vanished, and since when (Unix seconds).
  struct Vanished: Sendable {
    let pattern: HostPattern
    let since: Int64
  }

  /// The tag of the document, where it has one.
  public var tag: DocumentTag?
  /// `nil` while there are key sets and no registry.
  var document: [UInt8]?
  /// The document of the believed statement, where that is another one.
  var statementDocument: [UInt8]?
  var keySets: [JSONValue]
  var confirmed: Int64
  var enforced: [HostPattern]
  /// The documents that listed them, each with that of the retired statement it was believed beside.
  var vanished: [(document: [UInt8], retired: [UInt8]?, hosts: [Vanished])]

  private static let type = "registry-state"

  /// The state as canonical JSON: the same state has the same bytes.
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

  /// The same in at most `limit` bytes: of the documents that are kept for hosts which vanished, the
  /// oldest go until it fits. What is believed now is never left out.
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

  private var indexOfOldest: Int? {
    vanished.indices.min { one, other in
      vanished[one].hosts.map(\.since).max() ?? .min
        < vanished[other].hosts.map(\.since).max() ?? .min
    }
  }

  /// Reads a stored state; nothing of it is believed yet.
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

  /// Whether there is a registry in it, beside key sets.
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
    for (pattern, host) in trusted.vanished.ordered {
      let own = Vanished(pattern: pattern, since: host.since)
      let source = host.source
      if let index = vanished.firstIndex(where: {
        $0.document == source.bytes && $0.retired == source.retiredBytes
      }) {
        vanished[index].hosts.append(own)
      } else {
        vanished.append((source.bytes, source.retiredBytes, [own]))
      }
    }
  }
}
