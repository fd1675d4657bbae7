import Foundation
import PinningPlatform

/// Runs all probes of one `TLSProbe` on one thread over poll(2).
///
/// - One thread is enough: a handshake costs it about a millisecond of arithmetic, and waiting
///   costs nothing. A hundred silent servers hold no thread at all.
/// - At most `limit` connections are open; further probes queue, and their deadlines run.
/// - Every job is completed exactly once, at the latest when its deadline has passed or the loop
///   stops.
final class ProbeLoop: Sendable {
  private enum Order {
    case begin(ProbeJob)
    case addresses(UInt64, Result<[Endpoint], NameResolver.Failure>)
    case stop
  }

  private let client: ProbeClient
  private let signal: EventSignal
  private let orders = Locked<[Order]>([])
  private let resolver: NameResolver
  private let threads = WorkerThreads()
  private static let limit = 512

  init(client: ProbeClient, resolver: NameResolver) throws(SocketError) {
    self.client = client
    self.resolver = resolver
    signal = try EventSignal()
    threads.start("TLS probe") { [self] in run() }
  }

  func begin(_ job: ProbeJob) { send(.begin(job)) }

  /// Makes the loop look at the jobs' cancellation flags.
  func wake() { signal.raise() }

  /// Ends the thread soon; jobs that are left end as cancelled.
  func stop() { send(.stop) }

  private func send(_ order: Order) {
    orders.withLock { $0.append(order) }
    signal.raise()
  }

  private func run() {
    var queue: [ProbeJob] = []
    var sessions: [UInt64: ProbeSession] = [:]
    while true {
      var mustStop = false
      for order in orders.withLock({ orders in
        defer { orders = [] }
        return orders
      }) {
        switch order {
        case .stop: mustStop = true
        case .begin(let job): queue.append(job)
        case .addresses(let id, let result):
          guard let session = sessions[id] else { continue }
          finish(session, start(session, result), &sessions)
        }
      }
      if mustStop {
        for job in queue { job.complete(.failure(.cancelled)) }
        for session in sessions.values { session.job.complete(.failure(.cancelled)) }
        return
      }
      admit(&queue, &sessions)
      wait(queue, &sessions)
    }
  }

  /// Lets jobs in while there is room, and ends those that wait in vain.
  private func admit(_ queue: inout [ProbeJob], _ sessions: inout [UInt64: ProbeSession]) {
    var waiting: [ProbeJob] = []
    for job in queue {
      if job.isCancelled.withLock({ $0 }) {
        job.complete(.failure(.cancelled))
      } else if job.deadline.hasPassed {
        job.complete(.failure(.timeout(.queue)))
      } else if sessions.count < Self.limit {
        let session = ProbeSession(job, client: client, signal: signal)
        sessions[job.id] = session
        finish(session, look(up: job, session), &sessions)
      } else {
        waiting.append(job)
      }
    }
    queue = waiting
  }

  private func look(
    up job: ProbeJob, _ session: ProbeSession
  ) -> Result<ProbeResult, ProbeError>? {
    let target = job.target
    let isAddress = NumericAddress.canonical(target.host) != nil
    let known =
      !target.connectTo.isEmpty
      ? target.connectTo : isAddress ? [Endpoint(address: target.host, port: target.port)] : []
    guard known.isEmpty else {
      return session.start(with: known)
    }
    resolver.resolve(target.host, port: target.port, until: job.deadline) { [self] result in
      send(.addresses(job.id, result))
    }
    return nil
  }

  private func start(
    _ session: ProbeSession, _ result: Result<[Endpoint], NameResolver.Failure>
  ) -> Result<ProbeResult, ProbeError>? {
    switch result {
    case .success(let addresses): session.start(with: addresses)
    case .failure(let failure):
      .failure(.dns(host: session.job.target.host, reason: failure.reason))
    }
  }

  /// Waits for sockets, orders and the nearest deadline, then pushes every session on.
  private func wait(_ queue: [ProbeJob], _ sessions: inout [UInt64: ProbeSession]) {
    let current = Array(sessions.values)
    var watched = [pollfd(fd: signal.descriptor, events: Int16(POLLIN), revents: 0)]
    // A negative descriptor is skipped by poll(2) and keeps the two arrays in step.
    watched += current.map { $0.watched ?? pollfd(fd: -1, events: 0, revents: 0) }
    let nearest = (current.map(\.wakeUp) + queue.map(\.deadline)).min()
    _ = poll(&watched, nfds_t(watched.count), nearest?.pollTimeout ?? -1)
    signal.lower()
    for (session, poll) in zip(current, watched.dropFirst()) {
      finish(session, session.advance(isReady: poll.revents != 0), &sessions)
    }
  }

  private func finish(
    _ session: ProbeSession, _ outcome: Result<ProbeResult, ProbeError>?,
    _ sessions: inout [UInt64: ProbeSession]
  ) {
    guard let outcome else { return }
    sessions[session.job.id] = nil
    session.job.complete(outcome)
  }
}
