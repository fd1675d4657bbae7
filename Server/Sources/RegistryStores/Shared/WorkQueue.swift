import Foundation

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
