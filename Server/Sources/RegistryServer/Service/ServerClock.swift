import Foundation

/// The server's time. Tests pass one that does not wait.
public protocol ServerClock: Sendable {
  /// Unix time in seconds.
  func now() -> Int64

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

  public func uptime() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
  }

  public func sleep(milliseconds: Int64) async throws {
    try await Task.sleep(for: .milliseconds(milliseconds))
  }
}
