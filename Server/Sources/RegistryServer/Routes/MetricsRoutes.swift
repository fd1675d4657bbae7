import HTTPServing
import SslPinningPlatform

/// What the listener of `metrics.listen` answers: `/metrics`, and the probes in full. Whoever reaches it is
/// trusted with the names in them.
struct MetricsRoutes: Sendable {
  let documents: PublishedDocuments
  let health: ServiceHealth
  let metrics: MetricsRoute

  private static let noSuchPath = HTTPRefusal.response(
    404, "no such path", hint: "metrics and probes are here, documents are at server.listen")

  func rule(_ method: String, _ path: String) -> HTTPRouteRule {
    method == "GET" ? .noBody : .methodNotAllowed(allow: ["GET", "HEAD"])
  }

  func count(_ exchange: ServedRequest) {
    let isProbe = exchange.path.flatMap { HealthProbe(path: $0) } != nil
    let kind: PathClass = isProbe ? .probe : exchange.path == "/metrics" ? .metrics : .other
    metrics.metrics.answered(kind, code: exchange.status, taking: exchange.duration)
  }

  func answer(_ request: HTTPRequest) -> HTTPReply {
    if request.path == "/metrics" { return metrics.answer() }
    guard let probe = HealthProbe(path: request.path) else { return .now(Self.noSuchPath) }
    return .now(probe.response(probe.report(health.facts(of: documents)), request))
  }
}
