/// Durations as Go's `time.ParseDuration` writes them: `60s`, `1m`, `1h30m`, `1.5s`, `500ms`.
///
/// The field's configurations carry them, so they are read the same way; the days (`7d`) are ours.
/// A bare number is refused (except 0): nobody can tell seconds from nanoseconds in it.
public enum GoDuration {
  /// The duration in milliseconds, or `nil` where the text is none, is negative, or is longer than
  /// 100 years. Parts below a millisecond are dropped.
  public static func milliseconds(_ text: String) -> Int64? {
    if text == "0" { return 0 }
    var rest = text.utf8[...]
    guard !rest.isEmpty else { return nil }
    var total = 0.0
    while !rest.isEmpty {
      guard let value = number(&rest), let factor = unit(&rest) else { return nil }
      total += value * factor
    }
    let limit = 100 * 366 * 86_400_000.0
    return total <= limit ? Int64(total) : nil
  }

  /// The shortest text for a duration in milliseconds, for messages: `1h30m`, `2.5s`.
  public static func text(milliseconds: Int64) -> String {
    var rest = milliseconds
    var out = ""
    for (name, size) in [("h", 3_600_000), ("m", 60_000)] as [(String, Int64)] where rest >= size {
      out += "\(rest / size)\(name)"
      rest %= size
    }
    if rest > 0 || out.isEmpty {
      out += rest % 1000 == 0 ? "\(rest / 1000)s" : "\(rest)ms"
    }
    return out
  }

  private static func number(_ rest: inout Substring.UTF8View) -> Double? {
    let text = rest.prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) || $0 == 0x2e }
    rest = rest.dropFirst(text.count)
    guard text.contains(where: { $0 != 0x2e }) else { return nil }
    return Double("0" + String(decoding: text, as: UTF8.self))
      ?? Double(String(decoding: text, as: UTF8.self) + "0")
  }

  private static func unit(_ rest: inout Substring.UTF8View) -> Double? {
    for (name, factor) in units where rest.starts(with: name.utf8) {
      rest = rest.dropFirst(name.utf8.count)
      return factor
    }
    return nil
  }

  /// In milliseconds; a unit stands before the units that are its beginning.
  private static let units: [(String, Double)] = [
    ("ns", 1e-6), ("us", 1e-3), ("µs", 1e-3), ("μs", 1e-3), ("ms", 1), ("s", 1000),
    ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000),
  ]
}
