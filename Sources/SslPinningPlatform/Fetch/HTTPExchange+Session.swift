import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// An exchange as a `URLSession` of Apple's systems is asked for it.
extension HTTPExchange {
  /// Seconds that the session is given, within what it takes.
  var sessionTimeout: Double { max(0.001, min(timeout, Double(Int32.max) / 1000)) }

  /// A configuration that keeps nothing and sends nothing of another exchange: no cookies, no cache, no
  /// credentials. Clear text stays on this machine: no proxy sees it.
  var configuration: URLSessionConfiguration {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.urlCache = nil
    configuration.httpShouldSetCookies = false
    configuration.httpCookieStorage = nil
    configuration.urlCredentialStorage = nil
    configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
    if url.isClearText { configuration.connectionProxyDictionary = [:] }
    configuration.timeoutIntervalForRequest = sessionTimeout
    configuration.timeoutIntervalForResource = sessionTimeout
    return configuration
  }

  /// The request.
  func request(to url: URL) -> URLRequest {
    var request = URLRequest(
      url: url, cachePolicy: .reloadIgnoringLocalCacheData, timeoutInterval: sessionTimeout)
    for (name, value) in headers { request.setValue(value, forHTTPHeaderField: name) }
    if case .post(let bytes) = kind {
      request.httpMethod = "POST"
      request.httpBody = Data(bytes)
    }
    return request
  }
}
