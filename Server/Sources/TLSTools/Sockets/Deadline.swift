import Foundation

/// A moment on the monotonic clock after which nobody waits any longer. Steps of the wall clock do
/// not move it.
package struct Deadline: Sendable, Comparable {
  private let nanoseconds: Int64

  /// A moment from now; negative waits are over at once, absurd ones are 100 years.
  package static func after(milliseconds: Int64) -> Deadline {
    let bounded = min(max(milliseconds, 0), 3_155_760_000_000)
    return Deadline(nanoseconds: now + bounded * 1_000_000)
  }

  package var hasPassed: Bool { nanoseconds <= Self.now }

  /// What is left, rounded up, so that a wait of this length never ends early; 0 when it is over.
  var millisecondsLeft: Int64 { max(0, (nanoseconds - Self.now + 999_999) / 1_000_000) }

  /// `millisecondsLeft` as poll(2) takes it.
  package var pollTimeout: Int32 { Int32(clamping: millisecondsLeft) }

  package static func < (a: Deadline, b: Deadline) -> Bool { a.nanoseconds < b.nanoseconds }

  private static var now: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }
}
