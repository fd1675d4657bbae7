import Foundation

/// A value behind a lock. (`Synchronization.Mutex` needs iOS 18; apps ship from iOS 15 on.)
///
/// - Hazard: not recursive. Never call out to anybody else's code from inside ``withLock(_:)``.
package final class Locked<Value>: @unchecked Sendable {
  private let lock = NSLock()
  private var value: Value

  package init(_ value: sending Value) { self.value = value }

  package func withLock<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
    lock.lock()
    defer { lock.unlock() }
    return try body(&value)
  }
}

/// A value that is given by whoever is first and awaited by one task, in either order.
///
/// - The task is resumed exactly once by construction: what is given later is dropped.
final class Once<Value: Sendable>: Sendable {
  private enum State {
    case open
    case awaited(CheckedContinuation<Value, Never>)
    case given(Value)
  }

  private let state = Locked(State.open)

  init() {}

  /// Gives the value unless there is one.
  func give(_ value: Value) {
    let waiting = state.withLock { state -> CheckedContinuation<Value, Never>? in
      let before = state
      if case .given = before { return nil }
      state = .given(value)
      guard case .awaited(let waiting) = before else { return nil }
      return waiting
    }
    waiting?.resume(returning: value)
  }

  /// The value, now or when it is given. For one task.
  var value: Value {
    get async {
      await withCheckedContinuation { continuation in
        let given = state.withLock { state -> Value? in
          if case .given(let value) = state { return value }
          state = .awaited(continuation)
          return nil
        }
        if let given { continuation.resume(returning: given) }
      }
    }
  }
}

/// Returns as soon as one of the two does. The first goes on; the second is cancelled.
package func firstOf(
  _ first: @escaping @Sendable () async -> Void, _ second: @escaping @Sendable () async -> Void
) async {
  let done = Once<Void>()
  let other = promptTask {
    await second()
    done.give(())
  }
  promptTask {
    await first()
    other.cancel()
    done.give(())
  }
  await done.value
}

/// A value that goes from the thread it came in on to the one that works on it, and is not used
/// by the first any more: what the system hands to a delegate and awaits an answer to.
///
/// Whether the system's own types are `Sendable` depends on the version of its SDK.
struct HandedOver<Value>: @unchecked Sendable {
  let value: Value

  init(_ value: Value) { self.value = value }
}

/// Answers one completion handler exactly once.
///
/// - The first answer counts. Later ones are dropped: `URLSession` ends the process if a handler is called twice.
/// - If nobody answers, the release of the last reference does, with `otherwise`: a handler that is never
///   called keeps its task for ever. So `otherwise` must be the closed answer.
/// - May be called from any thread.
package final class OneShot<Value: Sendable>: Sendable {
  private let handler: Locked<(@Sendable (Value) -> Void)?>
  private let otherwise: Value

  /// - Parameter otherwise: the answer if nobody gives one: cancel, refuse, do not follow.
  package init(otherwise: Value, _ handler: @escaping @Sendable (Value) -> Void) {
    self.otherwise = otherwise
    self.handler = Locked(handler)
  }

  deinit { take()?(otherwise) }

  /// Answers, unless that was done.
  package func give(_ value: Value) { take()?(value) }

  private func take() -> (@Sendable (Value) -> Void)? {
    handler.withLock { handler in
      defer { handler = nil }
      return handler
    }
  }
}
