/// Cleans what a stranger wrote before it is kept, logged or shown.
enum ReportText {
  /// The most Unicode scalars of a name, a version, a subject.
  static let longest = 64

  /// The text without control characters, line separators, and the invisible ones by which text can be
  /// made to look like another (bidirectional controls, zero-width characters); at most `limit` scalars.
  static func cleaned(_ text: String, limit: Int = longest) -> String {
    var out = String.UnicodeScalarView()
    var count = 0
    for scalar in text.unicodeScalars where isVisible(scalar) {
      guard count < limit else { break }
      out.append(scalar)
      count += 1
    }
    return String(out)
  }

  private static func isVisible(_ scalar: Unicode.Scalar) -> Bool {
    if scalar.isASCII { return scalar.value >= 0x20 && scalar.value != 0x7f }
    switch scalar.properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned:
      return false
    default: return true
    }
  }
}
