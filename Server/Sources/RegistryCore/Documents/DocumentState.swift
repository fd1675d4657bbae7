import CanonicalJSON
import SslPinningRules

/// All that is known of one document: what was seen, what people decided, and what is published.
///
/// A value. The coordinator stores it as a whole under compare and swap, and nothing of it is acknowledged or
/// published before that.
package struct DocumentState: Sendable, Equatable {
  /// A key that is refused wherever it stands.
  package struct Denial: Sendable, Equatable {
    package var pin: SPKIPin
    package var at: Int64
    package var by: String
    package var why: String
  }

  /// An endpoint that an administrator took out.
  package struct Tombstone: Sendable, Equatable {
    package var at: Int64
    package var by: String
    package var why: String
  }

  /// What an administrator changed about an endpoint, over its configuration.
  package struct Override: Sendable, Equatable {
    var interval: Int64?
    var approval: ApprovalMode?
    var terms: HostTerms?
    package var isPaused = false

    var isEmpty: Bool { self == Override() }
  }

  /// By the endpoints' ids.
  package var keysByEndpoint: [String: EndpointKeys] = [:]
  /// Endpoints that administrators added, in the order in which they did.
  var added: [WatchedEndpoint] = []
  /// By the endpoints' ids.
  package var overrides: [String: Override] = [:]
  /// By the endpoints' ids.
  package var tombstones: [String: Tombstone] = [:]
  /// In the order in which they were first made.
  package var denied: [Denial] = []
  /// Keys that people denied and then allowed again, and when they did, in Unix seconds: a denial of before that
  /// another document still has is over.
  package var allowed: [SPKIPin: Int64] = [:]
  /// Hosts that clients may forget.
  package var removed: [HostPattern] = []
  /// What is left of endpoints that the configuration has no more, one for each pattern: in force, and not probed.
  package var orphans: [WatchedEndpoint] = []
  /// The other endpoints that were in force when this was written: the next configuration is compared with them.
  package internal(set) var watched: [WatchedEndpoint] = []
  /// What lasts, by the endpoints' ids; under the empty one, what is about the whole document.
  package var alerts: [String: [ServerAlert]] = [:]
  /// The signed document; empty before the first.
  package var document: [UInt8] = []
  /// When it was signed, in Unix seconds.
  package var signed: Int64 = 0
  /// The number of its statement; `nil` before the first.
  package var number: RegistryStamp.Version?
  /// The number of the copy from which this began, if the record before was lost.
  package var beganFrom: RegistryStamp.Version?

  /// Nothing is known.
  package init() {}
  /// How often the store had gone back when this was written (``RecordAge``).
  package var returns: Int64 = 0

  /// The endpoints that are watched: those configured and those added, without those taken out.
  package func endpoints(configured: [WatchedEndpoint]) -> [WatchedEndpoint] {
    let ids = Set(configured.map(\.id))
    return (configured + added.filter { !ids.contains($0.id) })
      .filter { tombstones[$0.id] == nil }
      .map { endpoint in
        guard let override = overrides[endpoint.id] else { return endpoint }
        var changed = endpoint
        changed.interval = override.interval ?? endpoint.interval
        changed.approval = override.approval ?? endpoint.approval
        changed.overruled = override.terms.map { _ in endpoint.terms }
        changed.terms = override.terms ?? endpoint.terms
        return changed
      }
  }

  /// Whether nobody probes an endpoint for now.
  package func isPaused(_ id: String) -> Bool { overrides[id]?.isPaused ?? false }

  /// Whether any key is known that can be published.
  var hasKeys: Bool { keysByEndpoint.values.contains { !$0.keys.isEmpty } }

  /// Whether there is an alert of this kind about the whole document.
  package func hasAlert(_ kind: ServerAlert.Kind) -> Bool {
    alerts[""]?.contains { $0.kind == kind } == true
  }

  /// The denied keys.
  package var deniedPins: Set<SPKIPin> { Set(denied.map(\.pin)) }

  /// Begins or renews an alert. What lasts keeps its beginning; a moment that comes again begins anew.
  /// - Returns: whether it is new.
  @discardableResult
  package mutating func raise(_ alert: ServerAlert) -> Bool {
    let index = alerts[alert.endpoint]?.firstIndex { $0.kind == alert.kind && $0.pin == alert.pin }
    guard let index else {
      alerts[alert.endpoint, default: []].append(alert)
      return true
    }
    alerts[alert.endpoint]?[index].renew(alert)
    return false
  }

  /// Ends alerts about an endpoint.
  mutating func settle(_ endpoint: String, where isOver: (ServerAlert) -> Bool) {
    guard var list = alerts[endpoint] else { return }
    list.removeAll(where: isOver)
    alerts[endpoint] = list.isEmpty ? nil : list
  }

  /// Ends what is said while the store is not believed.
  mutating func settleSeal() {
    for kind in [ServerAlert.Kind.otherSigningKey, .sealBroken] { settle(kind, "") }
  }

  /// Ends an alert about an endpoint; `pin` narrows it down.
  package mutating func settle(_ kind: ServerAlert.Kind, _ endpoint: String, pin: SPKIPin? = nil) {
    settle(endpoint) { $0.kind == kind && (pin == nil || $0.pin == pin) }
  }
}

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
    json["terms"] = terms?.json
    return .object(json)
  }

  init(_ reader: StateReader) throws(StateFault) {
    terms = try HostTerms(in: reader)
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
    if !terms.isStandard { json["terms"] = terms.json }
    return .object(json)
  }

  init(_ reader: StateReader) throws(StateFault) {
    guard let fqdn = try? HostName(try reader.string("fqdn")),
      let port = UInt16(exactly: try reader.integer("port")), port > 0
    else { throw reader.fault("fqdn") }
    var address: IPAddress?
    if let text = reader.object["address"]?.stringValue {
      guard case .address(let value)? = try? HostName(text) else { throw reader.fault("address") }
      address = value
    }
    self.init(
      fqdn: fqdn, port: port, address: address,
      patterns: try reader.patterns("patterns"),
      interval: reader.object["interval"]?.integerValue,
      approval: reader.object["approval"]?.stringValue.flatMap(ApprovalMode.init(rawValue:)),
      terms: try HostTerms(in: reader) ?? .standard)
  }
}
