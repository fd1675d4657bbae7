import CanonicalJSON
import SslPinningRules

extension EndpointKeys {
  /// Its part of a record.
  var json: JSONValue {
    // In the order in which they are written.
    var json: JSONObject = [:]
    if !authorities.isEmpty {
      json["authorities"] = .array(
        authorities.sorted { $0.key < $1.key }.map { pin, seen in
          .object(["lastSeen": .integer(seen), "pin": .string(pin.base64)])
        })
    }
    if !candidates.isEmpty {
      json["held"] = .array(
        candidates.sorted { $0.key < $1.key }.map { .object($0.value.json) })
    }
    if !keys.isEmpty { json["keys"] = .array(keys.map(\.json)) }
    return .object(json)
  }

  init(_ reader: StateReader) throws(StateFault) {
    let keys =
      reader.object["keys"] == nil ? [] : try reader.list("keys", KnownKey.init)
    var held: [SPKIPin: CandidateKey] = [:]
    if reader.object["held"] != nil {
      for candidate in try reader.list("held", CandidateKey.init) {
        held[candidate.chain.leaf.pin] = candidate
      }
    }
    var authorities: [SPKIPin: Int64] = [:]
    if reader.object["authorities"] != nil {
      let read = try reader.list("authorities") { entry throws(StateFault) in
        (try entry.pin("pin"), try entry.integer("lastSeen"))
      }
      for (pin, seen) in read { authorities[pin] = seen }
    }
    self.init(keys: keys, held: held, authorities: authorities)
  }
}

extension KnownKey {
  /// Its part of a record.
  var json: JSONValue {
    // In the order in which they are written.
    var json: JSONObject = [:]
    if bringsNoCA { json["bringsNoCA"] = .bool(true) }
    if let certificateExpires { json["expires"] = .integer(certificateExpires) }
    json["firstSeen"] = .integer(firstSeen)
    if let interrupted { json["interrupted"] = .pins(interrupted) }
    json["lastSeen"] = .integer(lastSeen)
    if longestGap > 0 { json["longestGap"] = .integer(Int64(longestGap)) }
    if missedProbes > 0 { json["missedProbes"] = .integer(Int64(missedProbes)) }
    if let missedSince { json["missedSince"] = .integer(missedSince) }
    if !paths.isEmpty { json["paths"] = pathsJSON }
    json["pin"] = .string(pin.base64)
    if !seenAt.isEmpty { json["seenAt"] = seenAtJSON }
    if shownFor != lastSeen - firstSeen { json["shownFor"] = .integer(shownFor) }
    if let staged {
      json["staged"] = .object([
        "at": .integer(staged.at), "by": .string(staged.by), "note": .string(staged.note),
      ])
    }
    if isUnannounced { json["unannounced"] = .bool(true) }
    if let unaskedSince { json["unaskedSince"] = .integer(unaskedSince) }
    return .object(json)
  }

  /// By vantage point, then by address.
  private var seenAtJSON: JSONValue {
    let byVantage = Dictionary(grouping: seenAt, by: \.key.vantage)
    return .object(
      JSONObject(
        byVantage.sorted { $0.key < $1.key }.map { vantage, seen in
          let times = seen.sorted { $0.key < $1.key }.map {
            ($0.key.address, JSONValue.integer($0.value))
          }
          return (vantage, .object(JSONObject(times)))
        }))
  }

  /// Each path once, with its places; usually one path for all places.
  private var pathsJSON: JSONValue {
    let places = Dictionary(grouping: paths.keys) { paths[$0] ?? [] }
    let isOfAll = places.count == 1 && Set(paths.keys) == Set(seenAt.keys)
    return .array(
      places.sorted { $0.key.lexicographicallyPrecedes($1.key) }.map { above, places in
        var json: JSONObject = ["above": .array(above.map { .string($0.base64) })]
        guard !isOfAll else { return .object(json) }
        json["places"] = .array(
          places.sorted().map { .array([.string($0.vantage), .string($0.address)]) })
        return .object(json)
      })
  }

  private static func path(
    _ reader: StateReader
  ) throws(StateFault) -> (above: [SPKIPin], places: [Place]?) {
    var above: [SPKIPin] = []
    for text in try reader.strings("above") {
      guard let pin = try? SPKIPin(base64: text) else { throw reader.fault("above") }
      above.append(pin)
    }
    let places = reader.object["places"]?.arrayValue?.compactMap { place -> Place? in
      let texts = place.arrayValue?.compactMap(\.stringValue) ?? []
      return texts.count == 2 ? Place(vantage: texts[0], address: texts[1]) : nil
    }
    return (above, places)
  }

