import Foundation
import SslPinningPlatform

/// Lets so many in at a time; the others wait in line, each for a limited time.
final class AsyncSemaphore: Sendable {
  private struct State {
    var free: Int
    var waiting: [(id: UUID, continuation: CheckedContinuation<Bool, Never>)] = []
  }

  private let state: Locked<State>

  /// - Parameter places: how many are let in at a time; 0 means no limit.
  init(places: Int) { state = Locked(State(free: places > 0 ? places : .max)) }

  /// Waits for a place.
  ///
  /// - Returns: false where there was none within so many milliseconds.
  func enter(within milliseconds: Int) async -> Bool {
    let id = UUID()
    return await withCheckedContinuation { continuation in
      let isIn = state.withLock { state in
        guard state.free == 0 else {
          state.free -= 1
          return true
        }
        state.waiting.append((id, continuation))
        return false
      }
      guard !isIn else { return continuation.resume(returning: true) }
      DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(milliseconds)) {
        self.giveUp(id)
      }
    }
  }

  /// Gives a place back, to whoever waits longest.
  func leave() {
    let next = state.withLock { state -> CheckedContinuation<Bool, Never>? in
      guard state.waiting.isEmpty else { return state.waiting.removeFirst().continuation }
      state.free += 1
      return nil
    }
    next?.resume(returning: true)
  }

  private func giveUp(_ id: UUID) {
    let waiting = state.withLock { state -> CheckedContinuation<Bool, Never>? in
      guard let place = state.waiting.firstIndex(where: { $0.id == id }) else { return nil }
      return state.waiting.remove(at: place).continuation
    }
    waiting?.resume(returning: false)
  }
}
