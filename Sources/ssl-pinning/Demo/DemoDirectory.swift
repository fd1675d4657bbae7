import Foundation
import Synchronization

/// Where the demo keeps its keys, its CA and its database.
///
/// - Gone at the end, whichever way the demo ends: a signing key must not stay behind because
///   somebody pressed Ctrl-C before the last line.
final class DemoDirectory: Sendable {
  private struct State: @unchecked Sendable {
    var waiting: CheckedContinuation<Void, Never>?
    /// Kept for their events; touched under the lock only.
    var sources: [any DispatchSourceSignal] = []
  }

  let url: URL
  private let state = Mutex(State())

  /// Makes a directory that nobody else can look into; listens for SIGINT and SIGTERM from now on.
  init() throws {
    url = FileManager.default.temporaryDirectory
      .appending(path: "ssl-pinning-demo-\(UUID().uuidString)", directoryHint: .isDirectory)
    for number in [SIGINT, SIGTERM] {
      // A dispatch source only listens; the default effect has to be taken away beside it.
      signal(number, SIG_IGN)
      let source = DispatchSource.makeSignalSource(signal: number)
      source.setEventHandler { [weak self] in self?.note(number) }
      source.resume()
      state.withLock { $0.sources.append(source) }
    }
    // Under the lock, as the end is: it cannot be made after it was removed.
    try state.withLock { _ in
      try FileManager.default.createDirectory(
        at: url, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    }
  }

  /// Waits for SIGINT or SIGTERM. One that comes while nobody waits removes the directory and ends
  /// the process.
  func untilTerminated() async {
    await withCheckedContinuation { continuation in
      state.withLock { $0.waiting = continuation }
    }
  }

  /// Removes it with everything inside.
  func remove() { try? FileManager.default.removeItem(at: url) }

  private func note(_ number: Int32) {
    state.withLock { state in
      if let waiting = state.waiting.take() { return waiting.resume() }
      remove()
      // The shell and make see that it was the signal; this thread does not go on.
      signal(number, SIG_DFL)
      kill(getpid(), number)
      sleep(1)
      _exit(128 + number)
    }
  }
}
