/// A page of metrics, read as strictly as the text format 0.0.4 allows: a family's lines stand together,
/// behind one `HELP` and one `TYPE`; no series stands twice.
struct PrometheusPage {
  struct Fault: Error, CustomStringConvertible {
    let description: String
  }

  /// The type of each metric.
  private(set) var types: [String: String] = [:]
  /// The value of each series, by name and labels as they are written.
  private(set) var samples: [String: Double] = [:]
  /// The series in the order written.
  private(set) var order: [String] = []

  init(_ bytes: [UInt8]) throws {
    guard let text = String(validating: bytes, as: UTF8.self), text.last == "\n" else {
      throw Fault(description: "no UTF-8, or no line feed at the end")
    }
    var current = ""
    for line in text.split(separator: "\n", omittingEmptySubsequences: false).dropLast() {
      let words = line.split(separator: " ", maxSplits: 3, omittingEmptySubsequences: false)
      if line.hasPrefix("# HELP ") {
        current = String(words[2])
        guard words.count == 4, types[current] == nil else {
          throw Fault(description: "second or empty help: \(line)")
        }
      } else if line.hasPrefix("# TYPE ") {
        guard words.count == 4, words[2] == current, types[current] == nil else {
          throw Fault(description: "type without help: \(line)")
        }
        types[current] = String(words[3])
      } else {
        try readSample(String(line), of: current)
      }
    }
  }

  private mutating func readSample(_ line: String, of metric: String) throws {
    guard let space = line.lastIndex(of: " ") else { throw Fault(description: "no value: \(line)") }
    let series = String(line[..<space])
    let name = series.prefix { $0 != "{" }
    let suffixes = types[metric] == "histogram" ? ["_bucket", "_sum", "_count"] : [""]
    guard let value = Double(line[line.index(after: space)...]),
      suffixes.contains(where: { metric + $0 == name })
    else { throw Fault(description: "not a sample of \(metric): \(line)") }
    guard samples.updateValue(value, forKey: series) == nil else {
      throw Fault(description: "\(series) stands twice")
    }
    order.append(series)
  }
}
