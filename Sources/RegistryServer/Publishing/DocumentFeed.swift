import PinningPlatform

/// Lets requests wait for the next document.
final class DocumentFeed: Sendable {
  private struct State {
    var last: UInt64 = 0
    var waiting: [String: [UInt64: CheckedContinuation<Void, Never>]] = [:]
  }

  private let state = Locked(State())

  /// Wakes everybody who waits for this file.
  func tell(_ file: String) {
    let waiting = state.withLock { $0.waiting.removeValue(forKey: file) }
    for continuation in (waiting ?? [:]).values { continuation.resume() }
  }

  /// Waits until the file changes, unless `isDue` says that it did before; returns early where the task
  /// is cancelled.
  func wait(for file: String, unless isDue: @Sendable () -> Bool) async {
    let id = state.withLock { state in
      state.last += 1
      return state.last
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isOver = state.withLock { state in
          // Asked under the lock that `tell` takes: a change in between is not missed.
          if Task.isCancelled || isDue() { return true }
          state.waiting[file, default: [:]][id] = continuation
          return false
        }
        if isOver { continuation.resume() }
      }
    } onCancel: {
      state.withLock { $0.waiting[file]?.removeValue(forKey: id) }?.resume()
    }
  }
}
