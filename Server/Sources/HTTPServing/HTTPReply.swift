/// What a handler gives for a request.
package enum HTTPReply: Sendable {
  /// A finished answer.
  case now(HTTPResponse)
  /// An answer that somebody waits for: the connection is set aside, and no thread with it.
  ///
  /// The task is cancelled when the client goes away, when the server stops, and when the time for
  /// late answers is up. It should then return what it has, at once: while the server stops, that
  /// is still sent, as the connection's last answer. One that does not return in time is answered
  /// for (503).
  ///
  /// - Parameter isTrusted: whether it is for somebody who has shown a token. Strangers get a part of the
  ///   connections to wait on, see ``HTTPLimits/waiting``.
  case later(isTrusted: Bool = false, @Sendable () async -> HTTPResponse)
}

/// Answers requests. Called on the server's threads, so it must not block: it reads what is ready,
/// or gives an answer for later.
package typealias HTTPHandler = @Sendable (HTTPRequest) -> HTTPReply

/// Whether the header of a request shows a good token. Asked before a body is read, on the server's threads.
package typealias HTTPTrust = @Sendable (_ path: String, _ headers: HTTPHeaders) -> Bool
