#if canImport(Security)
  import Foundation
  import Security
  import SslPinningPlatform
  import SslPinningRules

  /// Verdicts for connections that are made elsewhere: one's own delegates, Alamofire, WKWebView.
  extension SslPinningClient {
    /// Judges a server's trust object for `host`, under ``SslPinningConfig/trust``.
    ///
    /// - The object is evaluated in place: its policies and anchors are set. Then its validated path is held
    ///   against the pins.
    /// - Does not wait for newer pins. A refusal that they could turn starts to fetch them, so that the next
    ///   handshake meets them; ``respond(to:allowingUnlisted:)`` waits.
    ///
    /// - Important: blocks while the system evaluates, which may take a round trip on the network. Call it off
    ///   the main thread.
    public func evaluate(_ trust: SecTrust, host: String) -> PinEvaluation {
      transport.evaluate(trust, host: host)
    }

    /// Answers an authentication challenge as a pinned session would, its wait for newer pins included: return
    /// what it returns. Default handling is for all but a server's trust, and for a proxy that is no listed host.
    ///
    /// - Parameter allowingUnlisted: whether ``UnlistedHosts/systemTrust`` counts. Never for a task of a pinned
    ///   session: HTTP/2 would carry requests to listed hosts over an unlisted one's connection, unasked. So it does
    ///   on every session and web view that talks to both.
    /// - Important: a task's own delegate (`URLSessionTask.delegate`) that answers challenges takes
    ///   them away from the pinned session. It has to answer with this.
    public func respond(
      to challenge: URLAuthenticationChallenge, allowingUnlisted: Bool = false
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
      await transport.respond(to: challenge, allowingUnlisted: allowingUnlisted)
    }

    /// ``respond(to:allowingUnlisted:)`` for delegates with a completion handler: pass it on.
    public func respond(
      to challenge: URLAuthenticationChallenge, allowingUnlisted: Bool = false,
      completionHandler:
        @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
      transport.respond(
        to: challenge, allowingUnlisted: allowingUnlisted, completionHandler: completionHandler)
    }
  }

  /// Verdicts for connections that are made elsewhere, by the rules of ``SslPinningClient``.
  extension FixedPinsClient {
    /// Judges a server's trust object for `host`; see ``SslPinningClient/evaluate(_:host:)``.
    public func evaluate(_ trust: SecTrust, host: String) -> PinEvaluation {
      transport.evaluate(trust, host: host)
    }

    /// Answers an authentication challenge; see ``SslPinningClient/respond(to:allowingUnlisted:)``.
    public func respond(
      to challenge: URLAuthenticationChallenge, allowingUnlisted: Bool = false
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
      await transport.respond(to: challenge, allowingUnlisted: allowingUnlisted)
    }

    /// ``respond(to:allowingUnlisted:)`` for delegates with a completion handler: pass it on.
    public func respond(
      to challenge: URLAuthenticationChallenge, allowingUnlisted: Bool = false,
      completionHandler:
        @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
      transport.respond(
        to: challenge, allowingUnlisted: allowingUnlisted, completionHandler: completionHandler)
    }
  }
#endif
