import SslPinningPlatform

/// Hands out the names of changed records to everybody who listens.
final class ChangeHub: Sendable {
  private struct State {
    var isFinished = false
    var mailboxes: [Listener] = []
  }

  /// Held weakly: a stream that nobody has any more is no listener.
  private struct Listener {
    weak var mailbox: ChangeMailbox?
  }

  private let state = Locked(State())

  /// Whether it was finished.
  var isFinished: Bool { state.withLock { $0.isFinished } }

  /// A stream of its own for each caller, with every name that is told from now on.
  func stream() -> AsyncStream<String> {
    let mailbox = ChangeMailbox()
    let isFinished = state.withLock { state in
      state.mailboxes.removeAll { $0.mailbox == nil }
      if !state.isFinished { state.mailboxes.append(Listener(mailbox: mailbox)) }
      return state.isFinished
    }
    if isFinished { mailbox.finish() }
    return AsyncStream {
      await mailbox.next()
    } onCancel: {
      mailbox.finish()
    }
  }

  /// Tells that a record may have changed; the empty name stands for all of them.
  func tell(_ name: String) {
    for listener in state.withLock({ $0.mailboxes }) { listener.mailbox?.put(name) }
  }

  /// Ends every stream.
  func finish() {
    let mailboxes = state.withLock { state in
      defer { (state.isFinished, state.mailboxes) = (true, []) }
      return state.mailboxes
    }
    for listener in mailboxes { listener.mailbox?.finish() }
  }
}

/// What one listener has not taken yet: each name once, so that it stays small however slow the
/// listener is.
final class ChangeMailbox: Sendable {
  private struct State {
    var names: [String] = []
    var waiting: [CheckedContinuation<String?, Never>] = []
    var isFinished = false
  }

  private let state = Locked(State())

  /// Adds a name. The empty one stands for all, so it takes the place of every other.
  func put(_ name: String) {
    let listener = state.withLock { state -> CheckedContinuation<String?, Never>? in
      guard !state.isFinished else { return nil }
      if !state.waiting.isEmpty { return state.waiting.removeFirst() }
      if name.isEmpty {
        state.names = [name]
      } else if state.names.first != "", !state.names.contains(name) {
        state.names.append(name)
      }
      return nil
    }
    listener?.resume(returning: name)
  }

  /// The next name, as soon as there is one; `nil` once it is finished.
  func next() async -> String? {
    await withCheckedContinuation { continuation in
      let name = state.withLock { state -> String?? in
        if state.isFinished { return .some(nil) }
        if !state.names.isEmpty { return state.names.removeFirst() }
        state.waiting.append(continuation)
        return nil
      }
      if let name { continuation.resume(returning: name) }
    }
  }

  /// Ends it; what nobody took is dropped.
  func finish() {
    let waiting = state.withLock { state in
      defer { (state.isFinished, state.waiting, state.names) = (true, [], []) }
      return state.waiting
    }
    for listener in waiting { listener.resume(returning: nil) }
  }
}
