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
