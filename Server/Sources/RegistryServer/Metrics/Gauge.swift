import Synchronization

/// A number that rises and falls; the last one set counts.
final class Gauge: MetricCell {
  static let type = MetricType.gauge

  private let bits = Atomic<UInt64>(0)

  /// Sets it.
  func set(_ value: Double) { bits.store(value.bitPattern, ordering: .relaxed) }

  /// The number last set; 0 before.
  var value: Double { Double(bitPattern: bits.load(ordering: .relaxed)) }

  func write(as series: SeriesName, to writer: inout ExpositionWriter) {
    writer.sample(series, value)
  }
}
