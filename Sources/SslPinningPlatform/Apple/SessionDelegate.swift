#if canImport(Security)
  import Foundation
  import Security

  /// The delegate of a transport's sessions: carries what the system asks to a ``SessionDoor``, and hands all else
  /// to the app's own delegate.
  ///
  /// - Every other method that the app's delegate has is answered by it, those that this class does not know
  ///   included: the session asks ``responds(to:)`` and is sent on.
  /// - A *task's* own delegate is asked before this class for whatever it implements. If that is a challenge method,
  ///   it takes the verdict away; ``PinnedTransport/respond(to:allowingUnlisted:)`` gives it back.
  final class SessionDelegate: NSObject, URLSessionDelegate {
    typealias Handler = @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    typealias Answer = OneShot<(URLSession.AuthChallengeDisposition, URLCredential?)>
    typealias GiveUp = @Sendable (URLSession) -> Void

    let door: SessionDoor
    let app: (any URLSessionDelegate)?
    let giveUp: GiveUp

    /// The same object for its tasks' methods. A class in Objective-C may have them without declaring the protocol.
    var appTasks: (any URLSessionDataDelegate)? {
      app.map { unsafeBitCast($0, to: (any URLSessionDataDelegate).self) }
    }

    /// - Parameter giveUp: what is done about the connections of a session after a request without a verdict.
    init(
      _ door: SessionDoor, app: (any URLSessionDelegate)?,
      giveUp: @escaping GiveUp = { $0.flush {} }
    ) {
      self.door = door
      self.app = app
      self.giveUp = giveUp
      super.init()
    }

    override func responds(to aSelector: Selector!) -> Bool {
      super.responds(to: aSelector) || app?.responds(to: aSelector) ?? false
    }

    override func forwardingTarget(for aSelector: Selector!) -> Any? {
      if let app, app.responds(to: aSelector) { return app }
      return super.forwardingTarget(for: aSelector)
    }

    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
      door.ended(session)
      app?.urlSession?(session, didBecomeInvalidWithError: error)
    }

    func urlSession(
      _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
      completionHandler: @escaping Handler
    ) { answer(challenge, at: .session, in: session, of: nil, Self.once(completionHandler)) }

    static func once(_ handler: @escaping Handler) -> Answer {
      Answer(otherwise: (.cancelAuthenticationChallenge, nil)) { handler($0.0, $0.1) }
    }

    /// - Parameter tasks: those that it may be about; `nil`: not looked up yet.
    func answer(
      _ challenge: URLAuthenticationChallenge, at level: ChallengeRule.Level,
      in session: URLSession, of tasks: [URLSessionTask]?, _ answer: Answer
    ) {
      let asked = ChallengeRule.Challenge(challenge, at: level)
      // Once: a task may be redirected meanwhile.
      let requests = tasks?.map { $0.currentRequest?.url }
      switch door.step(about: asked, requests: requests) {
      case .judge: judge(challenge.protectionSpace, answer)
      case .cancel: answer.give((.cancelAuthenticationChallenge, nil))
      case .leaveToSystem: answer.give((.performDefaultHandling, nil))
      case .lookUp:
        let handed = HandedOver(challenge)
        session.getAllTasks { [self] in
          self.answer(handed.value, at: level, in: session, of: $0, answer)
        }
      case .ask(let order):
        let concerned = zip(tasks ?? [], requests ?? []).filter { asked.concerns($1) }.map { $0.0 }
        ask(order, about: challenge, in: session, of: concerned, answer)
      }
    }

    private func judge(_ space: URLProtectionSpace, _ answer: Answer) {
      guard let trust = space.serverTrust.map(HandedOver.init) else { return }
      let (host, port) = (space.host, space.port)
      let now = Date().timeIntervalSince1970
      promptTask { [door] in
        let isAccepted = await door.accepts(host: host, port: port, challenged: now) {
          await $0.store.evidence(of: trust, host: $1, at: $2)
        }
        answer.give(
          isAccepted
            ? (.useCredential, URLCredential(trust: trust.value))
            : (.cancelAuthenticationChallenge, nil))
      }
    }

    private func ask(
      _ order: [ChallengeRule.Asked], about challenge: URLAuthenticationChallenge,
      in session: URLSession, of tasks: [URLSessionTask], _ answer: Answer
    ) {
      let give: Handler = { answer.give(($0, $1)) }
      for asked in order {
        switch asked {
        case .appSession:
          if app?.urlSession?(session, didReceive: challenge, completionHandler: give) != nil {
            return
          }
        case .taskOwn, .appTask:
          for task in tasks {
            let delegate: (any URLSessionTaskDelegate)? =
              asked == .taskOwn ? task.delegate : appTasks
            if delegate?.urlSession?(
              session, task: task, didReceive: challenge, completionHandler: give) != nil
            {
              return
            }
          }
        }
      }
      give(.performDefaultHandling, nil)
    }
  }

  extension ChallengeRule.Challenge {
    init(_ challenge: URLAuthenticationChallenge, at level: ChallengeRule.Level) {
      let space = challenge.protectionSpace
      let method: ChallengeRule.Method =
        switch space.authenticationMethod {
        case NSURLAuthenticationMethodServerTrust: .serverTrust
        case NSURLAuthenticationMethodClientCertificate, NSURLAuthenticationMethodNTLM,
          NSURLAuthenticationMethodNegotiate:
          .sessionWide
        default: .perTask
        }
      self.init(
        level: level, method: method, host: space.host, isProxy: space.isProxy(),
        hasTrust: space.serverTrust != nil)
    }
  }
#endif
