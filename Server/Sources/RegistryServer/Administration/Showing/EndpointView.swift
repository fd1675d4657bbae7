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
    EndpointHealth(alerts: alerts, hasKeys: !endpointKeys.keys.isEmpty, isPaused: isPaused)
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
    let expiry = endpointKeys.keys.filter { $0.state == .active }.compactMap(\.certificateExpires).min()
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
      "certificateExpires": .nullable(expiry),
      "lastProbe": document.lastProbes[id]?.summary ?? .null,
    ]
  }

  /// The whole story.
  var detail: JSONObject {
    let endpointKeys = endpointKeys
    let denied = document.state.deniedPins
    let candidates = endpointKeys.candidates.values.sorted {
      ($0.firstSeen, $0.chain.leaf.pin) < ($1.firstSeen, $1.chain.leaf.pin)
    }
    var json = summary
    json["keys"] = .array(
      endpointKeys.keys.map {
        $0.shown(grace: document.settings.rule.grace, isDenied: denied.contains($0.pin))
      })
    json["candidates"] = .array(candidates.map(\.shown))
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
