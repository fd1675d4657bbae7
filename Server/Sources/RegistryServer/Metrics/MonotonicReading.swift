/// Readings of a clock that is never set, for measuring how long something takes.
enum MonotonicReading {
  private static let start = ContinuousClock.now

  /// The time since the first reading of the process.
  static func now() -> Duration { start.duration(to: .now) }

  /// The same in milliseconds.
  static let milliseconds: @Sendable () -> Int64 = {
    let reading = now().components
    return reading.seconds * 1000 + reading.attoseconds / 1_000_000_000_000_000
  }
}
