import CanonicalJSON
import RegistryCore
import SslPinningRules

/// One endpoint as administrators see it.
struct EndpointView {
  let endpoint: WatchedEndpoint
  let document: DocumentSnapshot
  /// Whether the configuration names it.
  let isConfigured: Bool
  let id: String

  init(_ endpoint: WatchedEndpoint, in document: DocumentSnapshot, isConfigured: Bool) {
    self.endpoint = endpoint
    self.document = document
    self.isConfigured = isConfigured
    id = endpoint.id
  }

  private var endpointKeys: EndpointKeys { document.state.keysByEndpoint[id] ?? EndpointKeys() }
  private var alerts: [ServerAlert] { document.state.alerts[id] ?? [] }
  private var isPaused: Bool { document.state.isPaused(id) }

  var health: EndpointHealth {
    EndpointHealth(
      alerts: alerts, hasKeys: !endpointKeys.keys.isEmpty, isPaused: isPaused,
      showsHeldKey: alerts.contains {
        [.keyHeld, .caMissing].contains($0.kind)
          && Condition.isRefusing($0, document.state)
          && !document.state.isVouched(for: $0, by: document.endpoints.vouchingTerms[endpoint.id])
      })
  }

  /// When the certificate of a key in use ends, the next one.
  var certificateExpires: Int64? {
    endpointKeys.keys.filter { $0.state == .active }.compactMap(\.certificateExpires).min()
  }

  /// Whether its id or one of its patterns contains a text in lower case.
  func matches(_ text: String) -> Bool {
    id.lowercased().contains(text)
      || endpoint.patterns.contains { $0.description.lowercased().contains(text) }
  }

  /// A line of a list.
  var summary: JSONObject {
    let endpointKeys = endpointKeys
    let counts = KeyCounts(endpointKeys)
    return [
      "id": .string(id), "fqdn": .string(endpoint.fqdn.description),
      "port": .integer(Int64(endpoint.port)),
      "address": .nullable(endpoint.address?.description),
      "patterns": .texts(endpoint.patterns.map(\.description)),
      "interval": .string(
        GoDuration.text(milliseconds: endpoint.interval ?? document.settings.interval)),
      "approval": .string((endpoint.approval ?? document.settings.approval).rawValue),
      "paused": .bool(isPaused), "source": .string(isConfigured ? "configured" : "added"),
      "health": .string(health.rawValue), "worstKeyState": .nullable(counts.worst?.rawValue),
      "counts": counts.json, "alerts": .count(alerts.count),
      "certificateExpires": .nullable(certificateExpires),
      "lastProbe": document.lastProbes[id]?.summary ?? .null,
    ]
  }

  /// The whole story.
  ///
  /// - Parameter picture: how many apps meet which key.
  func detail(_ picture: ReportPicture) -> JSONObject {
    let endpointKeys = endpointKeys
    let names = document.names(of: endpointKeys)
    let denied = document.state.deniedPins
    let candidates = endpointKeys.candidates.values.sorted {
      ($0.firstSeen, $0.chain.leaf.pin) < ($1.firstSeen, $1.chain.leaf.pin)
    }
    var json = summary
    json["terms"] = endpoint.terms.shown
    json["keys"] = .array(
      endpointKeys.keys.map {
        $0.shown(
          grace: document.settings.rule.grace, isDenied: denied.contains($0.pin), names: names)
      })
    json["candidates"] = .array(
      candidates.map {
        $0.shown(met: picture.meeting($0.chain.leaf.pin, endpoint.patterns))
      })
    json["probe"] = document.lastProbes[id]?.shown ?? .null
    json["alertList"] = .array(alerts.map { $0.shown(in: document.file) })
    return json
  }
}

extension ServerAlert {
  /// As administrators see it.
  func shown(in file: String) -> JSONValue {
    .object([
      "file": .string(file), "kind": .string(kind.rawValue),
      "endpoint": .nullable(endpoint.isEmpty ? nil : endpoint), "pin": .nullable(pin),
      "message": .string(message), "since": .integer(since),
    ])
  }
}

/// The worst that can be said of an endpoint.
enum EndpointHealth: String, Sendable, CaseIterable {
  /// All is well.
  case ok
  /// Nobody probes it for now.
  case paused
  /// It has no published key yet.
  case pending
  /// A key is held, or the endpoint left the configuration.
  case attention
  /// It could not be asked three times in a row, or what it shows proves nothing.
  case failing
  /// It shows a key that is held, or a path without a CA that apps ask for: they are refused.
  case refusing
  /// It shows a denied key.
  case alarm

  init(alerts: [ServerAlert], hasKeys: Bool, isPaused: Bool, showsHeldKey: Bool) {
    let kinds = Set(alerts.map(\.kind))
    if kinds.contains(.deniedKeySeen) {
      self = .alarm
    } else if showsHeldKey {
      self = .refusing
    } else if !kinds.isDisjoint(with: [.chainRefused, .unreachable, .signing, .storing]) {
      self = .failing
    } else if !kinds.isEmpty {
      self = .attention
    } else {
      self = hasKeys ? (isPaused ? .paused : .ok) : .pending
    }
  }
}

/// How many keys of one or many endpoints are in each state.
struct KeyCounts: Sendable, Equatable {
  private var counts: [KeyState: Int] = [:]

  init() {}

  init(_ endpointKeys: EndpointKeys) {
    for key in endpointKeys.keys { counts[key.state, default: 0] += 1 }
    for candidate in endpointKeys.candidates.values { counts[candidate.state, default: 0] += 1 }
  }

  subscript(state: KeyState) -> Int { counts[state, default: 0] }

  mutating func add(_ other: KeyCounts) { counts.merge(other.counts, uniquingKeysWith: +) }

  /// The state that asks for a probe first, of those that there are.
  var worst: KeyState? {
    [.held, .observed, .retiring, .staged, .active].first { self[$0] > 0 }
  }

  var json: JSONValue {
    .object(JSONObject(KeyState.allCases.map { ($0.rawValue, .count(self[$0])) }))
  }
}

extension CandidateKey {
  /// Where the key stands.
  var state: KeyState { isHeld ? .held : .observed }
}

extension JSONValue {
  /// A number of things.
  static func count(_ number: Int) -> JSONValue { .integer(Int64(number)) }

  /// A number, or null.
  static func nullable(_ number: Int64?) -> JSONValue { number.map { .integer($0) } ?? .null }

  /// A text, or null.
  static func nullable(_ text: String?) -> JSONValue { text.map { .string($0) } ?? .null }

  /// A pin, or null.
  static func nullable(_ pin: SPKIPin?) -> JSONValue { nullable(pin?.base64) }

  /// A list of texts.
  static func texts(_ texts: some Sequence<String>) -> JSONValue {
    .array(texts.map { .string($0) })
  }
}
