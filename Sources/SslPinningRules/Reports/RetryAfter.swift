/// Reads the `Retry-After` header field (RFC 9110 §10.2.3): seconds, or a date.
///
/// - A date is read in all three forms that RFC 9110 §5.6.7 demands.
/// - The answer is held within ``ReportRules/retryAfter``: neither an old date nor a typing error may
///   lead to a flood or to silence for years.
package enum RetryAfter {
  /// Seconds from `now` (Unix seconds) that the field asks to wait; `nil` where it cannot be read.
  package static func seconds(_ text: String, at now: Int64) -> Int64? {
    let text = text.drop { $0 == " " || $0 == "\t" }
    let digits = text.utf8.prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    let rest = text.utf8.dropFirst(digits.count)
    let wait: Int64
    if !digits.isEmpty, rest.allSatisfy({ $0 == 0x20 || $0 == 0x09 }) {
      wait = Int64(String(digits) ?? "") ?? .max
    } else if let time = date(text, at: now) {
      wait = time.subtractingReportingOverflow(now).partialValue
    } else {
      return nil
    }
    let bounds = ReportRules.retryAfter
    return min(max(wait, bounds.lowerBound), bounds.upperBound)
  }

  /// The parts of all three forms are the same between other separators; only their order differs.
  private static func date(_ text: Substring, at now: Int64) -> Int64? {
    let parts = text.utf8.split { $0 == 0x20 || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: ",") }
      .map { String($0) ?? "" }
    switch parts.count {
    // Sun, 06 Nov 1994 08:49:37 GMT, and the obsolete Sunday, 06-Nov-94 08:49:37 GMT
    case 6 where parts[5] == "GMT":
      return time(
        year: fullYear(parts[3], at: now), month: parts[2], day: parts[1], clock: parts[4])
    // The obsolete Sun Nov  6 08:49:37 1994
    case 5: return time(year: parts[4], month: parts[1], day: parts[2], clock: parts[3])
    default: return nil
    }
  }

  private static func time(year: String, month: String, day: String, clock: String) -> Int64? {
    guard let month = months.firstIndex(of: month) else { return nil }
    let pad = { (text: String) in text.utf8.count == 1 ? "0" + text : text }
    return RFC3339.unixSeconds("\(year)-\(pad(String(month + 1)))-\(pad(day))T\(clock)Z")
  }

  /// Two digits mean the last year that ends in them and is not more than 50 years ahead.
  private static func fullYear(_ text: String, at now: Int64) -> String {
    guard text.utf8.count == 2, let short = Int(text),
      let current = Int(String(RFC3339.text(now).prefix(4)))
    else { return text }
    let last = current + 50
    return String(last - (last - short) % 100)
  }

  private static let months = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
  ]
}
