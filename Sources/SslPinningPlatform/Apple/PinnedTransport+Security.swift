#if canImport(Security)
  import Foundation
  import SslPinningRules
  import Security

  /// Verdicts for connections that are made elsewhere: one's own delegates, Alamofire, WKWebView.
  extension PinnedTransport {
    /// Judges a server's trust object for `host`.
    ///
    /// - The trust object is evaluated under the transport's trust mode, in place: its policies and
    ///   anchors are set. Then its validated path is held against the pins.
    /// - Does not wait for newer pins. A refusal that they could turn starts to fetch them, so that
    ///   the next handshake meets them; ``respond(to:allowingUnlisted:)`` waits.
    /// - Follows the policy about unlisted hosts.
    ///
    /// - Important: blocks while the system evaluates, which may take a round trip on the network.
    ///   Call it off the main thread.
    public func evaluate(_ trust: SecTrust, host: String) -> PinEvaluation {
      told(of: host) { name in
        let evidence = validator.store.evidence(
          handshake: trust, host: name, at: judge.time?.dates ?? [])
        let facts = ConnectionFacts(certificates: PlatformTrustStore.certificates(of: trust))
        return (judge.evaluate(evidence, host: name), facts)
      }
    }

    /// Answers an authentication challenge as a pinned session would, its wait for newer pins included: return what
    /// it returns. Default handling is for all but a server's trust, and for a proxy that is no listed host.
    ///
    /// - Parameter allowingUnlisted: whether ``SslPinningRules/UnlistedHosts/systemTrust`` counts. Never for a task
    ///   of a pinned session: HTTP/2 would carry requests to listed hosts over an unlisted one's connection, unasked.
    ///   So it does on every session and web view that talks to both.
    /// - Important: a task's own delegate (`URLSessionTask.delegate`) that answers challenges takes
    ///   them away from the pinned session. It has to answer with this.
    public func respond(
      to challenge: URLAuthenticationChallenge, allowingUnlisted: Bool = false
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
      let space = challenge.protectionSpace
      let step = ChallengeRule.step(
        about: ChallengeRule.Challenge(challenge, at: .session), isListed: lists(space.host),
        requests: [], in: allowingUnlisted ? .unlisted : .pinned)
      guard step == .judge, let trust = space.serverTrust.map(HandedOver.init) else {
        return (step == .cancel ? .cancelAuthenticationChallenge : .performDefaultHandling, nil)
      }
      let isAccepted = await accepts(
        host: space.host, port: space.port, allowsUnlisted: allowingUnlisted
      ) { await $0.store.evidence(of: trust, host: $1, at: $2) }
      guard isAccepted else { return (.cancelAuthenticationChallenge, nil) }
      return (.useCredential, URLCredential(trust: trust.value))
    }

    /// ``respond(to:allowingUnlisted:)`` for delegates with a completion handler: pass it on.
    public func respond(
      to challenge: URLAuthenticationChallenge, allowingUnlisted: Bool = false,
      completionHandler:
        @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
      let handed = HandedOver(challenge)
      Task {
        let answer = await respond(to: handed.value, allowingUnlisted: allowingUnlisted)
        completionHandler(answer.0, answer.1)
      }
    }
  }
#endif
