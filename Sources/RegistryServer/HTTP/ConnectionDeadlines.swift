import Foundation
import PinningPlatform

/// The open connections of a server, each with the moment at which it is cut.
///
/// libmicrohttpd's own time-out counts silence, so a client that sends one byte every few seconds
/// holds its connection for ever. Here each phase of a request has one absolute deadline, which
/// traffic does not move.
///
/// A socket is shut down under the lock that its closing takes, so the descriptor of a connection
/// that just closed, and may already be another one's, is never touched.
final class ConnectionDeadlines: Sendable {
  /// How long each phase may take, in nanoseconds.
  private struct Times {
    let idle, header, body, answer, later: Int64

    init(_ limits: HTTPLimits) {
      (idle, header, body) = (Self.of(limits.idle), Self.of(limits.header), Self.of(limits.body))
      (answer, later) = (Self.of(limits.answer), Self.of(limits.later))
    }

    private static func of(_ duration: Duration) -> Int64 {
      let (seconds, attoseconds) = duration.components
      return min(seconds, 1 << 32) * 1_000_000_000 + attoseconds / 1_000_000_000
    }
  }

  private let times: Locked<Times>
  private let open = Locked<[ObjectIdentifier: HTTPConnection]>([:])

  init(limits: HTTPLimits) { times = Locked(Times(limits)) }

  /// Goes by these times from the next phase of each connection on.
  func change(_ limits: HTTPLimits) { times.withLock { $0 = Times(limits) } }

  /// A connection began.
  func begin(_ connection: HTTPConnection) {
    set(connection) { $0.header }
    open.withLock { $0[ObjectIdentifier(connection)] = connection }
  }

  /// The first line of a request is in. On a new connection its time runs already.
  func receivingHeader(_ connection: HTTPConnection) {
    let deadline = Self.now() + times.withLock { $0.header }
    if deadline < connection.deadline.load(ordering: .relaxed) {
      connection.deadline.store(deadline, ordering: .relaxed)
    }
  }

  func receivingBody(_ connection: HTTPConnection) { set(connection) { $0.body } }
  func waiting(_ connection: HTTPConnection) { set(connection) { $0.later } }
  func answering(_ connection: HTTPConnection) { set(connection) { $0.answer } }
  func answered(_ connection: HTTPConnection) { set(connection) { $0.idle } }

  /// A connection is about to close.
  func end(_ connection: HTTPConnection) {
    open.withLock { $0[ObjectIdentifier(connection)] = nil }
  }

  /// Cuts every connection whose deadline has passed; but where an answer is waited for, that is
  /// told to end: first its task, and after the time that an answer may take, the wait itself.
  func cutOverdue() {
    let now = Self.now()
    let late = open.withLock { open in
      let overdue = open.values.filter { $0.deadline.load(ordering: .relaxed) < now }
      let late = overdue.filter { $0.later != nil }
      for connection in overdue where connection.later == nil {
        shutdown(connection.descriptor, Int32(SHUT_RDWR))
      }
      return late
    }
    let answer = times.withLock { $0.answer }
    for connection in late {
      connection.deadline.store(now + answer, ordering: .relaxed)
      connection.later?.expire()
    }
  }

  /// Ends the reading side of every connection: what was received is still answered, nothing more
  /// is asked.
  func hangUp() {
    open.withLock { open in
      for connection in open.values { shutdown(connection.descriptor, Int32(SHUT_RD)) }
    }
  }

  /// Runs `body` over the open connections, none of which closes meanwhile.
  func withOpen<Result>(_ body: (Dictionary<ObjectIdentifier, HTTPConnection>.Values) -> Result)
    -> Result
  {
    open.withLock { body($0.values) }
  }

  private func set(_ connection: HTTPConnection, _ limit: (Times) -> Int64) {
    let deadline = Self.now() + times.withLock { limit($0) }
    connection.deadline.store(deadline, ordering: .relaxed)
  }

  /// Nanoseconds of the monotonic clock, at the kernel's tick: a few nanoseconds per call.
  private static func now() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC_COARSE, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }
}
