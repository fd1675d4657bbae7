import CSslPinningShims
import Foundation

/// A flag that ends every poll(2) which watches its descriptor. Raised from any thread.
package final class EventSignal: Sendable {
  /// Readable while raised.
  package let descriptor: Int32

  package init() throws(SocketError) {
    descriptor = pp_tls_event()
    guard descriptor >= 0 else { throw .system(operation: "eventfd", code: errno) }
  }

  deinit { close(descriptor) }

  package func raise() {
    var one: UInt64 = 1
    _ = write(descriptor, &one, 8)
  }

  func lower() {
    var count: UInt64 = 0
    _ = read(descriptor, &count, 8)
  }

  package var isRaised: Bool { !sleep(milliseconds: 0) }

  /// Waits; false when the signal cut the wait short.
  package func sleep(milliseconds: Int) -> Bool {
    let deadline = Deadline.after(milliseconds: Int64(milliseconds))
    while true {
      var watched = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
      let ready = poll(&watched, 1, deadline.pollTimeout)
      if ready > 0 { return false }
      if ready == 0, deadline.hasPassed { return true }
    }
  }
}
