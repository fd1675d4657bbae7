import Synchronization

/// A moment, told as the seconds that are left until it; negative once it has passed.
///
/// Kept as the moment, so that the number is right at the time of the scrape and not at that of the
/// last probe.
final class CountdownGauge: MetricCell {
  static let type = MetricType.gauge

  private let moment = Atomic<Int64>(0)

  /// Sets the moment, in Unix seconds.
  func set(until moment: Int64) { self.moment.store(moment, ordering: .relaxed) }

  func write(as series: SeriesName, to writer: inout ExpositionWriter) {
    let left = moment.load(ordering: .relaxed).subtractingReportingOverflow(writer.now)
    writer.sample(series, Double(left.partialValue))
  }
}
