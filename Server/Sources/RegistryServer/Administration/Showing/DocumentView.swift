import CanonicalJSON
import RegistryCore
import SslPinningRules

/// One document as administrators see it.
struct DocumentView {
  let document: DocumentSnapshot

  init(_ document: DocumentSnapshot) { self.document = document }

  /// The endpoints in force, in their order.
  var endpoints: [EndpointView] {
    let configured = Set(document.settings.configuration.endpoints.map(\.id))
    return document.endpoints.map {
      EndpointView($0, in: document, isConfigured: configured.contains($0.id))
    }
  }

  /// An endpoint in force.
  func endpoint(_ id: String) -> EndpointView? {
    guard let endpoint = document.endpoints.first(where: { $0.id == id }) else { return nil }
    let isConfigured = document.settings.configuration.endpoints.contains { $0.id == id }
    return EndpointView(endpoint, in: document, isConfigured: isConfigured)
  }

  /// All alerts of the document.
  var alerts: [ServerAlert] {
    document.state.alerts.sorted { $0.key < $1.key }.flatMap(\.value)
  }

  /// A line of a list.
  var summary: JSONObject {
    var counts = KeyCounts()
    for endpoint in document.endpoints {
      if let endpointKeys = document.state.keysByEndpoint[endpoint.id] { counts.add(KeyCounts(endpointKeys)) }
    }
    return [
      "file": .string(document.file), "published": document.published?.shown ?? .null,
      "endpoints": .count(document.endpoints.count), "counts": counts.json,
      "alerts": .count(document.state.alerts.values.reduce(0) { $0 + $1.count }),
    ]
  }

  /// The document and a part of its endpoints.
  ///
  /// - Parameters:
  ///   - text: only endpoints that contain it.
  ///   - health: only endpoints of this health.
  func detail(_ range: PageRange, text: String?, health: EndpointHealth?) -> JSONObject {
    let text = text?.lowercased() ?? ""
    let endpoints = endpoints.filter { endpoint in
      (text.isEmpty || endpoint.matches(text)) && (health == nil || endpoint.health == health)
    }
    let inForce = Set(document.endpoints.map(\.id))
    let settings = document.settings
    var json = summary
    json["defaults"] = .object([
      "interval": .string(GoDuration.text(milliseconds: settings.interval)),
      "approval": .string(settings.approval.rawValue), "probes": .count(settings.rule.probes),
      "grace": .integer(settings.rule.grace),
    ])
    json["vantages"] = .texts(settings.vantages.sorted())
    json["alertsAboutDocument"] = .array(
      alerts.filter { !inForce.contains($0.endpoint) }.map { $0.shown(in: document.file) })
    json["page"] = .object(range.page(of: endpoints) { .object($0.summary) })
    return json
  }
}

extension PublishedDocument {
  /// As administrators see it.
  fileprivate var shown: JSONValue {
    .object([
      "etag": .string(entityTag), "epoch": .nullable(number?.epoch),
      "version": .nullable(number?.version), "signed": .integer(signed),
      "expires": .integer(expires), "entries": .count(keyCount), "bytes": .count(bytes.count),
      "keySets": .integer(keySetEpoch),
    ])
  }
}
