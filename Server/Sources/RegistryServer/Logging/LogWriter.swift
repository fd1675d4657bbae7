import Foundation
import SslPinningPlatform
import TLSTools

/// Writes lines to a file descriptor on a thread of its own: nobody who logs waits for whoever reads the log.
///
/// - Lines wait in a queue of bounded size. What comes beyond that is dropped and counted, and a line tells
///   how many are missing once the queue moves again.
/// - A reader that hangs keeps this thread, and nothing else. One that left costs lines, and nothing else.
///
/// Unchecked: everything but the descriptor is touched under the condition's lock.
package final class LogWriter: @unchecked Sendable {
  private let descriptor: Int32
  private let limit: Int
  private let note: @Sendable (Int) -> [UInt8]
  private let changed = NSCondition()
  private var queue: [[UInt8]] = []
  private var bytes = 0
  private var untold = 0
  private var dropped = 0
  private var isStarted = false
  private var isWriting = false
  private var isClosed = false

  /// - Parameters:
  ///   - descriptor: where lines go; it stays open.
  ///   - limit: the most bytes that wait; as many may be on their way out.
  ///   - note: the line that says how many are missing.
  package init(
    to descriptor: Int32, limit: Int = 1 << 20, note: @escaping @Sendable (Int) -> [UInt8]
  ) {
    self.descriptor = descriptor
    self.limit = limit
    self.note = note
  }

  /// How many lines were dropped so far.
  var droppedLines: Int { changed.withLock { dropped } }

  /// Has a line written after those before it, or drops it. Never waits.
  package func append(_ line: [UInt8]) {
    changed.withLock {
      guard bytes + line.count <= limit, !isClosed else {
        dropped += 1
        untold += 1
        return
      }
      queue.append(line)
      bytes += line.count
      if !isStarted {
        isStarted = true
        BackgroundThread.start("log") { [self] in
          while let (lines, missing) = next() { write(lines, missing: missing) }
        }
      }
      changed.signal()
    }
  }

  /// Takes no more lines, and waits until all are written, at most so many seconds.
  package func close(within seconds: Double) {
    let end = Date(timeIntervalSinceNow: seconds)
    changed.withLock {
      isClosed = true
      changed.broadcast()
      while isWriting || !queue.isEmpty, changed.wait(until: end) {}
    }
  }

  /// All that waits, and how many lines are missing behind it; `nil` once there will be no more.
  private func next() -> (lines: [[UInt8]], missing: Int)? {
    changed.withLock {
      isWriting = false
      changed.broadcast()
      while queue.isEmpty {
        if isClosed { return nil }
        changed.wait()
      }
      defer { (queue, bytes, untold, isWriting) = ([], 0, 0, true) }
      return (queue, untold)
    }
  }

  private func write(_ lines: [[UInt8]], missing: Int) {
    let written = lines.prefix(while: write).count
    guard written == lines.count, missing == 0 || write(note(missing)) else {
      return changed.withLock {
        dropped += lines.count - written
        untold += lines.count - written + missing
      }
    }
  }

  /// One line in one write where the system takes it whole, so that processes which share the descriptor do not
  /// mix theirs. False: nobody reads any more.
  private func write(_ line: [UInt8]) -> Bool {
    var rest = line[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
      if count > 0 {
        rest = rest.dropFirst(count)
      } else if errno == EAGAIN {
        // Somebody made the descriptor not wait: wait here.
        var wanted = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        _ = poll(&wanted, 1, 1000)
      } else if errno != EINTR {
        return false
      }
    }
    return true
  }
}
