import Foundation
import SslPinning
import SslPinningPlatform

/// A clock that stands still until a test turns it.
///
///     let clock = TestClock()
///     clock.advance(by: 8 * 86400)   // a week and a day later: verdicts say `isStale`
///
/// - ``advance(by:)`` lets time pass: the device's clock and the one that measures intervals go on
///   together, and waits that are over by then end.
/// - ``set(_:)`` is somebody turning the device's clock: intervals do not notice.
public final class TestClock: Sendable {
  private struct Sleeper {
    let due: Double
    let continuation: CheckedContinuation<Void, any Error>
  }

  private struct State {
    /// Since 1970.
    var wall: TimeInterval
    var steady: TimeInterval = 1_000_000
    var sleepers: [UInt64: Sleeper] = [:]
    var cancelled: Set<UInt64> = []
    var next: UInt64 = 0
  }

  private let state: Locked<State>

  /// A clock that says `now`; without it, the time at which it is made.
  public init(now: Date = Date()) {
    // Whole seconds, which is what registries count in.
    state = Locked(State(wall: TimeInterval(now.unixSeconds)))
  }

  /// What the device's clock says.
  public var now: Date { Date(timeIntervalSince1970: state.withLock { $0.wall }) }

  /// How many waits are under way: refreshes that are to come, and limits of those that run.
  public var waits: Int { state.withLock { $0.sleepers.count } }

  /// Lets so many seconds pass.
  public func advance(by seconds: TimeInterval) {
    let over = state.withLock { state in
      state.wall += seconds
      state.steady += max(0, seconds)
      let over = state.sleepers.filter { [steady = state.steady] in $0.value.due <= steady }
      for id in over.keys { state.sleepers[id] = nil }
      return over.values.sorted { $0.due < $1.due }
    }
    for sleeper in over { sleeper.continuation.resume() }
  }

  /// Turns the device's clock to this time.
  public func set(_ now: Date) { state.withLock { $0.wall = now.timeIntervalSince1970 } }

  /// What a client lives by. Requests wait for newer pins as long as tests on busy machines need.
  package var clocks: Clocks {
    Clocks(
      wall: { self.now.unixSeconds }, steady: { self.state.withLock { Int64($0.steady) } },
      sleep: { try await self.sleep($0) }, random: { 0.5 }, longestRefresh: 60)
  }

  private func sleep(_ seconds: Double) async throws {
    let id = state.withLock { state in
      state.next += 1
      return state.next
    }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let isCancelled = state.withLock { state in
          guard state.cancelled.remove(id) == nil else { return true }
          state.sleepers[id] = Sleeper(
            due: state.steady + seconds, continuation: continuation)
          return false
        }
        if isCancelled { continuation.resume(throwing: CancellationError()) }
      }
    } onCancel: {
      let sleeper = state.withLock { state in
        let sleeper = state.sleepers.removeValue(forKey: id)
        if sleeper == nil { state.cancelled.insert(id) }
        return sleeper
      }
      sleeper?.continuation.resume(throwing: CancellationError())
    }
  }
}
