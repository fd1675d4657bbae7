import Foundation

/// Counts threads, so that stopping a server can wait for the last one.
package final class WorkerThreads: @unchecked Sendable {
  private let changed = NSCondition()
  private var running = 0

  package init() {}

  /// Runs `work` on a new thread.
  package func start(_ name: String, _ work: @escaping @Sendable () -> Void) {
    changed.withLock { running += 1 }
    let thread = Thread { [self] in
      work()
      changed.withLock {
        running -= 1
        changed.broadcast()
      }
    }
    thread.name = name
    // Handlers are callers' code, and handshakes with large RSA keys need room.
    thread.stackSize = 1 << 20
    thread.start()
  }

  /// Waits for all threads; false if some still run after `seconds`.
  @discardableResult
  package func wait(seconds: Double) -> Bool {
    let deadline = Date(timeIntervalSinceNow: seconds)
    return changed.withLock {
      while running > 0 {
        if !changed.wait(until: deadline) { return running == 0 }
      }
      return true
    }
  }
}

/// A thread for endless work. It blocks all signals: another thread handles them, and a broken connection
/// must not end the process by SIGPIPE.
package enum BackgroundThread {
  package static func start(_ name: String, _ work: @escaping @Sendable () -> Void) {
    let thread = Thread {
      var all = sigset_t()
      sigfillset(&all)
      pthread_sigmask(SIG_BLOCK, &all, nil)
      work()
    }
    thread.name = name
    thread.start()
  }
}
