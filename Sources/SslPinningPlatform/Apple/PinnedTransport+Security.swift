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
    ///   the next handshake meets them; ``respond(to:)`` waits.
    ///
    /// - Important: blocks while the system evaluates, which may take a round trip on the network.
    ///   Call it off the main thread.
    public func evaluate(_ trust: SecTrust, host: String) -> PinEvaluation {
      told(of: host) { name in
        let evidence = validator.store.evidence(
          handshake: trust, host: name, at: judge.time?.dates ?? [])
        return (judge.evaluate(evidence, host: name), PlatformTrustStore.certificates(of: trust))
      }
    }

    /// Answers an authentication challenge as a pinned session would, its wait for newer pins
    /// included. Return what it returns.
    ///
    /// Challenges about anything but a server's trust, and those of a proxy, get
    /// `.performDefaultHandling`.
    ///
    /// - Important: a task's own delegate (`URLSessionTask.delegate`) that answers challenges takes
    ///   them away from the pinned session. It has to answer with this.
    public func respond(
      to challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
      let space = challenge.protectionSpace
      let step = ChallengeRule.step(
        at: .session, about: ChallengeRule.Method(space.authenticationMethod),
        isProxy: space.isProxy(),
        hasTrust: space.serverTrust != nil, in: .unlisted)
      guard step == .judge, let trust = space.serverTrust.map(HandedOver.init) else {
        return (step == .cancel ? .cancelAuthenticationChallenge : .performDefaultHandling, nil)
      }
      let judgement = ConnectionJudgement(transport: self, acceptsUnlisted: true)
      let (evaluation, _) = await judgement.verdict(
        host: space.host, port: space.port, challenged: 0
      ) { await $0.store.evidence(of: trust, host: $1, at: $2) }
      guard evaluation.decision == .accept else { return (.cancelAuthenticationChallenge, nil) }
      return (.useCredential, URLCredential(trust: trust.value))
    }

    /// ``respond(to:)`` for delegates with a completion handler: pass it on.
    public func respond(
      to challenge: URLAuthenticationChallenge,
      completionHandler:
        @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
      let handed = HandedOver(challenge)
      Task {
        let (disposition, credential) = await respond(to: handed.value)
        completionHandler(disposition, credential)
      }
    }
  }
#endif
