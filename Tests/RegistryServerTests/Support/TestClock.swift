import PinningPlatform
import RegistryServer

/// A clock that does not wait. Pauses of up to 10 s pass at once and move the time; longer ones, a
/// watcher's intervals, last until the task is cancelled: the test says when to look.
final class TestClock: ServerClock {
  private struct State {
    var milliseconds: Int64
    var sleepers = 0
  }

  private let state: Locked<State>

  init(_ now: Int64 = 1_780_000_000) { state = Locked(State(milliseconds: now * 1000)) }

  func now() -> Int64 { state.withLock { $0.milliseconds / 1000 } }

  /// How many sleep through an interval.
  var sleepers: Int { state.withLock { $0.sleepers } }

  func advance(_ seconds: Int64) { state.withLock { $0.milliseconds += seconds * 1000 } }

  func sleep(milliseconds: Int64) async throws {
    guard milliseconds > 10_000 else {
      state.withLock { $0.milliseconds += milliseconds }
      return
    }
    state.withLock { $0.sleepers += 1 }
    defer { state.withLock { $0.sleepers -= 1 } }
    // why: sleeps until it is cancelled.
    try await Task.sleep(for: .seconds(3600))
  }

  /// Waits until so many sleep through an interval: then nobody looks but the test.
  func untilAsleep(_ count: Int) async throws {
    while sleepers < count {
      // why: polls for the moment at which other tasks sleep.
      try await Task.sleep(for: .milliseconds(2))
    }
  }
}
