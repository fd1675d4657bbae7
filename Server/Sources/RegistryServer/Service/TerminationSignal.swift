import Foundation
import SslPinningPlatform

/// Listens for the signals that ask a process to end, from its creation on: one that comes before
/// anybody waits is not lost.
///
/// - SIGPIPE is ignored from then on: a closed log pipe or peer is an error code, never the end.
/// - SIGHUP is told and otherwise ignored: a terminal that closes, or a habit from other servers, must
///   not stop the watching without a word.
/// - After the first signal both have their usual effect again, so a second one ends a process that
///   hangs while it stops.
package final class TerminationSignal: Sendable {
  private struct State: @unchecked Sendable {
    var name: String?
    var waiting: CheckedContinuation<String, Never>?
    /// Kept for their events; touched under the lock only.
    var sources: [any DispatchSourceSignal] = []
  }

  private let state = Locked(State())

  /// Listens when it returns. A signal that comes before has its usual effect.
  ///
  /// Sources are installed on another thread. The default effect is not taken away here: the source
  /// does that when it is installed, and ignoring the signal earlier would lose one that comes in
  /// between.
  ///
  /// - Parameter hangUp: is called for each SIGHUP.
  package init(hangUp: @escaping @Sendable () -> Void = {}) async {
    signal(SIGPIPE, SIG_IGN)
    await listen(SIGHUP, hangUp)
    await listen(SIGTERM) { [weak self] in self?.note("SIGTERM") }
    await listen(SIGINT) { [weak self] in self?.note("SIGINT") }
  }

  deinit { state.withLock { Self.letGo(&$0) } }

  /// Waits for SIGTERM or SIGINT and returns its name. One waiter at a time.
  package func wait() async -> String {
    await withCheckedContinuation { continuation in
      let name = state.withLock { state in
        if state.name == nil { state.waiting = continuation }
        return state.name
      }
      if let name { continuation.resume(returning: name) }
    }
  }

  private func listen(_ number: Int32, _ note: @escaping @Sendable () -> Void) async {
    let source = DispatchSource.makeSignalSource(signal: number)
    source.setEventHandler(handler: note)
    state.withLock { $0.sources.append(source) }
    await withCheckedContinuation { continuation in
      source.setRegistrationHandler { continuation.resume() }
      source.resume()
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
    signal(SIGHUP, SIG_IGN)
  }
}
