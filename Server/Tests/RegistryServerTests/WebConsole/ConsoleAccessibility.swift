import TestSupport

extension ConsolePage {
  /// See ``Browser/textsOfLowContrast()``.
  func textsOfLowContrast() async throws -> [String] { try await browser.textsOfLowContrast() }

  /// See ``Browser/unnamedControls()``.
  func unnamedControls() async throws -> [String] { try await browser.unnamedControls() }
}
