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
