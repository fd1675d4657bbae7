import SslPinning
import SslPinningPlatform
import SslPinningRules

/// The time in a row: the world's, and what the device takes it for. Unix seconds.
final class Timeline: Sendable {
  static let hour: Int64 = 3600
  static let day: Int64 = 86400

  private struct State {
    var world: Int64
    var error: Int64 = 0
    /// Those who wait for a time of the world's, by a number.
    var sleepers: [Int: (due: Int64, continuation: CheckedContinuation<Void, any Error>)] = [:]
    var next = 0
  }

  private let start: Int64
  private let state: Locked<State>

  init() {
    start = Clocks.system.wall()
    state = Locked(State(world: start))
  }

  /// What time it is.
  var world: Int64 { state.withLock { $0.world } }
  /// What time the device takes it for.
  var device: Int64 { state.withLock { $0.world + $0.error } }

  /// Lets time go by.
  func pass(days: Int64) { state.withLock { $0.world += days * Self.day } }

  /// Sets the device's clock wrong by so many seconds.
  func setDeviceWrong(by seconds: Int64) { state.withLock { $0.error = seconds } }

  /// A client's clocks. Nothing is refreshed in the background: rows say when.
  func clocks(longestRefresh: Double = 20) -> Clocks {
    Clocks(
      wall: { self.device }, steady: Clocks.system.steady,
      sleep: { _ in try await Clocks.systemSleep(86400) }, random: { 0.5 },
      longestRefresh: longestRefresh)
  }

  /// A client's clocks on a device that lives in this time: it refreshes by itself, with every
  /// ``second()`` that is due for it.
  func livingClocks() -> Clocks {
    Clocks(
      wall: { self.device }, steady: { 1000 + self.world - self.start },
      sleep: { try await self.sleep($0) }, random: { 0.5 }, longestRefresh: 20)
  }

  /// Lets one second go by, and returns once whoever was due for it waits again.
  func second() async throws {
    let (due, resting) = state.withLock { state in
      state.world += 1
      let due = state.sleepers.filter { $0.value.due <= state.world }
      let resting = state.sleepers.count
      for id in due.keys { state.sleepers[id] = nil }
      return (due.values.map(\.continuation), resting)
    }
    for continuation in due { continuation.resume() }
    while state.withLock({ $0.sleepers.count }) < resting {
      try await Task.sleep(nanoseconds: 1_000_000)
    }
  }

  private func sleep(_ seconds: Double) async throws {
    let id = state.withLock { state in
      state.next += 1
      return state.next
    }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        state.withLock {
          $0.sleepers[id] = ($0.world + Int64(seconds.rounded(.up)), continuation)
        }
        if Task.isCancelled { cancel(id) }
      }
    } onCancel: {
      cancel(id)
    }
  }

  private func cancel(_ id: Int) {
    let sleeper = state.withLock { $0.sleepers.removeValue(forKey: id) }
    sleeper?.continuation.resume(throwing: CancellationError())
  }
}
