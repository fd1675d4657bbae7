import SslPinningPlatform

/// Hands what happens to everybody who listens, each on a stream of their own.
///
/// - A listener who is slow loses the oldest: 256 wait at most. Nobody is ever waited for.
/// - Whoever begins to listen gets the last few first, where the broadcast keeps some.
final class Broadcast<Element: Sendable>: Sendable {
  private struct State {
    var listeners: [UInt64: AsyncStream<Element>.Continuation] = [:]
    var next: UInt64 = 0
    var kept: [Element] = []
  }

  /// Elements that wait for a slow listener.
  static var capacity: Int { 256 }

  private let history: Int
  private let state = Locked(State())

  /// - Parameter history: how many of the last elements a new listener gets.
  init(history: Int = 0) { self.history = history }

  deinit {
    for listener in state.withLock({ $0.listeners.values }) { listener.finish() }
  }

  /// A stream of its own for whoever asks; ends with the broadcast.
  var stream: AsyncStream<Element> {
    AsyncStream(bufferingPolicy: .bufferingNewest(Self.capacity)) { continuation in
      let id = state.withLock { state in
        state.next += 1
        state.listeners[state.next] = continuation
        for element in state.kept { continuation.yield(element) }
        return state.next
      }
      continuation.onTermination = { [weak self] _ in
        self?.state.withLock { _ = $0.listeners.removeValue(forKey: id) }
      }
    }
  }

  /// Tells everybody.
  func send(_ element: Element) {
    let listeners = state.withLock { state in
      if history > 0 {
        state.kept.append(element)
        if state.kept.count > history { state.kept.removeFirst() }
      }
      return Array(state.listeners.values)
    }
    for listener in listeners { listener.yield(element) }
  }
}
