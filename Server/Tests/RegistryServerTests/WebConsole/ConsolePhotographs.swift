import Foundation
import TestSupport

extension ConsolePage {
  /// Where pictures of the pages are kept for whoever wants to probe them.
  private static let folder = Vectors.package
    .appending(path: ".build/screenshots", directoryHint: .isDirectory)

  /// Takes a picture of the whole page in both schemes.
  func photograph(_ name: String, width: Int64 = 1280) async throws {
    for scheme in Browser.ColorScheme.allCases {
      try await browser.prefer(scheme)
      let height =
        try await browser.run("return document.documentElement.scrollHeight").integerValue ?? 0
      try await browser.setSize(width: width, height: min(max(height, 600), 6000))
      try await browser.writeScreenshot(
        to: Self.folder.appending(path: "\(name)-\(scheme.rawValue).png"))
      try await browser.setSize(width: width, height: width < 600 ? 800 : 900)
    }
    try await browser.prefer(.light)
  }
}
