#if os(Linux)
  import Foundation
  import FoundationNetworking

  /// Takes every request of a pinned session that is not lower-case `http` or `https`, and fails it.
  ///
  /// - Without it Foundation hands such a request to the classes that the app registered with
  ///   `URLProtocol.registerClass`, which would carry it past the pins; an upper-case `HTTPS` is
  ///   enough. Where no class takes it, Foundation ends the process.
  /// - `data:` URLs dial nobody; they go on to Foundation.
  final class OtherSchemesProtocol: URLProtocol {
    override class func canInit(with request: URLRequest) -> Bool { takes(request.url) }
    override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }
    override func stopLoading() {}

    override class func canInit(with task: URLSessionTask) -> Bool {
      takes(task.currentRequest?.url)
    }

    private static func takes(_ url: URL?) -> Bool { url?.scheme != "data" }

    override func startLoading() {
      var details: [String: Any] = [
        NSLocalizedDescriptionKey: "only https URLs go over a pinned session; hint: write the "
          + "scheme in lower case"
      ]
      details[NSURLErrorFailingURLErrorKey] = request.url
      client?.urlProtocol(self, didFailWithError: URLError(.unsupportedURL, userInfo: details))
    }
  }
#endif
