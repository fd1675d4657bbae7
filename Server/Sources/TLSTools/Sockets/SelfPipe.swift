import CSslPinningShims
import Foundation

/// Ends a thread's wait for a socket, from another thread. It stays signalled.
package final class SelfPipe: Sendable {
  /// Why a wait ended.
  package enum Reason {
    case woken
    case ready
    case timedOut
  }

  private let reading: Int32
  private let writing: Int32

  package init() {
    var ends: [Int32] = [-1, -1]
    if pipe(&ends) == 0 {
      for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    }
    (reading, writing) = (ends[0], ends[1])
  }

  deinit {
    close(reading)
    close(writing)
  }

  /// Ends the current wait and every later one.
  package func wake() {
    var byte: UInt8 = 0
    _ = write(writing, &byte, 1)
  }

  /// Waits until a socket is readable (or has ended), a wake-up comes, or the milliseconds are over.
  package func wait(for socket: Int32 = -1, milliseconds: Int) -> Reason {
    let end = ContinuousClock.now + .milliseconds(milliseconds)
    while true {
      var files = [
        pollfd(fd: reading, events: Int16(POLLIN), revents: 0),
        pollfd(fd: socket, events: Int16(POLLIN), revents: 0),
      ]
      let left = max(0, Int32(clamping: (end - .now).milliseconds))
      let count = poll(&files, nfds_t(files.count), left)
      if files[0].revents != 0 { return .woken }
      if files[1].revents != 0 { return .ready }
      if count == 0 || (count < 0 && errno != EINTR) { return .timedOut }
    }
  }
}

extension Duration {
  /// In whole milliseconds, rounded up.
  package var milliseconds: Int64 {
    let (seconds, attoseconds) = components
    return seconds * 1000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
  }
}

/// A flag that ends every poll(2) on its descriptor. Any thread may raise it.
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
