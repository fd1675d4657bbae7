import HTTPServing

/// A question about the server's health, and the paths that ask it: those that are usual, and the reference
/// server's.
enum HealthProbe {
  case liveness
  case readiness
  case startup

  /// The probe at a path.
  init?(path: String) {
    switch path {
    case "/livez", "/health/liveness": self = .liveness
    case "/readyz", "/health/readiness": self = .readiness
    case "/startupz", "/health/startup": self = .startup
    default: return nil
    }
  }

  func report(_ facts: HealthFacts) -> HealthReport {
    switch self {
    case .liveness: facts.liveness
    case .readiness: facts.readiness
    case .startup: facts.startup
    }
  }

  func response(_ report: HealthReport, _ request: HTTPRequest) -> HTTPResponse {
    let (type, bytes) = report.body(accept: request.headers["Accept"])
    return HTTPResponse(
      status: report.code,
      headers: [
        ("Content-Type", type), ("Cache-Control", "no-store"),
        ("X-Content-Type-Options", "nosniff"),
      ], body: bytes)
  }
}
