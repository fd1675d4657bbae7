import Foundation

/// The times that a client lives by, passed in so that tests turn them.
package struct Clocks: Sendable {
  /// Unix time in seconds: wrong on many devices, and set by people.
  package var wall: @Sendable () -> Int64
  /// Seconds of a clock that never goes back: for intervals.
  package var steady: @Sendable () -> Int64

  /// Seconds that a request waits for newer pins after a mismatch. Tests on busy machines are more
  /// patient than apps.
  package var longestRefresh: Double

  package init(
    wall: @escaping @Sendable () -> Int64, steady: @escaping @Sendable () -> Int64,
    longestRefresh: Double = 3
  ) {
    self.wall = wall
    self.steady = steady
    self.longestRefresh = longestRefresh
  }

  /// The clocks of the system.
  package static let system = Clocks(
    wall: { Int64(Date().timeIntervalSince1970) },
    steady: { Int64(ProcessInfo.processInfo.systemUptime) })
}
