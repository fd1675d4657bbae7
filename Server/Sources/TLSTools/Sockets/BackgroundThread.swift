import Foundation

/// A thread for work that waits for ever. It takes no signals: those are for the thread that watches
/// for them, and a broken connection must not end the process by SIGPIPE.
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
