import Synchronization

/// A number that only grows, from 0 at the start of the process.
final class Counter: MetricCell {
  static let type = MetricType.counter

  private let count = Atomic<UInt64>(0)

  /// Counts; one relaxed addition, so a request may do it.
  func increment(by amount: UInt64 = 1) { count.wrappingAdd(amount, ordering: .relaxed) }

  /// The count.
  var value: UInt64 { count.load(ordering: .relaxed) }

  func write(as series: SeriesName, to writer: inout ExpositionWriter) {
    writer.sample(series, Double(value))
  }
}
