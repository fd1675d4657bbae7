import CanonicalJSON
import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// Commands of W3C WebDriver over HTTP, to a chromedriver on loopback.
struct WebDriver: Sendable {
  private let base: String
  private let session: URLSession

  init(port: UInt16) {
    base = "http://127.0.0.1:\(port)"
    let configuration = URLSessionConfiguration.ephemeral
    configuration.timeoutIntervalForRequest = 120
    session = URLSession(configuration: configuration)
  }

  /// Sends one command.
  ///
  /// - Parameter body: nil for a GET.
  /// - Returns: the `value` of the answer.
  /// - Throws: ``WebDriverError`` where chromedriver refuses it.
  @discardableResult
  func send(
    _ path: String, _ body: JSONObject?, method: String? = nil
  ) async throws -> JSONValue {
    guard let url = URL(string: base + path) else { throw URLError(.badURL) }
    var request = URLRequest(url: url)
    request.httpMethod = method ?? (body == nil ? "GET" : "POST")
    if let body {
      request.httpBody = Data(JSONValue.object(body).canonicalBytes)
      request.setValue("application/json", forHTTPHeaderField: "Content-Type")
    }
    let (data, _) = try await session.data(for: request)
    let value = try JSONValue(parsing: [UInt8](data)).objectValue?["value"] ?? .null
    if let code = value.objectValue?["error"]?.stringValue {
      let message = value.objectValue?["message"]?.stringValue ?? ""
      throw WebDriverError(code: code, message: message)
    }
    return value
  }
}
