#if canImport(Security)
  import Foundation
  import SslPinningRules

  /// One transfer of ``PlatformFetch``: carries out what ``FetchState`` and ``RegistryDates`` decide.
  final class FetchTransfer: NSObject, URLSessionDataDelegate {
    /// The answer, by whoever is first: the session, the end of its time, a cancel.
    let answer = Once<FetchState.Answer>()
    private let time: TrustTime?
    private let validator: ChainValidator
    private let state: Locked<FetchState>

    init(_ exchange: HTTPExchange, validator: ChainValidator) {
      time = exchange.time
      self.validator = validator
      state = Locked(FetchState(exchange))
      super.init()
    }

    func urlSession(
      _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
      completionHandler: @escaping SessionDelegate.Handler
    ) {
      let space = challenge.protectionSpace
      let step = ChallengeRule.step(
        about: ChallengeRule.Challenge(challenge, at: .session), isListed: false,
        requests: state.withLock { $0.asked }, in: .unlisted)
      guard step == .judge, let trust = space.serverTrust, let host = try? HostName(space.host)
      else {
        let isOurs = step == .judge || step == .cancel
        return completionHandler(
          isOurs ? .cancelAuthenticationChallenge : .performDefaultHandling, nil)
      }
      let evidence = RegistryDates.evidence(
        at: time, presented: { PlatformTrustStore.certificates(of: trust) },
        judging: { validator.store.evidence(handshake: trust, host: host, at: $0) })
      guard case .failure(let fault) = evidence.validation else {
        return completionHandler(.useCredential, URLCredential(trust: trust))
      }
      answer.give(.failure(RegistryDates.error(for: fault, at: time)))
      completionHandler(.cancelAuthenticationChallenge, nil)
    }

    func urlSession(
      _ session: URLSession, task: URLSessionTask,
      willPerformHTTPRedirection response: HTTPURLResponse,
      newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
      let step = act(task) { $0.redirect(to: request.url, by: HTTPAnswer(response)) }
      completionHandler(step == .goOn ? request : nil)
    }

    func urlSession(
      _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
      completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
      let head = (response as? HTTPURLResponse).map { HTTPAnswer($0) }
      let step = act(dataTask) { $0.head(head, expecting: response.expectedContentLength) }
      completionHandler(step == .goOn ? .allow : .cancel)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
      _ = act(dataTask) { $0.data(data) }
    }

    func urlSession(
      _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
    ) { answer.give(state.withLock { $0.ended(error?.localizedDescription) }) }

    private func act(
      _ task: URLSessionTask, _ event: (inout FetchState) -> FetchState.Step
    ) -> FetchState.Step {
      let step = state.withLock(event)
      if case .end(let end) = step {
        answer.give(end)
        task.cancel()
      }
      return step
    }
  }

  extension HTTPAnswer {
    /// The head of an answer.
    fileprivate init(_ response: HTTPURLResponse) {
      self.init(
        status: response.statusCode, etag: response.value(forHTTPHeaderField: "ETag"),
        retryAfter: response.value(forHTTPHeaderField: "Retry-After"),
        cacheControl: response.value(forHTTPHeaderField: "Cache-Control"), body: [])
    }
  }
#endif
