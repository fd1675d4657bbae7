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
