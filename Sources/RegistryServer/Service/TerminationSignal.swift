import Foundation
import Synchronization

/// Waits for the signals that ask a process to end.
enum TerminationSignal {
  /// Waits for SIGTERM or SIGINT and returns its name. From then on both have their usual effect
  /// again, so a second one ends a process that hangs while it stops.
  ///
  /// SIGPIPE is ignored from here on: a closed log pipe or peer is an error code, never the end.
  static func wait() async -> String {
    signal(SIGPIPE, SIG_IGN)
    let waiting = Mutex<CheckedContinuation<String, Never>?>(nil)
    var sources: [any DispatchSourceSignal] = []
    let name = await withCheckedContinuation { continuation in
      waiting.withLock { $0 = continuation }
      for (number, name) in [(SIGTERM, "SIGTERM"), (SIGINT, "SIGINT")] {
        // A dispatch source only listens; the default effect has to be taken away beside it.
        signal(number, SIG_IGN)
        let source = DispatchSource.makeSignalSource(signal: number)
        source.setEventHandler { waiting.withLock { $0.take() }?.resume(returning: name) }
        source.resume()
        sources.append(source)
      }
    }
    for source in sources { source.cancel() }
    for number in [SIGTERM, SIGINT] { signal(number, SIG_DFL) }
    return name
  }
}
