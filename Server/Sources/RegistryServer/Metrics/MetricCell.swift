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
