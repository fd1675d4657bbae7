import TestSupport

extension ConsolePage {
  /// See ``Browser/textsOfLowContrast()``.
  func textsOfLowContrast() async throws -> [String] { try await browser.textsOfLowContrast() }

  /// See ``Browser/axeViolations()``.
  func axeViolations() async throws -> [String] { try await browser.axeViolations() }

  /// What axe finds in a window of a desk and in one of a telephone, each with the width it was found at.
  func axeViolationsAtBothWidths() async throws -> [String] {
    var found: [String] = []
    for width: Int64 in [390, 1280] {
      try await browser.setSize(width: width, height: 800)
      found += try await axeViolations().map { "\($0) at \(width)" }
    }
    return found
  }

  /// See ``Browser/unnamedControls()``.
  func unnamedControls() async throws -> [String] { try await browser.unnamedControls() }
}
