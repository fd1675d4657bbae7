import Synchronization

/// How long things took: a count for each range of durations, and their sum.
///
/// An observation is two relaxed additions. A reader may see the one without the other; the count it
/// tells is always the sum of the ranges it tells.
final class Histogram: MetricCell {
  static let type = MetricType.histogram

  private let bounds: HistogramBounds
  /// One for each bound, and one for what is beyond the last.
  private let counts: [Counter]
  private let nanoseconds = Counter()

  init(bounds: HistogramBounds) {
    self.bounds = bounds
    counts = (0...bounds.nanoseconds.count).map { _ in Counter() }
  }

  /// Enters a duration; a negative one, from a clock that was set back, counts as none at all.
  func observe(_ duration: Duration) {
    let (seconds, attoseconds) = duration.components
    let whole = UInt64(clamping: seconds).multipliedReportingOverflow(by: 1_000_000_000)
    let total =
      whole.overflow
      ? UInt64.max / 2 : whole.partialValue &+ UInt64(clamping: attoseconds / 1_000_000_000)
    counts[bounds.place(of: total)].increment()
    nanoseconds.increment(by: total)
  }

  func write(as series: SeriesName, to writer: inout ExpositionWriter) {
    var count: UInt64 = 0
    for (cell, label) in zip(counts, bounds.labels) {
      count += cell.value
      writer.sample(series, suffix: "_bucket", extra: label, Double(count))
    }
    writer.sample(series, suffix: "_sum", Double(nanoseconds.value) / 1e9)
    writer.sample(series, suffix: "_count", Double(count))
  }
}

/// The upper bounds of a histogram's ranges, each included in its range.
struct HistogramBounds: Sendable {
  let nanoseconds: [UInt64]
  /// `le="0.005"` and so on, the last one `le="+Inf"`.
  let labels: [[UInt8]]

  /// Bounds in milliseconds, rising.
  init(milliseconds: [Double]) {
    nanoseconds = milliseconds.map { UInt64($0 * 1e6) }
    labels =
      milliseconds.map { Array("le=\"\(ExpositionWriter.text(of: $0 / 1000))\"".utf8) }
      + [Array("le=\"+Inf\"".utf8)]
  }

  /// In which range a duration falls.
  func place(of duration: UInt64) -> Int {
    nanoseconds.firstIndex { duration <= $0 } ?? nanoseconds.count
  }
}
