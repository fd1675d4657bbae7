import Foundation
import SslPinningPlatform

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
  private let state = Locked(State())

  /// Listens for SIGINT and SIGTERM, then makes a directory that nobody else can look into.
  init() async throws {
    url = FileManager.default.temporaryDirectory
      .appending(path: "ssl-pinning-demo-\(UUID().uuidString)", directoryHint: .isDirectory)
    for number in [SIGINT, SIGTERM] { await listen(number) }
    // Under the lock, as the end is: it cannot be made after it was removed.
    try state.withLock { _ in
      try FileManager.default.createDirectory(
        at: url, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    }
  }

  /// Returns once a signal would be heard. Until then it has its usual effect, and there is nothing
  /// yet to remove; ignoring it earlier would lose one that comes in between.
  private func listen(_ number: Int32) async {
    let source = DispatchSource.makeSignalSource(signal: number)
    source.setEventHandler { [weak self] in self?.note(number) }
    state.withLock { $0.sources.append(source) }
    await withCheckedContinuation { continuation in
      source.setRegistrationHandler { continuation.resume() }
      source.resume()
    }
  }

  /// Waits for SIGINT or SIGTERM. One that comes while nobody waits removes the directory and ends
  /// the process.
  ///
  /// - Parameter whenWaiting: is called once, when a signal would end the demo in order.
  func untilTerminated(whenWaiting: () -> Void) async {
    await withCheckedContinuation { continuation in
      state.withLock { $0.waiting = continuation }
      whenWaiting()
    }
  }

  /// Removes it with everything inside. More than once, where the demo is still writing: a file that
  /// comes to be meanwhile stops a removal half-way.
  func remove() {
    let path = url.path(percentEncoded: false)
    for _ in 0..<100 where FileManager.default.fileExists(atPath: path) {
      try? FileManager.default.removeItem(at: url)
    }
  }

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
