/// Reads and writes the timestamps of registries (RFC 3339 §5.6).
public enum RFC3339 {
  /// The Unix time in whole seconds, without fractions, or `nil` if the text is not a timestamp.
  public static func unixSeconds(_ text: String) -> Int64? {
    var reader = Reader(rest: text.utf8[...])
    guard let year = reader.digits(4), reader.take("-"), let month = reader.digits(2),
      reader.take("-"), let day = reader.digits(2),
      reader.take("T") || reader.take("t")
        || reader.take(" "), let hour = reader.digits(2), reader.take(":"),
      let minute = reader.digits(2), reader.take(":"), let second = reader.digits(2)
    else { return nil }
    if reader.take(".") { guard reader.skipDigits() > 0 else { return nil } }
    var offset: Int64 = 0
    if !(reader.take("Z") || reader.take("z")) {
      let sign: Int64
      if reader.take("+") { sign = 1 } else if reader.take("-") { sign = -1 } else { return nil }
      guard let hours = reader.digits(2), reader.take(":"), let minutes = reader.digits(2),
        hours < 24, minutes < 60
      else { return nil }
      offset = sign * (hours * 3600 + minutes * 60)
    }
    // Second 60 is a leap second; it becomes the next minute's first.
    guard reader.rest.isEmpty, (1...12).contains(month), day >= 1,
      day <= daysInMonth(month, year: year), hour < 24, minute < 60, second <= 60
    else { return nil }
    let days = daysSinceEpoch(year: year, month: month, day: day)
    return days * 86400 + hour * 3600 + minute * 60 + second - offset
  }

  /// A Unix time in seconds as `YYYY-MM-DDThh:mm:ssZ`.
  public static func text(_ unixSeconds: Int64) -> String {
    let (days, second) = floorDivide(unixSeconds, by: 86400)
    // Howard Hinnant's civil-from-days: eras of 400 years, and years that begin in March.
    let (era, dayOfEra) = floorDivide(days + 719_468, by: 146_097)
    let yearOfEra =
      (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let shifted = (5 * dayOfYear + 2) / 153
    let day = dayOfYear - (153 * shifted + 2) / 5 + 1
    let month = shifted < 10 ? shifted + 3 : shifted - 9
    let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    func pad(_ value: Int64, _ width: Int) -> String {
      let digits = String(value)
      return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
    }
    return "\(pad(year, 4))-\(pad(month, 2))-\(pad(day, 2))"
      + "T\(pad(second / 3600, 2)):\(pad(second / 60 % 60, 2)):\(pad(second % 60, 2))Z"
  }

  private static func daysSinceEpoch(year: Int64, month: Int64, day: Int64) -> Int64 {
    let shiftedYear = month <= 2 ? year - 1 : year
    let (era, yearOfEra) = floorDivide(shiftedYear, by: 400)
    let shiftedMonth = month > 2 ? month - 3 : month + 9
    let dayOfYear = (153 * shiftedMonth + 2) / 5 + day - 1
    let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
    return era * 146_097 + dayOfEra - 719_468
  }

  private static func daysInMonth(_ month: Int64, year: Int64) -> Int64 {
    switch month {
    case 4, 6, 9, 11: 30
    case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
    default: 31
    }
  }

  private static func floorDivide(_ value: Int64, by divisor: Int64) -> (Int64, Int64) {
    let (quotient, remainder) = value.quotientAndRemainder(dividingBy: divisor)
    return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
  }

  private struct Reader {
    var rest: Substring.UTF8View

    mutating func digits(_ count: Int) -> Int64? {
      let part = rest.prefix(count)
      let range = UInt8(ascii: "0")...UInt8(ascii: "9")
      guard part.count == count, part.allSatisfy({ range.contains($0) }) else { return nil }
      rest = rest.dropFirst(count)
      return part.reduce(0) { $0 * 10 + Int64($1 - UInt8(ascii: "0")) }
    }

    mutating func skipDigits() -> Int {
      var count = 0
      while digits(1) != nil { count += 1 }
      return count
    }

    mutating func take(_ character: Unicode.Scalar) -> Bool {
      guard rest.first == UInt8(ascii: character) else { return false }
      rest = rest.dropFirst()
      return true
    }
  }
}
