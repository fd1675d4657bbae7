import Foundation
import SslPinningPlatform

/// A machine's time. Tests pass one that does not wait.
public protocol ServerClock: Sendable {
  /// Unix time in seconds, as the machine's clock has it: anybody may set that.
  func now() -> Int64

  /// Seconds of a clock that nobody sets and that goes on while the machine sleeps; from any beginning.
  func elapsed() -> Int64

  /// Whether the kernel calls the machine's clock synchronised.
  var isSynchronized: Bool { get }

  /// Milliseconds of a clock that never jumps, whatever is done to the machine's; from any beginning.
  func uptime() -> Int64

  /// Waits; throws when the task is cancelled.
  func sleep(milliseconds: Int64) async throws
}

/// The system's clock.
public struct SystemClock: ServerClock {
  /// The system's clock.
  public init() {}

  public func now() -> Int64 { Int64(time(nil)) }

  public func elapsed() -> Int64 { continuousSeconds() }

  public var isSynchronized: Bool { isClockSynchronized() }

  public func uptime() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
  }

  public func sleep(milliseconds: Int64) async throws {
    try await Task.sleep(for: .milliseconds(milliseconds))
  }
}
