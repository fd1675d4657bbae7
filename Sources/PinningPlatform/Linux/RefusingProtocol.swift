#if os(Linux)
  import Foundation
  import FoundationNetworking

  /// The transport of a session that cannot pin: fails every request with the cause, whatever its
  /// scheme, and sends nothing.
  final class RefusingProtocol: URLProtocol {
    private static let causeHeader = "X-Pinning-Cause"

    static func session(
      cause: PlatformError, configuration: URLSessionConfiguration,
      delegate: (any URLSessionDelegate)?, delegateQueue: OperationQueue?
    ) -> URLSession {
      let refusing = URLSessionConfiguration.ephemeral
      refusing.protocolClasses = [RefusingProtocol.self]
      refusing.urlCache = nil
      refusing.httpAdditionalHeaders = [causeHeader: cause.description]
      refusing.timeoutIntervalForRequest = configuration.timeoutIntervalForRequest
      return URLSession(
        configuration: refusing, delegate: delegate, delegateQueue: delegateQueue)
    }

    override class func canInit(with request: URLRequest) -> Bool { true }
    override class func canInit(with task: URLSessionTask) -> Bool { true }
    override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }
    override func stopLoading() {}

    override func startLoading() {
      let cause =
        request.value(forHTTPHeaderField: Self.causeHeader) ?? "this platform cannot pin"
      let error = URLError(
        .secureConnectionFailed, userInfo: [NSLocalizedDescriptionKey: cause])
      client?.urlProtocol(self, didFailWithError: error)
    }
  }
#endif