  init(_ reader: StateReader) throws(StateFault) {
    var staged: Staging?
    if let value = reader.object["staged"] {
      let reader = try StateReader(value, "staged")
      staged = Staging(
        at: try reader.integer("at"), by: try reader.string("by"), note: try reader.string("note"))
    }
    self.init(
      pin: try reader.pin("pin"), firstSeen: try reader.integer("firstSeen"),
      lastSeen: try reader.integer("lastSeen"),
      missedSince: reader.object["missedSince"]?.integerValue,
      certificateExpires: reader.object["expires"]?.integerValue, staged: staged,
      isUnannounced: reader.object["unannounced"]?.boolValue == true,
      missedProbes: Int(clamping: reader.object["missedProbes"]?.integerValue ?? 0),
      longestGap: Int(clamping: reader.object["longestGap"]?.integerValue ?? 0),
      shownFor: reader.object["shownFor"]?.integerValue)
    unaskedSince = reader.object["unaskedSince"]?.integerValue
    bringsNoCA = reader.object["bringsNoCA"]?.boolValue == true
    interrupted = try reader.pins("interrupted")
    for (vantage, times) in reader.object["seenAt"]?.objectValue ?? [:] {
      for (address, time) in times.objectValue ?? [:] {
        seenAt[Place(vantage: vantage, address: address)] = time.integerValue
      }
    }
    if reader.object["paths"] != nil {
      for (above, places) in try reader.list("paths", Self.path) {
        for place in places ?? Array(seenAt.keys) { paths[place] = above }
      }
    }
    // An older record, without whole paths.
    if reader.object["authorities"] != nil {
      paths[.unknown] = try reader.strings("authorities").compactMap { try? SPKIPin(base64: $0) }
    }
  }
}

extension CandidateKey {
  /// Its part of a record, and how it is shown.
  var json: JSONObject {
    var json: JSONObject = [
      "pin": .string(chain.leaf.pin.base64), "firstSeen": .integer(firstSeen),
      "lastSeen": .integer(lastSeen), "probes": .integer(Int64(probes)),
      "reasons": .array(reasons.map { .string($0.rawValue) }),
      "witnesses": .array(
        witnesses.sorted { $0.key < $1.key }.map { vantage, witness in
          .object([
            "vantage": .string(vantage), "probes": .integer(Int64(witness.probes)),
            "lastSeen": .integer(witness.lastSeen),
          ])
        }),
      "chain": .array(chain.path.map { .object($0.json) }),
    ]
    if chain.isConfirmed { json["confirmed"] = .bool(true) }
    if isContradicted { json["contradicted"] = .bool(true) }
    if let interrupted { json["interrupted"] = .pins(interrupted) }
    if !isShown { json["missedProbes"] = .integer(Int64(missedProbes)) }
    return json
  }

  init(_ reader: StateReader) throws(StateFault) {
    let path = try reader.list("chain", SeenCertificate.init)
    guard let leaf = path.first else { throw reader.fault("chain") }
    self.init(
      firstSeen: try reader.integer("firstSeen"),
      chain: SeenChain(leaf: leaf, above: Array(path.dropFirst())))
    // An older record does not say so of any.
    chain.isConfirmed = reader.object["confirmed"]?.boolValue == true
    lastSeen = try reader.integer("lastSeen")
    probes = Int(clamping: try reader.integer("probes"))
    for (vantage, witness) in try reader.list("witnesses", Self.witness) {
      witnesses[vantage] = witness
    }
    reasons = try reader.strings("reasons").compactMap(HoldReason.init(rawValue:))
    // The reading server does not know which other endpoints changed at that time.
    if reasons.contains(.vantagePoints) { outvotedAt = lastSeen }
    isContradicted = reader.object["contradicted"]?.boolValue == true
    missedProbes = max(0, Int(clamping: reader.object["missedProbes"]?.integerValue ?? 0))
    interrupted = try reader.pins("interrupted")
    if reasons.contains(.massChange) { probes = max(probes, EndpointKeys.probesWhileHeld + 1) }
  }
}

extension CandidateKey {
  private static func witness(
    _ reader: StateReader
  ) throws(StateFault) -> (vantage: String, Witness) {
    let probes = Int(clamping: try reader.integer("probes"))
    return (
      try reader.string("vantage"),
      Witness(probes: probes, lastSeen: try reader.integer("lastSeen"))
    )
  }
}

