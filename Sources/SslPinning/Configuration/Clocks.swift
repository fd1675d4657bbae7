import Foundation
import SslPinningPlatform

/// The times that a client lives by, passed in so that tests turn them.
package struct Clocks: Sendable {
  /// Unix time in seconds: wrong on many devices, and set by people.
  package var wall: @Sendable () -> Int64
  /// Seconds of a clock that never goes back, and goes on while the device sleeps: for intervals.
  package var steady: @Sendable () -> Int64
  /// Waits for so many seconds; throws once the task is cancelled.
  package var sleep: @Sendable (Double) async throws -> Void
  /// A number in 0..<1, by which waits are spread.
  package var random: @Sendable () -> Double

  /// Seconds that a request waits for newer pins after a mismatch, and the start of a client for the
  /// network while it has a registry at hand. Tests on busy machines are more patient than apps.
  package var longestRefresh: Double

  package init(
    wall: @escaping @Sendable () -> Int64, steady: @escaping @Sendable () -> Int64,
    sleep: @escaping @Sendable (Double) async throws -> Void = Clocks.systemSleep,
    random: @escaping @Sendable () -> Double = { .random(in: 0..<1) },
    longestRefresh: Double = 3
  ) {
    self.wall = wall
    self.steady = steady
    self.sleep = sleep
    self.random = random
    self.longestRefresh = longestRefresh
  }

  /// The clocks of the system.
  package static let system = Clocks(wall: wallSeconds, steady: continuousSeconds)

  @Sendable private static func wallSeconds() -> Int64 { Date().unixSeconds }

  /// A real wait; what is no number or longer than a day is a day. Time that the device sleeps counts.
  package static let systemSleep = waits(wall: wallSeconds, steady: continuousSeconds)

  /// Waits that end with the nap in which one of these clocks saw the device sleep for as long.
  package static func waits(
    wall: @escaping @Sendable () -> Int64, steady: @escaping @Sendable () -> Int64,
    nap: @escaping @Sendable (Double) async throws -> Void = ContinuousWait.nap
  ) -> @Sendable (Double) async throws -> Void {
    { try await ContinuousWait(wall: wall, steady: steady).wait($0, nap: nap) }
  }
}
