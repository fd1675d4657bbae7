import CanonicalJSON
import SslPinningRules

/// The record of a document in a store.
///
///     { "format": 2, "signed": 1779192131, "document": "<the signed document>",
///       "number": [epoch, version], "domains": { "www.example.com:443": {
///         "keys": [ { "pin": …, "firstSeen": …, "lastSeen": …, "missedSince": …, "expires": …,
///                     "staged": { "at": …, "by": …, "note": … }, "unannounced": true,
///                     "bringsNoCA": true, "interrupted": [ … ],
///                     "paths": [ { "above": [ … ], "places": [ [vantage, address], … ] } ],
///                     "missedProbes": … } ],
///         "held": [ { "pin": …, "firstSeen": …, "lastSeen": …, "probes": …,
///                     "reasons": [ … ], "chain": [ … ], "confirmed": true, "contradicted": true,
///                     "missedProbes": …, "interrupted": [ … ],
///                     "witnesses": [ { "vantage": …, "probes": …, "lastSeen": … } ] } ],
///         "authorities": [ { "pin": …, "lastSeen": … } ] } },
///       "added": [ … ], "overrides": { … }, "tombstones": { … }, "denied": [ … ],
///       "allowed": [ { "pin": …, "at": … } ], "removed": [ … ],
///       "watched": [ { "id": "gate.example.com:443", "patterns": [ … ], "terms": { … } } ],
///       "orphans": [ { "id": "old.example.com:443 for old.example.com", "terms": { … } } ],
///       "alerts": [ … ], "returns": 1, "beganFrom": [epoch, version] }
///
/// - Format 1 had `keysByEndpoint`, a list of keys for each endpoint, and nothing else; it is read too.
/// - So is a record without `watched` (``EarlierRecord``).
/// - Whoever can write to the store decides what is published: protect it like the signing key.
extension DocumentState {
  static let format: Int64 = 2

  /// The record's bytes. What is not kept across restarts is not in it.
  package var encoded: [UInt8] { encoded(domains: encodedDomains) }

  /// The largest part of the record, `domains`, which does not depend on the rest. Written endpoint by
  /// endpoint: as one value, thousands of them take more memory than all else here.
  package var encodedDomains: [UInt8] {
    var bytes = [UInt8(ascii: "{")]
    for (id, endpointKeys) in keysByEndpoint.sorted(by: { $0.key < $1.key })
    where endpointKeys.hasKept {
      let json = endpointKeys.kept.json
      if bytes.count > 1 { bytes.append(UInt8(ascii: ",")) }
      bytes += JSONValue.string(id).canonicalBytes
      bytes.append(UInt8(ascii: ":"))
      bytes += json.canonicalBytes
    }
    bytes.append(UInt8(ascii: "}"))
    return bytes
  }

  /// The record's bytes, around this part of it.
  package func encoded(domains: [UInt8]) -> [UInt8] {
    var json: JSONObject = [
      "format": .integer(Self.format), "signed": .integer(signed),
      "document": .string(String(decoding: document, as: UTF8.self)),
      "added": .array(added.map(\.json)),
      "overrides": .object(JSONObject(overrides.map { ($0.key, $0.value.json) })),
      "tombstones": .object(JSONObject(tombstones.map { ($0.key, $0.value.json) })),
      "allowed": .array(
        allowed.sorted { $0.key < $1.key }.map { pin, time in
          .object(["at": .integer(time), "pin": .string(pin.base64)])
        }),
      "denied": .array(denied.map(\.json)),
      "removed": .array(removed.map { .string($0.description) }),
      "alerts": .array(
        alerts.sorted { $0.key < $1.key }.flatMap(\.value).map(\.json)),
      "watched": .array(watched.map(\.reference)), "orphans": .array(orphans.map(\.reference)),
    ]
    if returns > 0 { json["returns"] = .integer(returns) }
    for (name, number) in [("number", number), ("beganFrom", beganFrom)] {
      json[name] = number.map { JSONValue.array([.integer($0.epoch), .integer($0.version)]) }
    }
    // In one piece: this may be megabytes.
    let rest = JSONValue.object(json).canonicalBytes
    var bytes: [UInt8] = []
    bytes.reserveCapacity(rest.count + domains.count + 16)
    bytes += rest.dropLast()
    bytes += #","domains":"#.utf8
    bytes += domains
    bytes.append(UInt8(ascii: "}"))
    return bytes
  }

