import Foundation

#if canImport(Darwin)
  import Darwin
#endif

/// Waits in naps of at most ``longestNap`` and looks at the clocks after each: the system's own wait
/// stands still while the device sleeps, and a schedule must not be late by a night.
package struct ContinuousWait: Sendable {
  /// Seconds after which a device that woke up finds out what it is late for, at most.
  package static let longestNap = 30.0

  /// Seconds that one wait takes at most: a day.
  package static let longest = 86_400.0

  /// By the steady clock alone: somebody who sets the device's clock ends no request.
  package static let ofRequests = ContinuousWait(wall: continuousSeconds, steady: continuousSeconds)

  private let wall: @Sendable () -> Int64
  private let steady: @Sendable () -> Int64

  /// - Parameters:
  ///   - wall: Unix time in seconds.
  ///   - steady: seconds of a clock that never goes back.
  package init(wall: @escaping @Sendable () -> Int64, steady: @escaping @Sendable () -> Int64) {
    self.wall = wall
    self.steady = steady
  }

  /// Waits; what is no number or longer than a day is a day. Time that the device sleeps counts.
  ///
  /// - Parameter nap: waits for so many seconds of time awake.
  /// - Throws: what `nap` throws: `CancellationError` once the task is cancelled.
  package func wait(_ seconds: Double, nap: (Double) async throws -> Void = Self.nap) async throws {
    let end = seconds < Self.longest ? max(0, seconds) : Self.longest
    let (wall, steady) = (self.wall(), self.steady())
    var awake = 0.0
    while true {
      // The clocks count whole seconds: what they say is at least a second less than what passed.
      let asleep = max(self.wall() - wall, self.steady() - steady) - 1
      let left = end - max(awake, Double(asleep))
      guard left > 0 else { return }
      let next = min(left, Self.longestNap)
      try await nap(next)
      awake += next
    }
  }

  /// Waits for more than a day, too; for ever, if that is asked for.
  ///
  /// - Throws: as ``wait(_:nap:)``.
  package func waitOut(
    _ seconds: Double, nap: (Double) async throws -> Void = Self.nap
  ) async throws {
    var left = seconds
    repeat {
      try await wait(left, nap: nap)
      left -= Self.longest
    } while left > 0
  }

  /// The system's wait.
  package static func nap(_ seconds: Double) async throws {
    try await Task.sleep(nanoseconds: UInt64(seconds * 1_000_000_000))
  }
}

/// Seconds of a clock that never goes back and does not stand still while the machine sleeps: a device
/// that was asleep for a night is late for everything that was due in it.
///
/// The system's uptime stands still then, on Apple's systems and on Linux. There it is also one of the calls
/// that an app has to give Apple a reason for; this one is not.
package func continuousMoment() -> Double {
  #if canImport(Darwin)
    Double(clock_gettime_nsec_np(CLOCK_MONOTONIC_RAW)) / 1_000_000_000
  #else
    var time = timespec()
    // Fails for an unknown clock only, which Linux has had since 2.6.39.
    if clock_gettime(CLOCK_BOOTTIME, &time) != 0 { clock_gettime(CLOCK_MONOTONIC, &time) }
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1_000_000_000
  #endif
}

/// Whole seconds of ``continuousMoment()``.
package func continuousSeconds() -> Int64 { Int64(continuousMoment()) }
