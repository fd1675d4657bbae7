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
