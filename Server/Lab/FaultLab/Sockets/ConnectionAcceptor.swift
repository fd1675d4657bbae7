import Foundation
import SslPinningPlatform
import TLSTools

/// Listens on a port and gives every connection its own thread, up to a limit.
///
/// - Connections above the limit are closed at once: a queue would only hide a hang.
/// - `shutDown()` wakes every thread that waits in poll(2), then waits for all threads to end.
final class ConnectionAcceptor: Sendable {
  private struct State {
    var open: [Int: Socket] = [:]
    var isStopped = false
  }

  let endpoint: Endpoint
  let stop: EventSignal
  private let listener: Socket
  private let limit: Int
  private let threads = WorkerThreads()
  private let state = Locked(State())

  init(endpoint: Endpoint, limit: Int) throws(SocketError) {
    stop = try EventSignal()
    (listener, self.endpoint) = try Socket.listen(on: endpoint)
    self.limit = limit
  }

  /// Starts accepting.
  ///
  /// The threads hold the closures and this object until `shutDown()`.
  /// - Parameters:
  ///   - turnAway: called for each connection above the limit.
  ///   - serve: handles a connection, on its thread; the number counts from 1. The stream is
  ///     finished and closed afterwards.
  func start(
    turnAway: @escaping @Sendable () -> Void = {},
    serve: @escaping @Sendable (ByteStream, Int) throws(SocketError) -> Void
  ) {
    let isStarted = threads.start("acceptor") { [self] in
      var number = 0
      while waitForConnection() {
        do throws(SocketError) {
          guard let socket = try listener.accept() else { continue }
          number += 1
          if !admit(socket, number, serve) {
            socket.close()
            turnAway()
          }
        } catch {
          // Out of descriptors: the connection still waits, so try again a little later.
          if !stop.sleep(milliseconds: 20) { return }
        }
      }
    }
    if !isStarted { listener.close() }
  }

  /// Ends one open connection from another thread; its own thread sees the end of the stream.
  func end(_ number: Int) { state.withLock { $0.open[number] }?.shutdown() }

  /// Ends all open connections from another thread.
  func endAll() {
    for socket in state.withLock({ Array($0.open.values) }) { socket.shutdown() }
  }

  func shutDown() {
    let isFirst = state.withLock { state in
      defer { state.isStopped = true }
      return !state.isStopped
    }
    guard isFirst else { return }
    stop.raise()
    threads.wait(seconds: 10)
    listener.close()
  }

  private func waitForConnection() -> Bool {
    var watched = [
      pollfd(fd: listener.descriptor, events: Int16(POLLIN), revents: 0),
      pollfd(fd: stop.descriptor, events: Int16(POLLIN), revents: 0),
    ]
    _ = poll(&watched, 2, -1)
    return !stop.isRaised
  }

  private func admit(
    _ socket: Socket, _ number: Int,
    _ serve: @escaping @Sendable (ByteStream, Int) throws(SocketError) -> Void
  ) -> Bool {
    let hasRoom = state.withLock { state in
      guard state.open.count < limit else { return false }
      state.open[number] = socket
      return true
    }
    guard hasRoom else { return false }
    let isStarted = threads.start("connection \(number)") { [self] in
      let stream = ByteStream(socket, stop: stop)
      do throws(SocketError) {
        try serve(stream, number)
      } catch {
        // A peer may leave at any time; the server's log has what was received.
      }
      stream.finishWriting()
      socket.close()
      state.withLock { _ = $0.open.removeValue(forKey: number) }
    }
    if !isStarted { state.withLock { _ = $0.open.removeValue(forKey: number) } }
    return isStarted
  }
}
