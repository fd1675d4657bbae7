import Foundation
import PinningPlatform
import Synchronization

/// The open connections of a server, each with the moment at which it is cut.
///
/// libmicrohttpd's own time-out counts silence, so a client that sends one byte every few seconds
/// holds its connection for ever. Here each phase of a request has one absolute deadline, which
/// traffic does not move.
///
/// A socket is shut down under the lock that its closing takes, so the descriptor of a connection
/// that just closed, and may already be another one's, is never touched.
final class ConnectionDeadlines: Sendable {
  /// One connection's deadline, in seconds of the monotonic clock.
  final class Connection: Sendable {
    let descriptor: Int32
    fileprivate let deadline: Atomic<Int64>

    fileprivate init(descriptor: Int32, deadline: Int64) {
      self.descriptor = descriptor
      self.deadline = Atomic(deadline)
    }
  }

  private let limits: HTTPLimits
  private let open = Locked<[ObjectIdentifier: Connection]>([:])

  init(limits: HTTPLimits) { self.limits = limits }

  /// A connection began.
  func begin(_ descriptor: Int32) -> Connection {
    let connection = Connection(
      descriptor: descriptor, deadline: Self.now() + limits.request)
    open.withLock { $0[ObjectIdentifier(connection)] = connection }
    return connection
  }

  /// Its request is complete; the answer goes out.
  func answering(_ connection: Connection) {
    connection.deadline.store(Self.now() + limits.answer, ordering: .relaxed)
  }

  /// The answer is out; the next request may come.
  func answered(_ connection: Connection) {
    connection.deadline.store(Self.now() + limits.request, ordering: .relaxed)
  }

  /// A connection is about to close.
  func end(_ connection: Connection) {
    open.withLock { $0[ObjectIdentifier(connection)] = nil }
  }

  /// Cuts every connection whose deadline has passed and says how many there were.
  @discardableResult
  func cutOverdue() -> Int {
    let now = Self.now()
    return open.withLock { open in
      let overdue = open.values.filter { $0.deadline.load(ordering: .relaxed) < now }
      for connection in overdue { shutdown(connection.descriptor, Int32(SHUT_RDWR)) }
      return overdue.count
    }
  }

  /// Ends the reading side of every connection: what was received is still answered, nothing more
  /// is asked.
  func hangUp() {
    open.withLock { open in
      for connection in open.values { shutdown(connection.descriptor, Int32(SHUT_RD)) }
    }
  }

  /// Seconds of the monotonic clock, at the kernel's tick: a few nanoseconds per call.
  private static func now() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC_COARSE, &time)
    return Int64(time.tv_sec)
  }
}
