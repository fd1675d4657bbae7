import HTTPServing
import RegistryCore
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

/// `/metrics`, in Prometheus' text format.
///
/// - A page of thousands of endpoints costs tens of milliseconds, and anybody may ask: so it is made once a
///   second, and whoever asks meanwhile gets the same one.
/// - It is megabytes large, and whoever does not read keeps it for as long as an answer may take. So no more
///   than ``mostPages`` are in memory: until one is let go, the newest is given out again.
struct MetricsRoute: Sendable {
  let metrics: ServerMetrics
  private let coordinators: @Sendable () -> [DocumentCoordinator]
  private let clock: SteadyClock
  private let health: ServiceHealth
  private let ticks: @Sendable () -> Int64
  private let reports: (any ReportsSource)?
  private let tokens: SeenTokens?
  private let pages = Locked(Pages())

  /// The most pages in memory, those that are still being sent included. With the default time-outs, and if
  /// scraped every second, there are six.
  static let mostPages = 8

  private struct Pages: Sendable {
    var newest: (made: Int64, page: Task<HTTPResponse, Never>)?
    var isMaking = false
    var sent: [Sent] = []
  }

  /// A page that somebody may still be reading.
  private struct Sent: @unchecked Sendable {
    /// Unchecked: a weak reference may be read from any thread.
    weak var bytes: SharedBody?
  }

  /// - Parameter ticks: milliseconds of a clock that is never set.
  init(
    metrics: ServerMetrics, coordinators: @escaping @Sendable () -> [DocumentCoordinator],
    clock: SteadyClock, health: ServiceHealth, reports: (any ReportsSource)? = nil,
    tokens: SeenTokens? = nil,
    ticks: @escaping @Sendable () -> Int64 = MonotonicReading.milliseconds
  ) {
    (self.metrics, self.coordinators, self.clock, self.ticks) = (
      metrics, coordinators, clock, ticks
    )
    self.health = health
    self.reports = reports
    self.tokens = tokens
  }

  func answer() -> HTTPReply { .later { await page().value } }

  private func page() -> Task<HTTPResponse, Never> {
    let now = ticks()
    return pages.withLock { pages in
      pages.sent.removeAll { $0.bytes == nil }
      if let newest = pages.newest,
        now - newest.made < 1000 || pages.isMaking || pages.sent.count >= Self.mostPages
      {
        return newest.page
      }
      pages.isMaking = true
      let page = Task {
        let response = HTTPResponse(
          status: 200,
          headers: [("Content-Type", ExpositionWriter.contentType), ("Cache-Control", "no-store")],
          body: await make())
        self.pages.withLock { pages in
          pages.isMaking = false
          pages.sent.append(Sent(bytes: response.bytes))
        }
        return response
      }
      pages.newest = (now, page)
      return page
    }
  }

  private func make() async -> [UInt8] {
    var alerts: [String: Int] = [:]
    var refusing: [String: Int] = [:]
    let copies = health.unwrittenCopies
    var (held, conditions) = (0, copies)
    if let mark = health.unwrittenMark { conditions.append(mark) }
    for coordinator in coordinators() {
      let standing = await coordinator.standing
      conditions += standing.conditions
      held += standing.held
    }
    for condition in conditions.withOneMassChange {
      alerts[condition.kind.name, default: 0] += 1
      if condition.isRefusing { refusing[condition.kind.name, default: 0] += 1 }
    }
    let standing = clock.standing
    if standing.doubtedSince != nil { alerts[ServerAlert.Kind.clock.rawValue] = 1 }
    if let end = health.listenerEnd { alerts[end.kind.name] = 1 }
    if let absence = health.leaderAbsence { alerts[absence.kind.name] = 1 }
    for (_, alert) in health.leftDocuments(at: standing.time) {
      alerts[alert.kind.rawValue, default: 0] += 1
    }
    metrics.clock(standing)
    metrics.alerts(alerts, refusing: refusing)
    metrics.service.unwritten(copies)
    metrics.pendingApprovals(held)
    if let picture = await reports?.picture() { metrics.service.reports(picture.reports) }
    metrics.service.tokens(endAt: tokens?.nextEnd(at: standing.time))
    return metrics.exposition(at: standing.time)
  }
}
