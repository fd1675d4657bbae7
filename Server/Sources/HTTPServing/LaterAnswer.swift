import SslPinningPlatform

/// An answer that a task works on while its connection is suspended.
///
/// - It comes once: from the task, or in its place when time is up. What comes after is dropped.
/// - The connection is resumed once, and then belongs to libmicrohttpd again.
final class LaterAnswer: Sendable {
  private struct State {
    var task: Task<Void, Never>?
    var response: HTTPResponse?
    var isCancelled = false
  }

  private let state = Locked(State())
  private let connection: SuspendedConnection

  init(connection: SuspendedConnection) { self.connection = connection }

  func start(_ work: @escaping @Sendable () async -> HTTPResponse) {
    guard response == nil else { return }
    let task = Task { deliver(await work()) }
    let isCancelled = state.withLock { state in
      if state.response == nil { state.task = task }
      return state.isCancelled
    }
    if isCancelled { task.cancel() }
  }

  /// The answer, once it is there.
  var response: HTTPResponse? { state.withLock { $0.response } }

  /// Asks the task to end. Its answer is still sent.
  func cancel() {
    let task = state.withLock { state in
      state.isCancelled = true
      return state.task
    }
    task?.cancel()
  }

  /// Time is up: asks the task to end, and where it was asked before, answers in its place.
  func expire() {
    if state.withLock({ $0.isCancelled }) { deliver(HTTPRefusal.unavailable) } else { cancel() }
  }

  /// Sets the answer, unless there is one, and resumes the connection.
  func deliver(_ response: HTTPResponse) {
    let isFirst = state.withLock { state in
      guard state.response == nil else { return false }
      state.response = response
      state.task = nil
      return true
    }
    if isFirst { connection.resume(self) }
  }
}
