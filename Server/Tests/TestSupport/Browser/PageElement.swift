import CanonicalJSON

/// An element of a page, as long as it is part of the page.
public struct PageElement: Sendable {
  /// How WebDriver writes a reference to an element (W3C WebDriver §12).
  private static let key = "element-6066-11e4-a52e-4f735466cecf"

  private let id: String
  private let browser: Browser

  init?(_ value: JSONValue, in browser: Browser) {
    guard let id = value.objectValue?[Self.key]?.stringValue else { return nil }
    (self.id, self.browser) = (id, browser)
  }

  /// The reference, as an argument of a script.
  public var reference: JSONValue { .object([Self.key: .string(id)]) }

  /// The text as it is rendered.
  public func text() async throws -> String { try await read("/text") }

  /// The name that assistive technology says.
  public func label() async throws -> String { try await read("/computedlabel") }

  /// The role that assistive technology says.
  public func role() async throws -> String { try await read("/computedrole") }

  /// An attribute; nil without.
  public func attribute(_ name: String) async throws -> String? {
    try await browser.send("/element/\(id)/attribute/\(name)").stringValue
  }

  /// Whether it can be seen.
  public func isDisplayed() async throws -> Bool {
    try await browser.send("/element/\(id)/displayed").boolValue ?? false
  }

  /// Whether it can be used.
  public func isEnabled() async throws -> Bool {
    try await browser.send("/element/\(id)/enabled").boolValue ?? false
  }

  /// Scrolls to it and clicks in its middle. Something that lies above it is an error.
  public func click() async throws { try await browser.send("/element/\(id)/click", [:]) }

  /// Types into it; for an input of files, the path of one.
  public func type(_ text: String) async throws {
    try await browser.send("/element/\(id)/value", ["text": .string(text)])
  }

  /// Empties an input.
  public func clear() async throws { try await browser.send("/element/\(id)/clear", [:]) }

  private func read(_ command: String) async throws -> String {
    try await browser.send("/element/\(id)\(command)").stringValue ?? ""
  }
}
