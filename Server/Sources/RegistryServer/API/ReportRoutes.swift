import Foundation
import HTTPServing
import SslPinningPlatform

/// `POST /api/v1/reports`: where apps send what their pins refused.
///
/// Open to everybody, as apps have no secret to keep; so it is bounded: a body's size, how often an
/// address may report, and what is kept of it (``ReportLedger``).
struct ReportRoutes: Sendable {
  static let path = "/api/v1/reports"
  static let rule = HTTPRouteRule.body(limit: CollectedReport.mostBytes)

  private let collector: ReportCollector
  private let metrics: ServerMetrics?
  /// 60 at once and one a second from then on: an app that is attacked reports a host once an hour.
  private let limiter = Locked(RateLimiter(burst: 60, interval: 1000))
  /// The same for an address that a whole fleet may have.
  private let fleetLimiter = Locked(RateLimiter(burst: 6000, interval: 10))

  init(_ collector: ReportCollector, metrics: ServerMetrics? = nil) {
    self.collector = collector
    self.metrics = metrics
  }

  func answer(_ request: HTTPRequest) -> HTTPReply {
    let now = MonotonicReading.now()
    let milliseconds = Int64(now / .milliseconds(1))
    let limiter = request.isShared ? fleetLimiter : limiter
    if case .limited(let wait) = limiter.withLock({ $0.ask(request.peer, at: milliseconds) }) {
      metrics?.reported(.limited)
      return .now(
        HTTPRefusal.response(
          429, "too many reports from this address",
          headers: [("Retry-After", "\(max(1, (wait + 999) / 1000))")]))
    }
    return .later { [collector] in
      let answer = await collector.take(request.body)
      return HTTPResponse(status: answer.code, headers: JSONHeaders.uncached, body: answer.body)
    }
  }
}
