import Foundation

/// Counts threads, so that stopping a server can wait for the last one.
package final class WorkerThreads: @unchecked Sendable {
  private final class Work: Sendable {
    let name: String
    let work: @Sendable () -> Void

    init(_ name: String, _ work: @escaping @Sendable () -> Void) {
      (self.name, self.work) = (name, work)
    }
  }

  private let changed = NSCondition()
  private let most: Int
  private var running = 0

  /// - Parameter most: so many at once.
  package init(atMost most: Int = .max) { self.most = most }

  /// Runs `work` on a new thread.
  ///
  /// - Returns: false if there is none: systems bound the threads of a service, and `work` never runs then. Foundation's
  ///   threads keep that to themselves.
  package func start(_ name: String, _ work: @escaping @Sendable () -> Void) -> Bool {
    let hasRoom = changed.withLock {
      guard running < most else { return false }
      running += 1
      return true
    }
    guard hasRoom else { return false }
    let isStarted = Self.begin(
      Work(name) { [self] in
        work()
        end()
      })
    if !isStarted { end() }
    return isStarted
  }

  private func end() {
    changed.withLock {
      running -= 1
      changed.broadcast()
    }
  }

  private static func begin(_ work: Work) -> Bool {
    var attributes = pthread_attr_t()
    guard pthread_attr_init(&attributes) == 0 else { return false }
    defer { pthread_attr_destroy(&attributes) }
    pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
    // Handlers are callers' code, and handshakes with large RSA keys need room.
    pthread_attr_setstacksize(&attributes, 1 << 20)
    let own = Unmanaged.passRetained(work)
    var thread = pthread_t()
    let code = pthread_create(&thread, &attributes, run, own.toOpaque())
    if code != 0 { own.release() }
    return code == 0
  }

  private static let run: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = {
    guard let own = $0 else { return nil }
    let work = Unmanaged<Work>.fromOpaque(own).takeRetainedValue()
    Thread.current.name = work.name
    work.work()
    return nil
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
