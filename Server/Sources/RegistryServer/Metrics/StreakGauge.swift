import SslPinningPlatform

/// A series that tells a ``FailureStreak``.
final class StreakGauge: MetricCell {
  static let type = MetricType.gauge

  private let streak = Locked(FailureStreak())

  /// Changes the streak.
  func update(_ change: (inout FailureStreak) -> Void) { streak.withLock { change(&$0) } }

  func write(as series: SeriesName, to writer: inout ExpositionWriter) {
    let now = writer.now
    writer.sample(series, Double(streak.withLock { $0.value(at: now) }))
  }
}
