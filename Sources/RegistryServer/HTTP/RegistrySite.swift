import CanonicalJSON

/// What each path answers.
///
/// - `/api/v1/{file}`: the finished document, or 304 where the client has it, 503 while it waits for
///   its first key, 404 where it is not configured. Files are names, looked up in a table: no path
///   ever reaches a file system.
/// - `/api/v1/{file}/changes`: see ``ChangesPage``.
/// - `/api/v1/admin/…`: see ``AdministrationSite``. Of a document that is named `admin` it hides the
///   changes alone.
/// - `/` and the files of the console: ``ConsoleSite``.
/// - `/api/v1/reports`: see ``ReportsSite``.
/// - `/metrics`, and `/livez`, `/readyz`, `/startupz`: 200 or 503, with reasons (``HealthFacts``).
struct RegistrySite: Sendable {
  let documents: PublishedDocuments
  let health: ServiceHealth
  let administration: AdministrationSite
  /// `nil` where there is no console.
  var console: ConsoleSite?
  /// `nil` where reports are not collected.
  var reports: ReportsSite?
  let metrics: MetricsPage

  private static let prefix = "/api/v1/"
  private static let noSuchPath = HTTPRefusal.response(
    404, "no such path", hint: "documents are at /api/v1/{file}")
  private static let noSuchDocument = HTTPRefusal.response(
    404, "no such document", hint: "the files of the configuration's keys are served")

  /// Every path but the administration's is read, and none is written.
  func rule(_ method: String, _ path: String) -> HTTPRouteRule {
    if AdministrationSite.has(path) { return administration.rule(method) }
    if reports != nil, path == ReportsSite.path {
      return method == "POST" ? ReportsSite.rule : .methodNotAllowed(allow: ["POST"])
    }
    return method == "GET" ? .noBody : .methodNotAllowed(allow: ["GET", "HEAD"])
  }

  /// Counts an answer that went out, whoever gave it.
  func count(_ exchange: HTTPExchange) {
    metrics.metrics.answered(
      kind(of: exchange.path), code: exchange.status, taking: exchange.duration)
  }

  private func kind(of path: String?) -> PathClass {
    guard let path else { return .other }
    if AdministrationSite.has(path) { return .admin }
    switch path {
    case ReportsSite.path: return .report
    case "/metrics": return .metrics
    case "/livez", "/readyz", "/startupz": return .probe
    default: return path.utf8.starts(with: Self.prefix.utf8) ? .document : .console
    }
  }

  /// Answers a request that the rules let through.
  func answer(_ request: HTTPRequest) -> HTTPAnswer {
    if AdministrationSite.has(request.path) { return administration.answer(request) }
    let path = request.path
    if let reports, path == ReportsSite.path { return reports.answer(request) }
    if path == "/metrics" { return metrics.answer() }
    if path.utf8.starts(with: Self.prefix.utf8) {
      let name = path.dropFirst(Self.prefix.count)
      if let file = ChangesPage.file(of: name) {
        guard documents.page(file) != nil else { return .now(Self.noSuchDocument) }
        return ChangesPage(documents: documents).answer(file, since: request.query("since"))
      }
      return .now(document(String(name), request))
    }
    return .now(page(request))
  }

  private func page(_ request: HTTPRequest) -> HTTPResponse {
    switch request.path {
    case "/livez": return probe(health.facts(of: documents).liveness, request)
    case "/readyz": return probe(health.facts(of: documents).readiness, request)
    case "/startupz": return probe(health.facts(of: documents).startup, request)
    default:
      return console?.answer(
        path: request.path, ifNoneMatch: request.headers["If-None-Match"]) ?? Self.noSuchPath
    }
  }

  private func document(_ file: String, _ request: HTTPRequest) -> HTTPResponse {
    switch documents.page(file) {
    case nil: return Self.noSuchDocument
    case .waiting(let response): return response
    case .document(let document, let full, let unchanged):
      guard let condition = request.headers["If-None-Match"],
        EntityTag.matches(ifNoneMatch: condition, document.entityTag)
      else { return full }
      return unchanged
    }
  }

  private func probe(_ report: HealthReport, _ request: HTTPRequest) -> HTTPResponse {
    let (type, bytes) = report.body(accept: request.headers["Accept"])
    return HTTPResponse(
      status: report.code,
      headers: [
        ("Content-Type", type), ("Cache-Control", "no-store"),
        ("X-Content-Type-Options", "nosniff"),
      ], body: bytes)
  }
}
