import Foundation
import SslPinningPlatform

/// Counts threads, so that stopping a server can wait for the last one.
package final class WorkerThreads: @unchecked Sendable {
  private let changed = NSCondition()
  private let most: Int
  private var running = 0

  /// - Parameter most: so many at once.
  package init(atMost most: Int = .max) { self.most = most }

  /// Runs `work` on a new thread.
  ///
  /// - Returns: false if there is none: systems bound the threads of a service, and `work` never runs then.
  package func start(_ name: String, _ work: @escaping @Sendable () -> Void) -> Bool {
    let hasRoom = changed.withLock {
      guard running < most else { return false }
      running += 1
      return true
    }
    guard hasRoom else { return false }
    // Handlers are callers' code, and handshakes with large RSA keys need room.
    let isStarted = DetachedThread.start(stackBytes: 1 << 20) { [self] in
      Thread.current.name = name
      work()
      end()
    }
    if !isStarted { end() }
    return isStarted
  }

  private func end() {
    changed.withLock {
      running -= 1
      changed.broadcast()
    }
  }

  /// What ``start(_:_:)`` could not do, as callers tell it.
  package static let exhausted = SocketError.system(operation: "start a thread", code: EAGAIN)

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
    let run: @Sendable () -> Void = {
      var all = sigset_t()
      sigfillset(&all)
      pthread_sigmask(SIG_BLOCK, &all, nil)
      work()
    }
    let isStarted = DetachedThread.start(stackBytes: 8 << 20) {
      Thread.current.name = name
      run()
    }
    // No thread is to be had: better late, from the pool, than never.
    if !isStarted { DispatchQueue.global().async(execute: run) }
  }
}
