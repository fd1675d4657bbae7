#if os(Linux)
  import Foundation
  import FoundationNetworking

  /// The transport of a session that cannot pin: fails every request with the cause, whatever its
  /// scheme, and sends nothing.
  class RefusingProtocol: FailingProtocol {
    /// Why this process cannot pin. One for all sessions: the cause is the process's libraries, and
    /// a protocol object is not told which session it works for.
    private static let cause = Locked<PlatformError?>(nil)

    fileprivate class var reason: String {
      cause.withLock { $0?.description } ?? "this platform cannot pin"
    }

    static func session(
      cause: PlatformError, configuration: URLSessionConfiguration,
      delegate: (any URLSessionDelegate)?, delegateQueue: OperationQueue?
    ) -> URLSession {
      Self.cause.withLock { $0 = cause }
      let refusing = URLSessionConfiguration.ephemeral
      refusing.protocolClasses = [RefusingProtocol.self]
      refusing.urlCache = nil
      refusing.timeoutIntervalForRequest = configuration.timeoutIntervalForRequest
      return URLSession(
        configuration: refusing, delegate: delegate, delegateQueue: delegateQueue)
    }

    override class var failure: (code: URLError.Code, text: String) {
      (.secureConnectionFailed, reason)
    }
  }

  /// The transport of a session that an app made of a pinned session's configuration.
  final class UnpinnedCopyProtocol: RefusingProtocol {
    override fileprivate class var reason: String {
      "this session was made of a pinned session's configuration, and has none of its pins;"
        + " hint: client.createPinnedSession"
    }
  }

  /// Takes every request of a pinned session that is not lower-case `http` or `https`.
  ///
  /// - Without it Foundation hands such a request to the classes that the app registered with
  ///   `URLProtocol.registerClass`, which would carry it past the pins; an upper-case `HTTPS` is
  ///   enough. Where no class takes it, Foundation ends the process.
  /// - Schemes have no case (RFC 3986 section 3.1): `HTTPS` goes on to Foundation's own transport, which
  ///   does not know that, and so does `HTTP`, to be refused there as clear text. What Foundation starts
  ///   and stops here starts and stops there; all else goes between that transport and the task.
  /// - Others fail. `data:` URLs dial nobody; they go on to Foundation.
  final class OtherSchemesProtocol: URLProtocol {
    private lazy var native = makeNative()
    /// Touched by the task's own queue alone.
    private var isStarted = false

    override class func canInit(with request: URLRequest) -> Bool { takes(request.url) }
    override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

    override class func canInit(with task: URLSessionTask) -> Bool {
      takes(task.currentRequest?.url)
    }

    private static func takes(_ url: URL?) -> Bool { url?.scheme != "data" }

    /// Foundation's transport for the same task; `nil` where it is not for this scheme.
    private func makeNative() -> URLProtocol? {
      guard let task, let scheme = request.url?.scheme?.lowercased(),
        scheme == "https" || scheme == "http"
      else { return nil }
      return (PinnedConfiguration.native.first as? URLProtocol.Type)?.init(
        task: task, cachedResponse: nil, client: nil)
    }

    /// Started once: Foundation comes again where a task is resumed, also one that is over meanwhile.
    override func startLoading() {
      guard !isStarted else { return }
      isStarted = true
      if let native { return native.startLoading() }
      let scheme = request.url?.scheme ?? ""
      var details: [String: Any] = [
        NSLocalizedDescriptionKey:
          "\(scheme) is nothing for a pinned session, which sends https alone"
      ]
      details[NSURLErrorFailingURLErrorKey] = request.url
      client?.urlProtocol(self, didFailWithError: URLError(.unsupportedURL, userInfo: details))
    }

    /// Only what has failed or was cancelled is stopped. A task that was suspended may be running again, or
    /// over, whenever Foundation comes here; it has no error then, and Foundation's transport ends the
    /// process over that. So what is suspended while it is under way goes on.
    override func stopLoading() {
      guard task?.error != nil else { return }
      native?.stopLoading()
    }
  }
#endif
