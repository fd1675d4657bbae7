import CanonicalJSON
import SslPinningRules

/// The server and all documents at a glance.
struct ServerOverview {
  let documents: [DocumentSnapshot]
  let version: String
  let clock: ClockStanding
  let isLeader: Bool
  let readiness: (isReady: Bool, reasons: [String])

  /// Something that ends.
  struct Expiry {
    enum Kind: String {
      case certificate
      case document
      case keySet = "key-set"
    }

    let file: String
    var endpoint: String?
    let kind: Kind
    var pin: SPKIPin?
    let at: Int64

    var json: JSONValue {
      .object([
        "file": .string(file), "endpoint": .nullable(endpoint), "kind": .string(kind.rawValue),
        "pin": .nullable(pin), "at": .integer(at),
      ])
    }
  }

  /// - Parameter limit: how many alerts and how many expiries are listed.
  func json(limit: Int) -> JSONObject {
    let views = documents.map(DocumentView.init)
    var alerts = views.flatMap { view in view.alerts.map { (view.document.file, $0) } }
    if let alert = clock.alert { alerts.append(("", alert)) }
    alerts.sort { $0.1.since < $1.1.since }
    let expiries = expiries
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
      "alertsTotal": .count(alerts.count),
      "alerts": .array(alerts.prefix(limit).map { $0.1.shown(in: $0.0) }),
      "expiriesTotal": .count(expiries.count),
      "expiries": .array(expiries.prefix(limit).map(\.json)),
    ]
  }

  /// What ends, the next first.
  var expiries: [Expiry] {
    var expiries: [Expiry] = []
    for document in documents {
      for endpoint in document.endpoints {
        let id = endpoint.id
        for key in document.state.keysByEndpoint[id]?.keys ?? [] where key.state == .active {
          guard let end = key.certificateExpires else { continue }
          expiries.append(
            Expiry(
              file: document.file, endpoint: id, kind: .certificate, pin: key.pin, at: end))
        }
      }
      guard let published = document.published else { continue }
      expiries.append(Expiry(file: document.file, kind: .document, at: published.expires))
      if let end = published.keySetExpires {
        expiries.append(Expiry(file: document.file, kind: .keySet, at: end))
      }
    }
    return expiries.sorted { $0.at < $1.at }
  }
}
