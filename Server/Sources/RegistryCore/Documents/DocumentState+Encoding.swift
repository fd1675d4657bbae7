import CanonicalJSON
import SslPinningRules

/// The record of a document in a store.
///
///     { "format": 2, "signed": 1779192131, "document": "<the signed document>",
///       "number": [epoch, version], "domains": { "www.example.com:443": {
///         "keys": [ { "pin": …, "firstSeen": …, "lastSeen": …, "missedSince": …, "expires": …,
///                     "staged": { "at": …, "by": …, "note": … }, "unannounced": true,
///                     "paths": [ { "above": [ … ], "places": [ [vantage, address], … ] } ],
///                     "missedProbes": … } ],
///         "held": [ { "pin": …, "firstSeen": …, "lastSeen": …, "probes": …,
///                     "reasons": [ … ], "chain": [ … ],
///                     "witnesses": [ { "vantage": …, "probes": …, "lastSeen": … } ] } ],
///         "authorities": [ { "pin": …, "lastSeen": … } ] } },
///       "added": [ … ], "overrides": { … }, "tombstones": { … }, "denied": [ … ],
///       "allowed": [ { "pin": …, "at": … } ], "removed": [ … ],
///       "spokenPatterns": { "gate.example.com:443": [ … ] },
///       "vanished": [ { "pattern": …, "entries": [ { "pin": …, "fqdn": …, "date": … } ], "settings": { … }, "terms": { … },
///                       "authorities": [ … ], "speakers": [ … ], "signed": … } ],
///       "alerts": [ … ], "returns": 1 }
///
/// - Format 1 had `keysByEndpoint`, a list of keys for each endpoint, and nothing else; it is read too.
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
    ]
    if !spokenPatterns.isEmpty {
      json["spokenPatterns"] = .object(
        JSONObject(
          spokenPatterns.map { id, patterns in
            (id, .array(patterns.map { .string($0.description) }))
          }))
    }
    if !vanishedHosts.isEmpty {
      json["vanished"] = .array(
        vanishedHosts.sorted { $0.key.description < $1.key.description }.map(\.value.json))
    }
    if returns > 0 { json["returns"] = .integer(returns) }
    if let number { json["number"] = .array([.integer(number.epoch), .integer(number.version)]) }
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
      return
    }
    for (id, value) in try record.members("domains") {
      keysByEndpoint[id] = try EndpointKeys(try StateReader(value, "domains"))
    }
    added = try record.list("added", WatchedEndpoint.init)
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
    if let spoken = object["spokenPatterns"] {
      let reader = try StateReader(spoken, "spokenPatterns")
      for (id, _) in reader.object { spokenPatterns[id] = try reader.patterns(id) }
    }
    if object["vanished"] != nil {
      for host in try record.list("vanished", VanishedHost.init) {
        vanishedHosts[host.pattern] = host
      }
    }
    returns = try record.count("returns", upTo: RecordAge.mostReturns)
    for alert in try record.list("alerts", ServerAlert.init) { raise(alert) }
    if let number = object["number"]?.arrayValue?.compactMap(\.integerValue), number.count == 2 {
      self.number = RegistryStamp.Version(epoch: number[0], version: number[1])
    }
  }
}
