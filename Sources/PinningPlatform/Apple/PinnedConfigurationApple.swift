#if canImport(Security)
  import Foundation
  import ObjectiveC

  /// The configuration of a pinned session: the app's, with its escapes closed (``ConfigurationEscapes``).
  ///
  /// - Nothing is known of which sessions of a process share TLS sessions: an ephemeral configuration is no promise.
  /// - No early data: it leaves before the server is known. From SDK 26 on an app can ask for it.
  enum PinnedConfiguration {
    static func pinning(_ other: URLSessionConfiguration) -> URLSessionConfiguration {
      let fresh = URLSessionConfiguration.ephemeral.protocolClasses ?? []
      let closed = ConfigurationEscapes.closed(
        other, refusing: [ClearTextProtocol.self],
        fresh: fresh.map { ($0, class_getImageName($0).map { String(cString: $0) }) })
      guard let closed else { return RefusingProtocol.configuration }
      if #available(iOS 26.0, macOS 26.0, tvOS 26.0, watchOS 26.0, visionOS 26.0, *) {
        closed.enablesEarlyData = false
      }
      return closed
    }
  }

  /// Fails every request of a session that cannot pin, with the cause, before anything is dialled.
  ///
  /// A second lock, as is its subclass: no document says that a session asks such classes first, WebSockets and stream
  /// tasks never do, and watchOS hardly. The first is the session's delegate.
  class RefusingProtocol: URLProtocol {
    static let reason =
      "background sessions run in another process; hint: use an ephemeral configuration"

    static var configuration: URLSessionConfiguration {
      let refusing = URLSessionConfiguration.ephemeral
      refusing.protocolClasses = [RefusingProtocol.self]
      refusing.urlCache = nil
      return refusing
    }

    fileprivate var failure: (URLError.Code, text: String) {
      (.secureConnectionFailed, PlatformError.cannotPin(reason: Self.reason).description)
    }

    override class func canInit(with request: URLRequest) -> Bool { true }
    override class func canInit(with task: URLSessionTask) -> Bool { true }
    override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }
    override func stopLoading() {}

    override func startLoading() {
      var details: [String: Any] = [NSLocalizedDescriptionKey: failure.text]
      details[NSURLErrorFailingURLErrorKey] = request.url
      client?.urlProtocol(self, didFailWithError: URLError(failure.0, userInfo: details))
    }
  }

  /// Fails every request of a pinned session that would go out in clear text, first or redirected.
  final class ClearTextProtocol: RefusingProtocol {
    override fileprivate var failure: (URLError.Code, text: String) {
      (.unsupportedURL, "only https goes over a pinned session")
    }

    override class func canInit(with request: URLRequest) -> Bool { !TaskRule.allows(request.url) }
    override class func canInit(with task: URLSessionTask) -> Bool {
      !TaskRule.allows(task.currentRequest?.url)
    }
  }
#endif
