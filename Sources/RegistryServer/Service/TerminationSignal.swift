import Foundation
import Synchronization

/// Listens for the signals that ask a process to end, from its creation on: one that comes before
/// anybody waits is not lost.
///
/// - SIGPIPE is ignored from then on: a closed log pipe or peer is an error code, never the end.
/// - After the first signal both have their usual effect again, so a second one ends a process that
///   hangs while it stops.
final class TerminationSignal: Sendable {
  private struct State: @unchecked Sendable {
    var name: String?
    var waiting: CheckedContinuation<String, Never>?
    /// Kept for their events; touched under the lock only.
    var sources: [any DispatchSourceSignal] = []
  }

  private let state = Mutex(State())

  init() {
    signal(SIGPIPE, SIG_IGN)
    for (number, name) in [(SIGTERM, "SIGTERM"), (SIGINT, "SIGINT")] {
      // A dispatch source only listens; the default effect has to be taken away beside it.
      signal(number, SIG_IGN)
      let source = DispatchSource.makeSignalSource(signal: number)
      source.setEventHandler { [weak self] in self?.note(name) }
      source.resume()
      state.withLock { $0.sources.append(source) }
    }
  }

  deinit { state.withLock { Self.letGo(&$0) } }

  /// Waits for SIGTERM or SIGINT and returns its name. One waiter at a time.
  func wait() async -> String {
    await withCheckedContinuation { continuation in
      let name = state.withLock { state in
        if state.name == nil { state.waiting = continuation }
        return state.name
      }
      if let name { continuation.resume(returning: name) }
    }
  }

  private func note(_ name: String) {
    let waiting = state.withLock { state in
      state.name = state.name ?? name
      Self.letGo(&state)
      return state.waiting.take()
    }
    waiting?.resume(returning: name)
  }

  private static func letGo(_ state: inout State) {
    for source in state.sources { source.cancel() }
    state.sources = []
    for number in [SIGTERM, SIGINT] { signal(number, SIG_DFL) }
  }
}
