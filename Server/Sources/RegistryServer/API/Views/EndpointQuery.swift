import CanonicalJSON
import RegistryCore

/// Which endpoints are asked for, of one document or of all, and how they are sorted.
struct EndpointQuery {
  /// What they are sorted by; without one they stand in the order configured.
  enum Order: String, Sendable, CaseIterable {
    case name
    /// The worst first.
    case health
    /// Those whose certificate ends next first.
    case expires
    /// Those that were probed last first.
    case probed
    /// Those with the most alerts first.
    case alerts
  }

  enum Direction: String, Sendable, CaseIterable {
    case forward
    case backward
  }

  static let names = ["q", "health", "sort", "direction"]

  /// In lower case.
  private let text: String
  private let health: EndpointHealth?
  private let order: Order?
  private let isBackward: Bool

  init(_ query: QueryReader) throws(APIError) {
    text = try query.text("q", atMost: 253)?.lowercased() ?? ""
    health = try query.choice("health", EndpointHealth.self)
    order = try query.choice("sort", Order.self)
    isBackward = try query.choice("direction", Direction.self) == .backward
  }

  /// The endpoints that are meant, sorted.
  func found(in documents: [DocumentView]) -> [EndpointView] {
    let found = documents.flatMap(\.endpoints).filter { endpoint in
      (text.isEmpty || endpoint.matches(text)) && (health == nil || endpoint.health == health)
    }
    guard let order else { return isBackward ? found.reversed() : found }
    // Found once for each, since sorting compares each many times.
    let sorted = found.map { ($0, Self.rank($0, order)) }.sorted { left, right in
      (left.1, left.0.id, left.0.document.file) < (right.1, right.0.id, right.0.document.file)
    }.map(\.0)
    return isBackward ? sorted.reversed() : sorted
  }

  private static func rank(_ endpoint: EndpointView, _ order: Order) -> Int64 {
    switch order {
    case .name: 0
    case .health: -Int64(EndpointHealth.allCases.firstIndex(of: endpoint.health) ?? 0)
    case .expires: endpoint.certificateExpires ?? .max
    case .probed: -(endpoint.document.lastProbes[endpoint.id]?.at ?? 0)
    case .alerts: -Int64(endpoint.document.state.alerts[endpoint.id]?.count ?? 0)
    }
  }
}

extension AdministrationRoutes {
  /// Endpoints of all documents.
  func searchEndpoints(_ call: APIRequest) async throws(APIError) -> APIResponse {
    let query = try call.query(["offset", "limit"] + EndpointQuery.names)
    let (range, endpoints) = (try query.page(), try EndpointQuery(query))
    let views = await administration.snapshots().map(DocumentView.init)
    return APIResponse(
      body: range.page(of: endpoints.found(in: views)) { endpoint in
        var json = endpoint.summary
        json["file"] = .string(endpoint.document.file)
        return .object(json)
      })
  }
}
