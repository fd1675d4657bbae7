import RegistryServer
import SslPinningPlatform

/// A clock that stands still until the test moves it.
final class SteppedClock: ServerClock {
  private struct State {
    var milliseconds: Int64 = 0
    var next = 0
    var sleepers: [Int: (due: Int64, continuation: CheckedContinuation<Void, any Error>)] = [:]
  }

  private let state = Locked(State())

  func now() -> Int64 { 1_780_000_000 + uptime() / 1000 }

  func elapsed() -> Int64 { uptime() / 1000 }

  var isSynchronized: Bool { false }

  /// How often anybody went to sleep.
  var sleeps: Int { state.withLock { $0.next } }

  func uptime() -> Int64 { state.withLock { $0.milliseconds } }

  func sleep(milliseconds: Int64) async throws {
    let id = state.withLock { state in
      state.next += 1
      return state.next
    }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        state.withLock { state in
          state.sleepers[id] = (state.milliseconds + milliseconds, continuation)
        }
        if Task.isCancelled { cancel(id) }
      }
    } onCancel: {
      cancel(id)
    }
  }

  /// Moves on, one millisecond of it at a time where somebody wakes, and returns when the monitor has
  /// nothing left to do.
  func advance(milliseconds: Int64, _ monitor: Monitor) async throws {
    let end = uptime() + milliseconds
    try await untilAtRest(monitor)
    while true {
      let due = state.withLock { state in
        let next = state.sleepers.values.map(\.due).min() ?? end
        state.milliseconds = max(state.milliseconds, min(end, next))
        let due = state.sleepers.filter { $0.value.due <= state.milliseconds }
        for id in due.keys { state.sleepers[id] = nil }
        return due.values.map(\.continuation)
      }
      for continuation in due { continuation.resume() }
      try await untilAtRest(monitor)
      if due.isEmpty, uptime() == end { return }
    }
  }

  /// How many sleep.
  var sleepers: Int { state.withLock { $0.sleepers.count } }

  /// Moves on at once, and wakes whoever is due.
  func advance(milliseconds: Int64) {
    let due = state.withLock { state in
      state.milliseconds += milliseconds
      let due = state.sleepers.filter { $0.value.due <= state.milliseconds }
      for id in due.keys { state.sleepers[id] = nil }
      return due.values.map(\.continuation)
    }
    for continuation in due { continuation.resume() }
  }

  /// Waits until no probe is under way or due, and the monitor sleeps.
  func untilAtRest(_ monitor: Monitor) async throws {
    // In this order: before it rests, whoever slept for it before is gone.
    while !monitor.isAtRest || state.withLock({ $0.sleepers.isEmpty }) {
      // why: polls for the moment at which other tasks sleep.
      try await Task.sleep(for: .milliseconds(1))
    }
  }

  private func cancel(_ id: Int) {
    let sleeper = state.withLock { $0.sleepers.removeValue(forKey: id) }
    sleeper?.continuation.resume(throwing: CancellationError())
  }
}
