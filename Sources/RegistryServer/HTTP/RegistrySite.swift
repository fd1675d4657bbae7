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
/// - `/livez`: 200 while the process answers. `/readyz`: 200 or 503, with reasons.
struct RegistrySite: Sendable {
  let documents: PublishedDocuments
  let health: ServiceHealth
  let administration: AdministrationSite
  /// `nil` where there is no console.
  var console: ConsoleSite?

  private static let prefix = "/api/v1/"
  private static let noSuchPath = HTTPRefusal.response(
    404, "no such path", hint: "documents are at /api/v1/{file}")
  private static let noSuchDocument = HTTPRefusal.response(
    404, "no such document", hint: "the files of the configuration's keys are served")
  private static let alive = status(200, "ok", reasons: [])

  /// Every path but the administration's is read, and none is written.
  func rule(_ method: String, _ path: String) -> HTTPRouteRule {
    if AdministrationSite.has(path) { return administration.rule(method) }
    return method == "GET" ? .noBody : .methodNotAllowed(allow: ["GET", "HEAD"])
  }

  /// Answers a request that the rules let through.
  func answer(_ request: HTTPRequest) -> HTTPAnswer {
    if AdministrationSite.has(request.path) { return administration.answer(request) }
    let path = request.path
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
    case "/livez": return Self.alive
    case "/readyz":
      let (isReady, reasons) = health.readiness(of: documents)
      return Self.status(isReady ? 200 : 503, isReady ? "ready" : "not ready", reasons: reasons)
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

  private static func status(
    _ code: UInt32, _ status: String, reasons: [String]
  ) -> HTTPResponse {
    let body = JSONObject([
      ("status", .string(status)), ("reasons", .array(reasons.map { .string($0) })),
    ])
    return HTTPResponse(
      status: code, headers: JSONHeaders.uncached,
      body: JSONValue.object(body).canonicalBytes + [0x0a])
  }
}
