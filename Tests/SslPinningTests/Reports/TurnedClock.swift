import PinningPlatform
import SslPinning

/// A clock that stands still until the test turns it; naps end when it passes their end.
final class TurnedClock: Sendable {
  private struct State {
    var now: Int64
    var naps: [Int: (end: Int64, sleeper: CheckedContinuation<Void, any Error>)] = [:]
    var cancelled: Set<Int> = []
    var count = 0
  }

  private let state: Locked<State>

  init(_ now: Int64 = 1_700_000_000) { state = Locked(State(now: now)) }

  var now: Int64 { state.withLock { $0.now } }

  var clocks: Clocks {
    var clocks = Clocks(wall: { self.now }, steady: { self.now })
    clocks.sleep = { try await self.nap(Int64($0.rounded(.up))) }
    clocks.random = { 0 }
    return clocks
  }

  func turn(by seconds: Int64) {
    let over = state.withLock { state in
      state.now += seconds
      let over = state.naps.filter { $0.value.end <= state.now }
      for id in over.keys { state.naps[id] = nil }
      return over.values.map(\.sleeper)
    }
    for sleeper in over { sleeper.resume() }
  }

  private func nap(_ seconds: Int64) async throws {
    let id = state.withLock { state in
      state.count += 1
      return state.count
    }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { sleeper in
        let isCancelled = state.withLock { state in
          if state.cancelled.remove(id) != nil { return true }
          state.naps[id] = (state.now + seconds, sleeper)
          return false
        }
        if isCancelled { sleeper.resume(throwing: CancellationError()) }
      }
    } onCancel: {
      let sleeper = state.withLock { state in
        guard let nap = state.naps.removeValue(forKey: id) else {
          state.cancelled.insert(id)
          return nil as CheckedContinuation<Void, any Error>?
        }
        return nap.sleeper
      }
      sleeper?.resume(throwing: CancellationError())
    }
  }
}