extension SeenCertificate {
  /// Its part of a record, and how it is shown.
  var json: JSONObject {
    [
      "pin": .string(pin.base64), "subject": .string(subject), "issuer": .string(issuer),
      "notBefore": .integer(notBefore), "notAfter": .integer(notAfter),
    ]
  }

  init(_ reader: StateReader) throws(StateFault) {
    self.init(
      pin: try reader.pin("pin"), subject: try reader.string("subject"),
      issuer: try reader.string("issuer"), notBefore: try reader.integer("notBefore"),
      notAfter: try reader.integer("notAfter"))
  }
}

/// Why a record cannot be read.
package struct StateFault: Error {
  package let reason: String

  init(reason: String) { self.reason = reason }

  init(member: String) { reason = "\(member) is missing or unreadable" }
}

/// One object of a record, read strictly: a missing member or one of another type is a fault.
struct StateReader {
  let object: JSONObject
  let name: String

  init(_ object: JSONObject, _ name: String) { (self.object, self.name) = (object, name) }

  init(_ value: JSONValue, _ name: String) throws(StateFault) {
    guard let object = value.objectValue else { throw StateFault(member: name) }
    self.init(object, name)
  }

  func integer(_ member: String) throws(StateFault) -> Int64 {
    guard let value = object[member]?.integerValue else { throw fault(member) }
    return value
  }

  /// A number from 0 to the given one; 0 if the member is missing.
  func count(_ member: String, upTo most: Int64) throws(StateFault) -> Int64 {
    guard let value = object[member] else { return 0 }
    guard let count = value.integerValue, (0...most).contains(count) else { throw fault(member) }
    return count
  }

  func string(_ member: String) throws(StateFault) -> String {
    guard let value = object[member]?.stringValue else { throw fault(member) }
    return value
  }

  func pin(_ member: String) throws(StateFault) -> SPKIPin {
    guard let pin = try? SPKIPin(base64: try string(member)) else { throw fault(member) }
    return pin
  }

  /// A set of pins; `nil` if the member is missing.
  func pins(_ member: String) throws(StateFault) -> Set<SPKIPin>? {
    guard object[member] != nil else { return nil }
    var pins: Set<SPKIPin> = []
    for text in try strings(member) {
      guard let pin = try? SPKIPin(base64: text) else { throw fault(member) }
      pins.insert(pin)
    }
    return pins
  }

  func strings(_ member: String) throws(StateFault) -> [String] {
    guard let list = object[member]?.arrayValue else { throw fault(member) }
    let strings = list.compactMap(\.stringValue)
    guard strings.count == list.count else { throw fault(member) }
    return strings
  }

  func patterns(_ member: String) throws(StateFault) -> [HostPattern] {
    var patterns: [HostPattern] = []
    for text in try strings(member) {
      guard let pattern = try? HostPattern(text) else { throw fault(member) }
      patterns.append(pattern)
    }
    return patterns
  }

  func members(_ member: String) throws(StateFault) -> [(String, JSONValue)] {
    guard let object = object[member]?.objectValue else { throw fault(member) }
    return object.map { ($0.0, $0.1) }
  }

  func list<Element>(
    _ member: String, _ read: (StateReader) throws(StateFault) -> Element
  ) throws(StateFault) -> [Element] {
    guard let value = object[member] else { throw fault(member) }
    return try Self.list(value, member, read)
  }

  static func list<Element>(
    _ value: JSONValue, _ name: String, _ read: (StateReader) throws(StateFault) -> Element
  ) throws(StateFault) -> [Element] {
    guard let list = value.arrayValue else { throw StateFault(member: name) }
    var elements: [Element] = []
    elements.reserveCapacity(list.count)
    for value in list { elements.append(try read(try StateReader(value, name))) }
    return elements
  }

  func fault(_ member: String) -> StateFault { StateFault(member: "\(name).\(member)") }
}

extension JSONValue {
  /// A whole number. Those beyond 2^53 do not occur; one that did would become 0.
  package static func integer(_ value: Int64) -> JSONValue {
    .number(JSONNumber(exactly: value) ?? 0)
  }

  fileprivate static func pins(_ pins: Set<SPKIPin>) -> JSONValue {
    .array(pins.sorted().map { .string($0.base64) })
  }
}
