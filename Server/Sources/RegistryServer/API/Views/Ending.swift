import CanonicalJSON
import RegistryCore
import SslPinningRules

/// Something that ends, or has to be done by a time.
struct Ending {
  enum Kind: String, Sendable, CaseIterable {
    /// The certificate of a key in use.
    case certificate
    /// A published document, which is signed daily.
    case document
    case keySet = "key-set"
    /// A token that was used here and was made for a day or more.
    case token
    /// An announced key: it should be in use before the endpoint's certificate ends.
    case announced
    /// A key that is not shown any more leaves the list.
    case retiring
  }

  /// The document; empty for a token.
  let file: String
  /// The endpoint or, of a token, whose it is.
  var endpoint: String?
  let kind: Kind
  var pin: SPKIPin?
  /// In Unix seconds.
  let at: Int64

  var json: JSONValue {
    .object([
      "file": .string(file), "endpoint": .nullable(endpoint), "kind": .string(kind.rawValue),
      "pin": .nullable(pin), "at": .integer(at),
    ])
  }

  /// What is published of a document, and ends.
  static func expiries(of document: DocumentSnapshot) -> [Ending] {
    var endings: [Ending] = []
    for endpoint in document.endpoints {
      for key in document.state.keysByEndpoint[endpoint.id]?.keys ?? [] where key.state == .active {
        guard let end = key.certificateExpires else { continue }
        endings.append(
          Ending(
            file: document.file, endpoint: endpoint.id, kind: .certificate, pin: key.pin, at: end))
      }
    }
    guard let published = document.published else { return endings }
    endings.append(Ending(file: document.file, kind: .document, at: published.expires))
    if let end = published.keySetExpires {
      endings.append(Ending(file: document.file, kind: .keySet, at: end))
    }
    return endings
  }

  /// What else a person has to do, or see happen, by a time.
  static func deadlines(of document: DocumentSnapshot) -> [Ending] {
    document.endpoints.flatMap { endpoint -> [Ending] in
      let keys = document.state.keysByEndpoint[endpoint.id]?.keys ?? []
      let end = keys.filter { $0.state == .active }.compactMap(\.certificateExpires).min()
      return keys.compactMap { key in
        let at =
          switch key.state {
          case .staged: end
          case .retiring: key.missedSince.map { $0 + document.settings.rule.grace }
          default: Int64?.none
          }
        return at.map {
          Ending(
            file: document.file, endpoint: endpoint.id,
            kind: key.state == .staged ? .announced : .retiring, pin: key.pin, at: $0)
        }
      }
    }
  }
}

extension AdministrationRoutes {
  /// What ends when, of everything, the next first.
  func listEndings(_ call: APIRequest) async throws(APIError) -> APIResponse {
    let query = try call.query(["offset", "limit", "kind"])
    let (range, kind) = (try query.page(), try query.choice("kind", Ending.Kind.self))
    let documents = await administration.snapshots()
    var endings = documents.flatMap { Ending.expiries(of: $0) + Ending.deadlines(of: $0) }
    let now = administration.clock.now()
    for use in tokens.current.values {
      let administrator = use.administrator
      // Tools make tokens of a minute for themselves.
      guard administrator.expires > now, administrator.expires - administrator.issued >= 86_400
      else { continue }
      endings.append(
        Ending(file: "", endpoint: administrator.name, kind: .token, at: administrator.expires))
    }
    endings = endings.filter { kind == nil || $0.kind == kind }
    endings.sort {
      ($0.at, $0.kind.rawValue, $0.file, $0.endpoint ?? "")
        < ($1.at, $1.kind.rawValue, $1.file, $1.endpoint ?? "")
    }
    var body = range.page(of: endings, \.json)
    body["time"] = .integer(now)
    return APIResponse(body: body)
  }
}
