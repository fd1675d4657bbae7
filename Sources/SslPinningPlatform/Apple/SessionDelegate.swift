import SslPinningRules

#if canImport(Security)
  import Foundation
  import SslPinningRules
  import Security

  /// The delegate of a pinned session: judges every handshake and hands all else to the app's own.
  ///
  /// - Server-trust challenges never reach the app's delegate, of whatever level. A proxy's own are
  ///   left to the system: chain and name count there, pins never.
  /// - Every other method that the app's delegate has is answered by it, those that this class does
  ///   not know included: the session asks ``responds(to:)`` and is sent on.
  /// - The session asks a *task's* own delegate first. One that answers server-trust challenges there
  ///   takes the verdict away from this class; ``PinnedTransport/respond(to:)`` gives it back.
  final class SessionDelegate: NSObject, URLSessionDelegate {
    let transport: PinnedTransport
    let app: (any URLSessionDelegate)?
    /// Whether the session is the one for hosts without an entry; it takes no others. Pinned sessions
    /// of apps are not.
    let isForUnlisted: Bool
    /// The hosts that handshakes of this session were accepted for.
    let proofs = Locked<[HostName: TrustJudgement.Proof]>([:])

    var appTasks: (any URLSessionTaskDelegate)? { app as? any URLSessionTaskDelegate }

    init(
      transport: PinnedTransport, app: (any URLSessionDelegate)?, isForUnlisted: Bool = false
    ) {
      self.isForUnlisted = isForUnlisted
      self.transport = transport
      self.app = app
      super.init()
    }

    override func responds(to aSelector: Selector!) -> Bool {
      super.responds(to: aSelector) || app?.responds(to: aSelector) ?? false
    }

    override func forwardingTarget(for aSelector: Selector!) -> Any? {
      if let app, app.responds(to: aSelector) { return app }
      return super.forwardingTarget(for: aSelector)
    }

    func urlSession(
      _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
      completionHandler:
        @escaping @Sendable (
          URLSession.AuthChallengeDisposition, URLCredential?
        ) -> Void
    ) {
      if answer(challenge, completionHandler) { return }
      if app?.urlSession?(session, didReceive: challenge, completionHandler: completionHandler)
        != nil
      {
        return
      }
      guard let appTasks else { return completionHandler(.performDefaultHandling, nil) }
      // An app's delegate with the task's method alone is asked there by a session of its own; this
      // session asks here. Any task of that host will do: the answer is for the connection.
      let handed = HandedOver(challenge)
      let host = challenge.protectionSpace.host
      session.getAllTasks { tasks in
        let task = tasks.first { $0.currentRequest?.url?.host == host }
        let answered: Void? = task.flatMap { task in
          appTasks.urlSession?(
            session, task: task, didReceive: handed.value, completionHandler: completionHandler)
        }
        if answered == nil { completionHandler(.performDefaultHandling, nil) }
      }
    }

    /// Answers a challenge about a server's trust.
    ///
    /// - Returns: whether it was one.
    func answer(
      _ challenge: URLAuthenticationChallenge,
      _ completionHandler:
        @escaping @Sendable (
          URLSession.AuthChallengeDisposition, URLCredential?
        ) -> Void
    ) -> Bool {
      let space = challenge.protectionSpace
      guard space.authenticationMethod == NSURLAuthenticationMethodServerTrust else { return false }
      guard !space.isProxy() else {
        completionHandler(.performDefaultHandling, nil)
        return true
      }
      guard let trust = space.serverTrust else {
        completionHandler(.cancelAuthenticationChallenge, nil)
        return true
      }
      let handed = HandedOver(trust)
      let (host, port) = (space.host, space.port)
      Task {
        let judgement = TrustJudgement(transport: transport, acceptsUnlisted: isForUnlisted)
        let (_, proof) = await judgement.verdict(on: handed, host: host, port: port)
        // Listed meanwhile: its connections belong to the other session.
        guard let proof, !isForUnlisted || !transport.judge.lists(proof.host) else {
          return completionHandler(.cancelAuthenticationChallenge, nil)
        }
        proofs.withLock { $0[proof.host] = proof }
        completionHandler(.useCredential, URLCredential(trust: handed.value))
      }
      return true
    }
  }
#endif
