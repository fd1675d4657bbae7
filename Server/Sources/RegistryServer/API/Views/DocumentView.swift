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
      if let endpointKeys = document.state.keysByEndpoint[endpoint.id] {
        counts.add(KeyCounts(endpointKeys))
      }
    }
    return [
      "file": .string(document.file), "published": document.published?.shown ?? .null,
      "endpoints": .count(document.endpoints.count), "counts": counts.json,
      "alerts": .count(document.state.alerts.values.reduce(0) { $0 + $1.count }),
    ]
  }

  /// The document and a part of its endpoints.
  func detail(_ range: PageRange, _ query: EndpointQuery) -> JSONObject {
    let endpoints = query.found(in: [self])
    let inForce = Set(document.endpoints.map(\.id))
    let settings = document.settings
    var json = summary
    json["defaults"] = .object([
      "interval": .string(GoDuration.text(milliseconds: settings.interval)),
      "approval": .string(settings.approval.rawValue),
      "confirmations": .count(settings.rule.probes),
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

/// The server and all documents at a glance.
struct ServerOverview {
  let documents: [DocumentSnapshot]
  let version: String
  let clock: ClockStanding
  let isLeader: Bool
  let readiness: (isReady: Bool, reasons: [String])
  /// That nobody leads, as far as this server sees.
  var leaderAbsence: Condition?
  var awaitedStore: ServiceHealth.AwaitedStore?
  /// The vantage points that do not answer.
  var silences: [String: VantageMetrics.Silence] = [:]
  /// The documents that are configured no more.
  var left: [ServerAlert] = []
  /// The copies, and the mark, that could not be written.
  var copies: [Condition] = []
  /// That the listener's certificate ends soon.
  var listenerEnd: Condition?

  /// - Parameter limit: how many alerts and how many expiries are listed.
  func json(limit: Int) -> JSONObject {
    let views = documents.map(DocumentView.init)
    var alerts = self.alerts(of: views)
    if let alert = clock.alert { alerts.append(("", alert)) }
    if let absence = leaderAbsence {
      alerts.append(
        ("", ServerAlert(kind: .nobodyLeads, message: absence.message, since: absence.since)))
    }
    if let store = awaitedStore {
      let message = "the store has not answered since the start: \(store.reason)"
      alerts.append(("", ServerAlert(kind: .storing, message: message, since: store.since)))
    }
    for (vantage, silence) in silences {
      let message = "the vantage point \(vantage) \(silence.message)"
      alerts.append(
        ("", ServerAlert(kind: .vantageSilent, message: message, since: silence.since)))
    }
    alerts += left.map { ("", $0) }
    alerts += copies.map {
      ($0.file, ServerAlert(kind: .storing, message: $0.message, since: $0.since))
    }
    if let end = listenerEnd {
      alerts.append(
        ("", ServerAlert(kind: .listenerCertificateEnds, message: end.message, since: end.since)))
    }
    alerts.sort { $0.1.since < $1.1.since }
    let expiries = expiries
    let refusing = refusing
    return [
      "version": .string(version), "time": .integer(clock.time), "leader": .bool(isLeader),
      "readiness": .object([
        "ready": .bool(readiness.isReady), "reasons": .texts(readiness.reasons),
      ]),
      "clock": .object([
        "believed": .bool(clock.doubtedSince == nil), "wall": .integer(clock.wall),
        "synchronized": .bool(clock.isSynchronized),
      ]),
      "documents": .array(views.map { .object($0.summary) }),
      "refusing": .object([
        "total": .count(refusing.count), "since": .nullable(refusing.first?.since),
        "endpoints": .array(
          refusing.dealt(by: \.kind).prefix(limit).map { condition in
            .object([
              "file": .string(condition.file), "endpoint": .string(condition.subject),
              "kind": .string(condition.kind.name), "pin": .nullable(condition.pin),
              "since": .integer(condition.since), "message": .string(condition.message),
            ])
          }),
      ]),
      "alertsTotal": .count(alerts.count),
      "alerts": .array(alerts.dealt(by: \.1.kind).prefix(limit).map { $0.1.shown(in: $0.0) }),
      "expiriesTotal": .count(expiries.count),
      "expiries": .array(expiries.prefix(limit).map(\.json)),
    ]
  }

  /// The documents' alerts, each after its file; one of several documents after none.
  private func alerts(of views: [DocumentView]) -> [(String, ServerAlert)] {
    typealias Listed = (file: String, alert: ServerAlert, part: MassChangeReport.Part?)
    let all = views.flatMap { view in
      let (file, state) = (view.document.file, view.document.state)
      return view.alerts.map { Listed(file, $0, state.part(of: $0, in: file)) }
    }
    return all.joiningMassChanges {
      $0.part
    } as: { alert, _ in
      ("", alert, nil)
    }.map { ($0.file, $0.alert) }
  }

  /// Where pinned apps are refused now, and by what, the oldest first.
  private var refusing: [Condition] {
    documents.flatMap { document in
      document.alertConditions.filter(\.isRefusing)
    }.sorted { ($0.since, $0.file, $0.subject) < ($1.since, $1.file, $1.subject) }
  }

  /// What ends and is published, the next first.
  var expiries: [Ending] {
    documents.flatMap { Ending.expiries(of: $0) }.sorted { $0.at < $1.at }
  }
}

extension Array {
  /// The first of each kind, then the second of each, and so on: where a list is cut off, no kind hides another.
  fileprivate func dealt<Kind: Hashable>(by kind: (Element) -> Kind) -> [Element] {
    var counts: [Kind: Int] = [:]
    let turns = map { element in
      counts[kind(element), default: 0] += 1
      return counts[kind(element), default: 0]
    }
    return zip(turns, indices).sorted { $0 < $1 }.map { self[$0.1] }
  }
}
