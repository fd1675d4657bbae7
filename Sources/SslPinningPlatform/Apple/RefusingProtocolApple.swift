#if canImport(Security)
  import Foundation

  /// The transport of a session that cannot pin: fails every request with the cause, whatever its
  /// scheme, and sends nothing.
  ///
  /// The one cause on Apple's systems: a background session. Another process makes its connections,
  /// goes on after the app has ended, and follows redirects unasked.
  final class RefusingProtocol: URLProtocol {
    static let cause = PlatformError.cannotPin(
      reason: "background sessions run in another process; hint: use an ephemeral configuration")

    static func session(
      delegate: (any URLSessionDelegate)?, delegateQueue: OperationQueue?
    ) -> URLSession {
      let refusing = URLSessionConfiguration.ephemeral
      refusing.protocolClasses = [RefusingProtocol.self]
      refusing.urlCache = nil
      return URLSession(
        configuration: refusing, delegate: delegate, delegateQueue: delegateQueue)
    }

    override class func canInit(with request: URLRequest) -> Bool { true }
    override class func canInit(with task: URLSessionTask) -> Bool { true }
    override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }
    override func stopLoading() {}

    override func startLoading() {
      let error = URLError(
        .secureConnectionFailed, userInfo: [NSLocalizedDescriptionKey: Self.cause.description])
      client?.urlProtocol(self, didFailWithError: error)
    }
  }
#endif
