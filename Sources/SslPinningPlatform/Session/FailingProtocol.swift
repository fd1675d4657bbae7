import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// Fails every request that it takes, with the cause, before anything is dialled.
///
/// On Apple's systems a second lock: no document says that a session asks such a class before its own loaders,
/// WebSockets and stream tasks never ask one, and watchOS hardly does. The first is the session's delegate.
class FailingProtocol: URLProtocol {
  /// What a request ends with.
  class var failure: (code: URLError.Code, text: String) { (.unsupportedURL, "refused") }

  override class func canInit(with request: URLRequest) -> Bool { true }
  override class func canInit(with task: URLSessionTask) -> Bool { true }
  override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }
  override func stopLoading() {}

  override func startLoading() {
    let failure = type(of: self).failure
    var details: [String: Any] = [NSLocalizedDescriptionKey: failure.text]
    details[NSURLErrorFailingURLErrorKey] = request.url
    client?.urlProtocol(self, didFailWithError: URLError(failure.code, userInfo: details))
  }
}

/// Takes the requests of a pinned session of Apple's systems that would go out in clear text, first or redirected.
final class ClearTextProtocol: FailingProtocol {
  override class var failure: (code: URLError.Code, text: String) {
    (.unsupportedURL, "only https goes over a pinned session")
  }

  override class func canInit(with request: URLRequest) -> Bool { !TaskRule.allows(request.url) }
  override class func canInit(with task: URLSessionTask) -> Bool {
    !TaskRule.allows(task.currentRequest?.url)
  }
}