  /// Reads a record.
  ///
  /// - Throws: ``StateFault``, also for a record of a newer format.
  package init(reading bytes: [UInt8]) throws(StateFault) {
    let root: JSONValue
    do throws(JSONError) { root = try JSONValue(parsing: bytes) } catch {
      throw StateFault(reason: "\(error)")
    }
    guard let object = root.objectValue, let format = object["format"]?.integerValue else {
      throw StateFault(reason: "it is no record of this program")
    }
    guard (1...Self.format).contains(format) else {
      throw StateFault(reason: "it has the format \(format)")
    }
    let record = StateReader(object, "record")
    signed = try record.integer("signed")
    document = [UInt8](try record.string("document").utf8)
    if format == 1 {
      for (id, list) in try record.members("keysByEndpoint") {
        keysByEndpoint[id] = EndpointKeys(
          keys: try StateReader.list(list, "keysByEndpoint", KnownKey.init))
      }
      try EarlierRecord(record).complete(&self)
      return
    }
    for (id, value) in try record.members("domains") {
      keysByEndpoint[id] = try EndpointKeys(try StateReader(value, "domains"))
    }
    added = try record.list("added", WatchedEndpoint.init(_:))
    for (id, value) in try record.members("overrides") {
      overrides[id] = try Override(try StateReader(value, "overrides"))
    }
    for (id, value) in try record.members("tombstones") {
      tombstones[id] = try Tombstone(try StateReader(value, "tombstones"))
    }
    denied = try record.list("denied", Denial.init)
    if object["allowed"] != nil {
      let read = try record.list("allowed") { entry throws(StateFault) in
        (try entry.pin("pin"), try entry.integer("at"))
      }
      for (pin, time) in read { allowed[pin] = time }
    }
    removed = try record.patterns("removed")
    if object["watched"] != nil {
      watched = try record.list("watched", WatchedEndpoint.init(reference:))
      orphans = try record.list("orphans", WatchedEndpoint.init(reference:))
    } else {
      try EarlierRecord(record).complete(&self)
    }
    returns = try record.count("returns", upTo: RecordAge.mostReturns)
    for alert in try record.list("alerts", ServerAlert.init) { raise(alert) }
    func version(_ name: String) -> RegistryStamp.Version? {
      let parts = object[name]?.arrayValue?.compactMap(\.integerValue) ?? []
      return parts.count == 2 ? RegistryStamp.Version(epoch: parts[0], version: parts[1]) : nil
    }
    (self.number, beganFrom) = (version("number"), version("beganFrom"))
  }
}

extension WatchedEndpoint {
  /// Its part of a record that says who was in force.
  fileprivate var reference: JSONValue {
    var json: JSONObject = ["id": .string(id)]
    if patterns != WatchedEndpoint(id: id)?.patterns {
      json["patterns"] = .array(patterns.map { .string($0.description) })
    }
    if !terms.isStandard { json["terms"] = terms.json }
    json["overruled"] = overruled?.json
    return .object(json)
  }

  fileprivate init(reference reader: StateReader) throws(StateFault) {
    guard let endpoint = WatchedEndpoint(id: try reader.string("id")) else {
      throw reader.fault("id")
    }
    self = endpoint
    if reader.object["patterns"] != nil { patterns = try reader.patterns("patterns") }
    terms = try HostTerms(in: reader) ?? .standard
    overruled = try HostTerms(in: reader, "overruled")
  }
}
