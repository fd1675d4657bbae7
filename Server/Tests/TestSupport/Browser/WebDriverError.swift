/// What chromedriver refused, in its words (W3C WebDriver §6.6).
public struct WebDriverError: Error, Equatable, CustomStringConvertible {
  /// Such as `no such element`.
  public let code: String
  public let message: String

  public var description: String { "webdriver: \(code): \(message)" }
}
