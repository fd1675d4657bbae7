import SslPinningPlatform

/// One thread that runs probes, over epoll(7).
///
/// - A handshake costs it about half a millisecond of arithmetic, and waiting costs nothing: hundreds
///   of silent servers hold no thread at all.
/// - At most `limit` connections are open, and a few more where a job has several; further jobs
///   queue, and their deadlines run.
/// - Every job is completed exactly once, at the latest when its deadline has passed or the loop
///   stops.
final class ProbeLoop: Sendable {
  enum Order: Sendable {
    case begin(ProbeRequest)
    case cancel(UInt64)
    case addresses(job: UInt64, route: Int, Result<[Endpoint], NameResolver.Failure>)
    case stop
  }

  private let client: ProbeClient
  private let events: ProbeEvents
  private let orders = Locked<[Order]>([])
  private let resolver: NameResolver
  private let proxies: ProxyDirectory
  private let threads = WorkerThreads()

  init(
    client: ProbeClient, resolver: NameResolver, proxies: ProxyDirectory
  ) throws(SocketError) {
    self.client = client
    self.resolver = resolver
    self.proxies = proxies
    events = try ProbeEvents()
    threads.start("TLS probe") { [self] in run() }
  }

  /// Gives the thread something to do. From any thread.
  func send(_ order: Order) {
    let isFirst = orders.withLock { orders in
      orders.append(order)
      return orders.count == 1
    }
    // Whoever put the first one in has woken it, or is about to.
    if isFirst { events.signal.raise() }
  }

  private func run() {
    let recall: ProbeScheduler.Recall = { [self] job, route in
      switch job.routes[route] {
      case .direct, .directInTurn: resolver.lastFound(job.host, port: job.port)
      case .tunnel(let host, let port, _): resolver.lastFound(host, port: port)
      }
    }
    let desk = ProbeScheduler(client: client, events: events, recall: recall) {
      [self] job, route, until in
      let answer: NameResolver.Answer = { [self] in
        send(.addresses(job: job.id, route: route, $0))
      }
      switch job.routes[route] {
      case .direct, .directInTurn:
        resolver.resolve(job.host, port: job.port, until: until, answer: answer)
      case .tunnel(let host, let port, _):
        proxies.find(host, port: port, until: until, answer: answer)
      }
    }
    while true {
      let taken = orders.withLock { orders in
        defer { orders = [] }
        return orders
      }
      for order in taken {
        switch order {
        case .begin(let job): desk.begin(job)
        case .cancel(let id): desk.cancel(id)
        case .addresses(let id, let route, let result): desk.dial(id, route, result)
        case .stop:
          desk.stop()
          return
        }
      }
      desk.admit()
      desk.tell()
      for token in events.wait(milliseconds: desk.pause) { desk.advance(token) }
      desk.expire()
    }
  }
}
