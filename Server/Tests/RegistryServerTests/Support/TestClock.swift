import RegistryServer
import SslPinningPlatform

/// A clock that does not wait. Pauses of up to 10 s pass at once and move the time; longer ones, a
/// monitor's intervals, last until the task is cancelled: the test says when to probe. What a test adds
/// to the time is a clock that was set: nothing becomes due by it.
final class TestClock: ServerClock {
  private struct State {
    var milliseconds: Int64
    var uptime: Int64 = 0
    var error: Int64 = 0
    var isSynchronized = false
    var sleepers = 0
  }

  private let state: Locked<State>

  init(_ now: Int64 = 1_780_000_000) { state = Locked(State(milliseconds: now * 1000)) }

  func now() -> Int64 { state.withLock { $0.milliseconds / 1000 + $0.error } }

  /// What ``advance(_:)`` adds has passed; what ``setWrong(by:)`` says has not.
  func elapsed() -> Int64 { state.withLock { $0.milliseconds / 1000 } }

  var isSynchronized: Bool { state.withLock { $0.isSynchronized } }

  /// Sets the clock wrong by so many seconds, and says what the kernel thinks of it.
  func setWrong(by seconds: Int64, isSynchronized: Bool = false) {
    state.withLock { ($0.error, $0.isSynchronized) = (seconds, isSynchronized) }
  }

  func uptime() -> Int64 { state.withLock { $0.uptime } }

  /// How many sleep through an interval.
  var sleepers: Int { state.withLock { $0.sleepers } }

  func advance(_ seconds: Int64) { state.withLock { $0.milliseconds += seconds * 1000 } }

  func sleep(milliseconds: Int64) async throws {
    guard milliseconds > 10_000 else {
      state.withLock { state in
        state.milliseconds += milliseconds
        state.uptime += milliseconds
      }
      return
    }
    state.withLock { $0.sleepers += 1 }
    defer { state.withLock { $0.sleepers -= 1 } }
    // why: sleeps until it is cancelled.
    try await Task.sleep(for: .seconds(3600))
  }

  /// Waits until a service has done what it does by itself: then nobody probes but the test.
  ///
  /// - Parameters:
  ///   - sleepers: how many slept before it was started.
  ///   - isLeading: false where another server watches, so that this one only follows.
  func untilAtRest(
    _ service: RegistryService, sleepers before: Int = 0, isLeading: Bool = true
  ) async throws {
    // One sleeps until the store is asked again. Of a leader, one until the next probe is due, and one
    // until documents are seen to.
    // In this order: before it rests, whoever slept for it before is gone.
    while isLeading && !service.isAtRest || sleepers < before + (isLeading ? 3 : 1) {
      // why: polls for the moment at which other tasks sleep.
      try await Task.sleep(for: .milliseconds(2))
    }
  }
}
