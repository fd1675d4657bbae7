import CMicroHTTPD
import Foundation
import PinningPlatform

/// A connection whose answer comes later.
struct SuspendedConnection: @unchecked Sendable {
  /// Unchecked: resuming may be asked for from any thread.
  let pointer: OpaquePointer
  let descriptor: Int32
  let table: SuspendedConnections

  fileprivate func suspend() { MHD_suspend_connection(pointer) }

  func resume(_ answer: LaterAnswer) { table.resume(answer, pointer) }
}

/// The suspended connections of a server.
///
/// libmicrohttpd does not look at a suspended connection, so who hangs up is noticed here. A
/// descriptor is looked at under the lock that its resumption takes: until then it is open.
final class SuspendedConnections: Sendable {
  private struct State {
    var waiting: [ObjectIdentifier: (answer: LaterAnswer, descriptor: Int32)] = [:]
    var isStopping = false
    var isClosed = false
  }

  private let state = Locked(State())

  /// Suspends a connection until its answer is there. Called from the connection's handler.
  ///
  /// - Parameter then: is told the answer before work on it begins.
  /// - Returns: false where the server takes no more: the caller answers.
  func suspend(
    _ pointer: OpaquePointer, _ descriptor: Int32,
    for work: @escaping @Sendable () async -> HTTPResponse, then: (LaterAnswer) -> Void
  ) -> Bool {
    let connection = SuspendedConnection(pointer: pointer, descriptor: descriptor, table: self)
    let answer = LaterAnswer(connection: connection)
    let (isTaken, isStopping) = state.withLock { state in
      guard !state.isClosed else { return (false, true) }
      connection.suspend()
      state.waiting[ObjectIdentifier(answer)] = (answer, descriptor)
      return (true, state.isStopping)
    }
    guard isTaken else { return false }
    then(answer)
    if isStopping { answer.cancel() }
    answer.start(work)
    return true
  }

  /// Cancels the work for clients that have hung up or closed their sending side, as nobody who
  /// waits for an answer does.
  func cancelAbandoned() {
    let abandoned = state.withLock { state in
      let waiting = Array(state.waiting.values)
      var watched = waiting.map {
        pollfd(fd: $0.descriptor, events: pp_poll_peer_ended(), revents: 0)
      }
      guard !watched.isEmpty, poll(&watched, nfds_t(watched.count), 0) > 0 else {
        return [LaterAnswer]()
      }
      return zip(waiting, watched).filter { $0.1.revents != 0 }.map { $0.0.answer }
    }
    for answer in abandoned { answer.cancel() }
  }

  /// Cancels all work, from now on also what only begins.
  func cancelAll() {
    let all = state.withLock { state in
      state.isStopping = true
      return state.waiting.values.map(\.answer)
    }
    for answer in all { answer.cancel() }
  }

  /// Answers in place of all work that is still under way, and takes no more.
  func close() {
    let all = state.withLock { state in
      state.isClosed = true
      return state.waiting.values.map(\.answer)
    }
    for answer in all { answer.deliver(HTTPRefusal.unavailable) }
  }

  /// How many wait.
  var count: Int { state.withLock { $0.waiting.count } }

  /// Under the lock: a daemon must not be stopped between the two steps, and ``close()`` comes
  /// before its stop.
  fileprivate func resume(_ answer: LaterAnswer, _ pointer: OpaquePointer) {
    state.withLock { state in
      guard state.waiting.removeValue(forKey: ObjectIdentifier(answer)) != nil else { return }
      MHD_resume_connection(pointer)
    }
  }
}
