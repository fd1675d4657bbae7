import CanonicalJSON
import SslPinningRules

extension DocumentState.Denial {
  var json: JSONValue {
    .object([
      "pin": .string(pin.base64), "at": .integer(at), "by": .string(by), "why": .string(why),
    ])
  }

  init(_ reader: StateReader) throws(StateFault) {
    self.init(
      pin: try reader.pin("pin"), at: try reader.integer("at"), by: try reader.string("by"),
      why: try reader.string("why"))
  }
}

extension DocumentState.Tombstone {
  var json: JSONValue {
    .object(["at": .integer(at), "by": .string(by), "why": .string(why)])
  }

  init(_ reader: StateReader) throws(StateFault) {
    self.init(
      at: try reader.integer("at"), by: try reader.string("by"), why: try reader.string("why"))
  }
}

extension DocumentState.Override {
  var json: JSONValue {
    var json: JSONObject = [:]
    if let interval { json["interval"] = .integer(interval) }
    if let approval { json["approval"] = .string(approval.rawValue) }
    if isPaused { json["paused"] = .bool(true) }
    return .object(json)
  }

  init(_ reader: StateReader) {
    interval = reader.object["interval"]?.integerValue
    approval = reader.object["approval"]?.stringValue.flatMap(ApprovalMode.init(rawValue:))
    isPaused = reader.object["paused"] == .bool(true)
  }
}

extension ServerAlert {
  /// Its part of a record, and how it is shown.
  var json: JSONValue {
    var json: JSONObject = [
      "kind": .string(kind.rawValue), "endpoint": .string(endpoint), "message": .string(message),
      "since": .integer(since),
    ]
    if let pin { json["pin"] = .string(pin.base64) }
    return .object(json)
  }

  init(_ reader: StateReader) throws(StateFault) {
    guard let kind = Kind(rawValue: try reader.string("kind")) else { throw reader.fault("kind") }
    self.init(
      kind: kind, endpoint: try reader.string("endpoint"),
      pin: reader.object["pin"] == nil ? nil : try reader.pin("pin"),
      message: try reader.string("message"), since: try reader.integer("since"))
  }
}

extension WatchedEndpoint {
  /// Its part of a record, and how it is shown.
  var json: JSONValue {
    var json: JSONObject = [
      "fqdn": .string(fqdn.description), "port": .integer(Int64(port)),
      "patterns": .array(patterns.map { .string($0.description) }),
    ]
    if let address { json["address"] = .string(address.description) }
    if let interval { json["interval"] = .integer(interval) }
    if let approval { json["approval"] = .string(approval.rawValue) }
    return .object(json)
  }

  init(_ reader: StateReader) throws(StateFault) {
    guard let fqdn = try? HostName(try reader.string("fqdn")),
      let port = UInt16(exactly: try reader.integer("port")), port > 0
    else { throw reader.fault("fqdn") }
    var patterns: [HostPattern] = []
    for text in try reader.strings("patterns") {
      guard let pattern = try? HostPattern(text) else { throw reader.fault("patterns") }
      patterns.append(pattern)
    }
    var address: IPAddress?
    if let text = reader.object["address"]?.stringValue {
      guard case .address(let value)? = try? HostName(text) else { throw reader.fault("address") }
      address = value
    }
    self.init(
      fqdn: fqdn, port: port, address: address, patterns: patterns,
      interval: reader.object["interval"]?.integerValue,
      approval: reader.object["approval"]?.stringValue.flatMap(ApprovalMode.init(rawValue:)))
  }
}
