import HTTPServing

/// What the listener of `ui.listen` answers: the administration, the console, and the probes, in full to who has a
/// token. The listener for everybody has neither then.
struct ConsoleListenerRoutes: Sendable {
  let documents: PublishedDocuments
  let health: ServiceHealth
  let administration: AdministrationRouter
  /// `nil` where there is no console.
  let console: WebConsoleRoutes?
  let metrics: ServerMetrics

  private static let noSuchPath = HTTPRefusal.response(
    404, "no such path", hint: "console and administration are here, documents at server.listen")

  func rule(_ method: String, _ path: String) -> HTTPRouteRule {
    if AdministrationRouter.has(path) { return administration.rule(method) }
    return method == "GET" ? .noBody : .methodNotAllowed(allow: ["GET", "HEAD"])
  }

  func trusted(_ path: String, _ headers: HTTPHeaders) -> String? {
    AdministrationRouter.has(path) ? administration.trusted(headers) : nil
  }

  func count(_ exchange: ServedRequest) {
    let path = exchange.path ?? ""
    let kind: PathClass =
      if AdministrationRouter.has(path) { .admin } else if HealthProbe(path: path) != nil {
        .probe
      } else if console?.answer(path: path, ifNoneMatch: nil) != nil { .console } else { .other }
    metrics.answered(kind, code: exchange.status, taking: exchange.duration)
  }

  func answer(_ request: HTTPRequest) -> HTTPReply {
    if AdministrationRouter.has(request.path) { return administration.answer(request) }
    if let probe = HealthProbe(path: request.path) {
      return .now(
        administration.answer(probe, probe.report(health.facts(of: documents)), to: request))
    }
    return .now(
      console?.answer(path: request.path, ifNoneMatch: request.headers["If-None-Match"])
        ?? Self.noSuchPath)
  }
}

extension AdministrationRouter {
  /// Answers a probe: in full to an administrator, in a word for each reason to strangers.
  func answer(
    _ probe: HealthProbe, _ report: HealthReport, to request: HTTPRequest
  ) -> HTTPResponse {
    switch reader(of: request) {
    case .administrator: probe.response(report, request)
    case .stranger: probe.response(report.forStrangers, request)
    case .refused(let response): response
    }
  }
}
