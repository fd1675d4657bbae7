import CanonicalJSON
import HTTPServing
import SslPinningPlatform

/// What each path answers.
///
/// - `/api/v1/{file}`: the finished document, or 304 where the client has it, 503 while it waits for
///   its first key, 404 where it is not configured. Files are names, looked up in a table: no path
///   ever reaches a file system.
/// - `/api/v1/{file}/statement?epoch=N` and `/api/v1/{file}/payload/{digest}`: parts of the document, for
///   who has the rest (``PublishedParts``). 404 where there is no such part: clients ask for the whole.
/// - `/api/v1/admin/…`: see ``AdministrationRouter``. Of a document that is named `admin` it hides the
///   parts alone.
/// - `/` and the files of the console: ``WebConsoleRoutes``.
/// - `/api/v1/reports`: see ``ReportRoutes``.
/// - `/metrics`, and `/livez`, `/readyz`, `/startupz`: 200 or 503, with reasons (``HealthFacts``), which
///   strangers are told in a word each and administrators in full. The reference server's
///   `/health/liveness`, `/health/readiness` and `/health/startup` are the same.
struct RegistryRoutes: Sendable {
  let documents: PublishedDocuments
  let health: ServiceHealth
  /// `nil` where it has a listener of its own (``ConsoleListenerRoutes``).
  let administration: AdministrationRouter?
  /// `nil` where there is no console.
  var console: WebConsoleRoutes?
  /// `nil` where reports are not collected.
  var reports: ReportRoutes?
  let metrics: MetricsRoute
  /// Whether `/metrics` is here; false where it has a listener of its own (``MetricsRoutes``).
  var hasMetrics = true

  private static let prefix = "/api/v1/"
  private static let noSuchPath = HTTPRefusal.response(
    404, "no such path", hint: "documents are at /api/v1/{file}")
  private static let noSuchDocument = HTTPRefusal.response(
    404, "no such document", hint: "the files of the configuration's keys are served")

  private static let storeAway = HTTPRefusal.response(
    503, "this server waits for its store", hint: "its log and /readyz say why",
    headers: [("Retry-After", "10")])
  private static let noSuchPart = HTTPRefusal.response(
    404, "no such part of the document", hint: "the whole document is at /api/v1/{file}")

  /// Every path but the administration's is read, and none is written.
  func rule(_ method: String, _ path: String) -> HTTPRouteRule {
    if AdministrationRouter.has(path) { return administration?.rule(method) ?? .notFound }
    if reports != nil, path == ReportRoutes.path {
      return method == "POST" ? ReportRoutes.rule : .methodNotAllowed(allow: ["POST"])
    }
    return method == "GET" ? .noBody : .methodNotAllowed(allow: ["GET", "HEAD"])
  }

  /// Which administrator's a request is: its body takes nothing from what strangers share.
  func trusted(_ path: String, _ headers: HTTPHeaders) -> String? {
    AdministrationRouter.has(path) ? administration?.trusted(headers) : nil
  }

  /// Counts an answer that went out, whoever gave it.
  func count(_ exchange: ServedRequest) {
    metrics.metrics.answered(
      kind(of: exchange.path), code: exchange.status, taking: exchange.duration)
  }

  private func kind(of path: String?) -> PathClass {
    guard let path else { return .other }
    if AdministrationRouter.has(path) { return .admin }
    switch path {
    case ReportRoutes.path: return .report
    case "/metrics": return .metrics
    case _ where HealthProbe(path: path) != nil: return .probe
    default: return path.utf8.starts(with: Self.prefix.utf8) ? .document : .console
    }
  }

  /// Answers a request that the rules let through.
  func answer(_ request: HTTPRequest) -> HTTPReply {
    if let administration, AdministrationRouter.has(request.path) {
      return administration.answer(request)
    }
    let path = request.path
    if let reports, path == ReportRoutes.path {
      // What was counted before is in the store, too.
      return health.awaitedStore == nil ? reports.answer(request) : .now(Self.storeAway)
    }
    if path == "/metrics", hasMetrics { return metrics.answer() }
    if path.utf8.starts(with: Self.prefix.utf8) {
      return .now(document(path.dropFirst(Self.prefix.count), request))
    }
    return .now(page(request))
  }

  private func page(_ request: HTTPRequest) -> HTTPResponse {
    guard let probe = HealthProbe(path: request.path) else {
      return console?.answer(
        path: request.path, ifNoneMatch: request.headers["If-None-Match"]) ?? Self.noSuchPath
    }
    let report = probe.report(health.facts(of: documents))
    return administration?.answer(probe, report, to: request)
      ?? probe.response(report.forStrangers, request)
  }

  /// Answers for a document or a part of one. Files are single components of a path, so what stands behind
  /// a slash is never a file's name.
  private func document(_ path: Substring, _ request: HTTPRequest) -> HTTPResponse {
    let components = path.split(separator: "/", omittingEmptySubsequences: false)
    switch components.first.map({ documents.page(String($0)) }) ?? nil {
    case nil: return Self.noSuchDocument
    case .waiting(let response): return health.awaitedStore == nil ? response : Self.storeAway
    case .document(let parts):
      guard let answer = Self.part(components.dropFirst(), of: parts, request) else {
        return Self.noSuchPart
      }
      return answer.response(
        ifNoneMatch: request.headers["If-None-Match"],
        acceptEncoding: request.headers["Accept-Encoding"])
    }
  }

  private static func part(
    _ path: ArraySlice<Substring>, of parts: PublishedParts, _ request: HTTPRequest
  ) -> CachedAnswer? {
    switch (path.count, path.first) {
    case (0, _): parts.whole
    case (1, "statement"): parts.statement(since: epoch(request.query("epoch")))
    case (2, "payload"): path.last.flatMap { parts.payload($0) }
    default: nil
    }
  }

  /// The newest key set that a client believes; 0, which leaves out none, where it says nothing readable.
  private static func epoch(_ text: String?) -> Int64 {
    guard let text, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return 0 }
    return Int64(text) ?? 0
  }
}

extension HTTPConfiguration {
  /// What the operator's time-outs mean for a server: the first counts for a request's header and
  /// again for its body. Where they are 0, the server's own limits remain: no client may hold a
  /// connection for ever.
  var limits: HTTPLimits {
    var limits = HTTPLimits()
    limits.header = readTimeout > 0 ? .milliseconds(readTimeout) : .seconds(30)
    limits.body = limits.header
    limits.answer = writeTimeout > 0 ? .milliseconds(writeTimeout) : .seconds(120)
    return limits
  }

  /// Whose word about their callers is believed.
  var proxies: TrustedProxies { TrustedProxies(networks: trustedProxies) }

  /// The certificate to show, read from its files; `nil` where none is configured.
  func listenerIdentity() throws(HTTPServerError) -> ListenerIdentity? {
    switch (certificate, privateKey) {
    case (nil, nil): return nil
    case (let certificate?, let key?):
      return try ListenerIdentity(certificateFile: certificate, keyFile: key)
    default: throw .certificate(reason: "only one of the two files is set")
    }
  }
}
