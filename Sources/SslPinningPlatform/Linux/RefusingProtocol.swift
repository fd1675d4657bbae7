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
#endif
