import Foundation

/// A session without pins that trusts every server, as an app may have one beside a pinned one: it fills
/// the process's cache of TLS sessions.
func plainSession() -> URLSession? {
  URLSession(configuration: .ephemeral, delegate: TrustsEveryServer(), delegateQueue: nil)
}

private final class TrustsEveryServer: NSObject, URLSessionDelegate {
  func urlSession(
    _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
    completionHandler:
      @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
  ) {
    guard let trust = challenge.protectionSpace.serverTrust else {
      return completionHandler(.performDefaultHandling, nil)
    }
    completionHandler(.useCredential, URLCredential(trust: trust))
  }
}
