/// Writes metrics as Prometheus reads them: text format 0.0.4.
///
///     # HELP ssl_pinning_errors Failed probes …
///     # TYPE ssl_pinning_errors gauge
///     ssl_pinning_errors{file="example.com.json"} 0
///
/// - In help a backslash and a line feed are escaped; in a label's value a double quote too.
/// - Whole numbers are written as such, others so that they read back as the same double.
struct ExpositionWriter {
  /// What the answer's `Content-Type` says.
  static let contentType = "text/plain; version=0.0.4; charset=utf-8"

  private(set) var bytes: [UInt8] = []
  /// The time of the scrape, in Unix seconds.
  let now: Int64

  init(at now: Int64, reserving capacity: Int = 16 * 1024) {
    self.now = now
    bytes.reserveCapacity(capacity)
  }

  /// Writes a metric's `HELP` and `TYPE`; its samples follow.
  mutating func begin(_ name: [UInt8], help: String, type: MetricType) {
    append("# HELP ")
    bytes += name
    bytes.append(UInt8(ascii: " "))
    Self.escape(help.utf8, quotes: false, to: &bytes)
    append("\n# TYPE ")
    bytes += name
    bytes.append(UInt8(ascii: " "))
    bytes += type.rawValue.utf8
    bytes.append(UInt8(ascii: "\n"))
  }

  /// Writes one sample.
  ///
  /// - Parameters:
  ///   - suffix: what follows the metric's name, such as `_count`.
  ///   - extra: one more label after the others, escaped.
  mutating func sample(
    _ series: SeriesName, suffix: StaticString = "", extra: [UInt8] = [], _ value: Double
  ) {
    bytes += series.metric
    append(suffix)
    if !series.labels.isEmpty || !extra.isEmpty {
      bytes.append(UInt8(ascii: "{"))
      bytes += series.labels
      if !series.labels.isEmpty, !extra.isEmpty { bytes.append(UInt8(ascii: ",")) }
      bytes += extra
      bytes.append(UInt8(ascii: "}"))
    }
    bytes.append(UInt8(ascii: " "))
    append(value)
    bytes.append(UInt8(ascii: "\n"))
  }

  /// Labels as they stand between the braces.
  static func labels(_ names: [String], _ values: [String]) -> [UInt8] {
    var out: [UInt8] = []
    for (name, value) in zip(names, values) {
      if !out.isEmpty { out.append(UInt8(ascii: ",")) }
      out += name.utf8
      out += "=\"".utf8
      escape(value.utf8, quotes: true, to: &out)
      out.append(UInt8(ascii: "\""))
    }
    return out
  }

  /// A number as a sample has it.
  static func text(of value: Double) -> String {
    if let whole = Int64(exactly: value), whole.magnitude < 1 << 53 { return String(whole) }
    if value.isNaN { return "NaN" }
    if value.isInfinite { return value < 0 ? "-Inf" : "+Inf" }
    return "\(value)"
  }

  private static func escape(_ text: String.UTF8View, quotes: Bool, to out: inout [UInt8]) {
    for byte in text {
      switch byte {
      case UInt8(ascii: "\\"): out += [byte, byte]
      case UInt8(ascii: "\n"): out += [UInt8(ascii: "\\"), UInt8(ascii: "n")]
      case UInt8(ascii: "\"") where quotes: out += [UInt8(ascii: "\\"), byte]
      default: out.append(byte)
      }
    }
  }

  private mutating func append(_ text: StaticString) {
    text.withUTF8Buffer { bytes.append(contentsOf: $0) }
  }

  private mutating func append(_ value: Double) {
    guard let whole = Int64(exactly: value), whole.magnitude < 1 << 53 else {
      bytes += Self.text(of: value).utf8
      return
    }
    // Digit by digit: a large page has tens of thousands of whole numbers.
    if whole < 0 { bytes.append(UInt8(ascii: "-")) }
    let start = bytes.count
    var rest = whole.magnitude
    repeat {
      bytes.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10))
      rest /= 10
    } while rest > 0
    bytes[start...].reverse()
  }
}
