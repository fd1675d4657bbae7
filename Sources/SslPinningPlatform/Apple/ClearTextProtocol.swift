#if canImport(Security)
  import Foundation

  /// Takes every request of a pinned session that would go out in clear text, first or redirected,
  /// and fails it. Nothing is dialled.
  ///
  /// Closed: schemes that nobody has heard of are taken too. `data:` and `file:` dial nobody.
  final class ClearTextProtocol: URLProtocol {
    private static let harmless: Set<String> = ["https", "wss", "data", "file"]

    /// Whether a request to this URL may leave over a pinned session.
    static func allows(_ url: URL?) -> Bool {
      url?.scheme.map { harmless.contains($0.lowercased()) } ?? false
    }

    override class func canInit(with request: URLRequest) -> Bool { !allows(request.url) }

    override class func canInit(with task: URLSessionTask) -> Bool {
      !allows(task.currentRequest?.url)
    }

    override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }
    override func stopLoading() {}

    override func startLoading() {
      var details: [String: Any] = [
        NSLocalizedDescriptionKey: "only https goes over a pinned session"
      ]
      details[NSURLErrorFailingURLErrorKey] = request.url
      client?.urlProtocol(self, didFailWithError: URLError(.unsupportedURL, userInfo: details))
    }
  }
#endif
