import SslPinningPlatform
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

/// What a metric's series are: the type that its `# TYPE` line names.
enum MetricType: String, Sendable {
  case counter
  case gauge
  case histogram
}

/// The value of one series. Changed from any thread, read while it changes.
protocol MetricCell: AnyObject, Sendable {
  /// What series of such cells are.
  static var type: MetricType { get }

  /// Writes the sample lines of this series.
  func write(as series: SeriesName, to writer: inout ExpositionWriter)
}

/// The name and the labels of a series, ready to be written.
struct SeriesName: Sendable {
  /// The metric's name.
  let metric: [UInt8]
  /// Its labels as they stand between the braces, escaped; empty where it has none.
  let labels: [UInt8]
}

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

/// A moment at which something ends that is put off again and again: told from two weeks before. While all goes well, it is no line of
/// a page that has ten thousand documents.
final class NearEndGauge: MetricCell {
  static let type = MetricType.gauge

  private let end = Atomic<Int64>(.max)

  /// Sets the moment, in Unix seconds.
  func set(_ end: Int64) { self.end.store(end, ordering: .relaxed) }

  func write(as series: SeriesName, to writer: inout ExpositionWriter) {
    let end = end.load(ordering: .relaxed)
    guard end <= writer.now + 14 * 86_400 else { return }
    writer.sample(series, Double(end))
  }
}

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

/// Requests by kind of path and status code: every combination has its counter from the beginning, so
/// that counting takes no lock. Those that never occurred are not told.
final class CodeCounters: ExposedMetric {
  let name: String
  private let help: String
  private let counters: [Counter]
  private static let codes = 100...599

  init(_ name: String, help: String) {
    self.name = name
    self.help = help
    counters = (0..<PathClass.allCases.count * Self.codes.count).map { _ in Counter() }
  }

  /// Counts a request; a code outside 100…599, which HTTP does not have, counts as 599.
  func count(_ path: PathClass, code: Int) {
    let code = Self.codes.contains(code) ? code : Self.codes.upperBound
    counters[path.rawValue * Self.codes.count + code - Self.codes.lowerBound].increment()
  }

  func write(to writer: inout ExpositionWriter) {
    let metric = Array(name.utf8)
    writer.begin(metric, help: help, type: .counter)
    for path in PathClass.allCases {
      for code in Self.codes {
        let counter = counters[path.rawValue * Self.codes.count + code - Self.codes.lowerBound]
        guard counter.value > 0 else { continue }
        let labels = ExpositionWriter.labels(["code", "path_class"], ["\(code)", path.label])
        counter.write(as: SeriesName(metric: metric, labels: labels), to: &writer)
      }
    }
  }
}

/// Failed probes of one document's endpoints since they were last all well: the value of
/// `ssl_pinning_errors`.
///
/// - It counts up with every failed probe while any endpoint fails, so that `rate()` over it is the rate
///   of failures.
/// - It is back at 0 once every endpoint's newest probe has succeeded and the last failure is
///   ``holdSeconds`` ago, so that an alert `> 0` ends with its cause. `rate()` takes the fall for the
///   restart of a counter and adds nothing.
/// - A scrape changes nothing: two servers that scrape see the same.
struct FailureStreak: Sendable, Equatable {
  /// For how many seconds a failure that is over is still told: twice the longest usual scrape
  /// interval, so that no scraper misses it.
  static let holdSeconds: Int64 = 120

  private var count: UInt64 = 0
  private var lastFailure: Int64 = 0
  private var failing: Set<String> = []

  /// Enters a failed probe an endpoint.
  mutating func failed(_ endpoint: String, at now: Int64) {
    count = value(at: now) + 1
    lastFailure = now
    failing.insert(endpoint)
  }

  /// Enters a probe that succeeded.
  mutating func succeeded(_ endpoint: String) { failing.remove(endpoint) }

  /// Forgets endpoints that are watched no more.
  mutating func keep(only endpoints: Set<String>) { failing.formIntersection(endpoints) }

  /// The value to tell.
  func value(at now: Int64) -> UInt64 {
    // A last failure in the future was entered under a clock that has been set back since.
    let isRecent = lastFailure <= now && now - lastFailure < Self.holdSeconds
    return failing.isEmpty && !isRecent ? 0 : count
  }
}
