import CanonicalJSON

/// Commands of W3C WebDriver over HTTP, to a chromedriver on loopback.
struct WebDriver: Sendable {
  let exchange: LoopbackExchange

  /// Sends one command.
  ///
  /// - Parameter body: nil for a GET.
  /// - Returns: the `value` of the answer.
  /// - Throws: ``WebDriverError`` where chromedriver refuses it.
  @discardableResult
  func send(_ path: String, _ body: JSONObject?) async throws -> JSONValue {
    let answer = try await exchange.ask(
      body == nil ? "GET" : "POST", path,
      body: body.map { JSONValue.object($0).canonicalBytes } ?? [])
    let value = try JSONValue(parsing: answer).objectValue?["value"] ?? .null
    if let code = value.objectValue?["error"]?.stringValue {
      let message = value.objectValue?["message"]?.stringValue ?? ""
      throw WebDriverError(code: code, message: message)
    }
    return value
  }
}
