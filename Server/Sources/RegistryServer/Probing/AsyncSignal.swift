import SslPinningPlatform

/// Wakes one task that waits, now or the next time that it does.
final class AsyncSignal: Sendable {
  private struct State {
    var isRung = false
    var waiting: CheckedContinuation<Void, Never>?
  }

  private let state = Locked(State())

  func ring() {
    let waiting = state.withLock { state in
      state.isRung = state.waiting == nil
      return state.waiting.take()
    }
    waiting?.resume()
  }

  /// Waits for a ring; also ends when the task is cancelled.
  func wait() async {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let mustWait = state.withLock { state in
          guard !state.isRung, !Task.isCancelled else {
            state.isRung = false
            return false
          }
          state.waiting = continuation
          return true
        }
        if !mustWait { continuation.resume() }
      }
    } onCancel: {
      state.withLock { $0.waiting.take() }?.resume()
    }
  }
}
