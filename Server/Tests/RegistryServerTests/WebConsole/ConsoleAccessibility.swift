import TestSupport

extension ConsolePage {
  /// See ``Browser/textsOfLowContrast()``.
  func textsOfLowContrast() async throws -> [String] { try await browser.textsOfLowContrast() }

  /// See ``Browser/axeViolations()``.
  func axeViolations() async throws -> [String] { try await browser.axeViolations() }

  /// See ``Browser/unnamedControls()``.
  func unnamedControls() async throws -> [String] { try await browser.unnamedControls() }
}
