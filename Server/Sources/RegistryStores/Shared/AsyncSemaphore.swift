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

/// A thread's worth of blocking work, one piece after the other, off the cooperative threads.
struct WorkQueue: Sendable {
  private let queue: DispatchQueue

  init(_ label: String) { queue = DispatchQueue(label: label) }

  /// Runs blocking work and returns what came of it.
  func run<Value: Sendable>(
    _ work: @escaping @Sendable () throws(StoreError) -> Value
  ) async throws(StoreError) -> Value {
    let result: Result<Value, StoreError> = await withCheckedContinuation { continuation in
      queue.async { continuation.resume(returning: Result { () throws(StoreError) in try work() }) }
    }
    return try result.get()
  }

  /// Runs blocking work every so many milliseconds until the timer is dropped. What is late is left
  /// out.
  func every(_ milliseconds: Int, _ work: @escaping @Sendable () -> Void) -> RepeatingWork {
    let timer = DispatchSource.makeTimerSource(queue: queue)
    timer.schedule(
      deadline: .now() + .milliseconds(milliseconds), repeating: .milliseconds(milliseconds),
      leeway: .milliseconds(milliseconds / 10))
    timer.setEventHandler(handler: work)
    timer.activate()
    return RepeatingWork(timer: timer)
  }
}

/// Work that is repeated until this is dropped or cancelled.
///
/// Unchecked: a dispatch source may be cancelled from any thread.
final class RepeatingWork: @unchecked Sendable {
  private let timer: any DispatchSourceTimer

  fileprivate init(timer: any DispatchSourceTimer) { self.timer = timer }

  deinit { timer.cancel() }

  func cancel() { timer.cancel() }
}

/// A place for a value that comes and goes, seen from several threads.
final class Slot<Value: Sendable>: Sendable {
  private let state: Locked<Value?>

  init(_ value: Value? = nil) { state = Locked(value) }

  var value: Value? { state.withLock { $0 } }

  func set(_ value: Value?) { state.withLock { $0 = value } }

  /// Hazard: `make` must not come back here.
  func setIfEmpty(_ make: () -> Value) {
    state.withLock { if $0 == nil { $0 = make() } }
  }

  func take() -> Value? { state.withLock { $0.take() } }
}
