import SslPinningRules

#if canImport(Security)
  import Foundation
  import SslPinningRules

  /// What the delegate sees of tasks: clear text is refused, and requests that went over a connection
  /// without a verdict are found afterwards.
  extension SessionDelegate: URLSessionTaskDelegate {
    func urlSession(
      _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
      completionHandler:
        @escaping @Sendable (
          URLSession.AuthChallengeDisposition, URLCredential?
        ) -> Void
    ) {
      if answer(challenge, completionHandler) { return }
      let answered: Void? = appTasks?.urlSession?(
        session, task: task, didReceive: challenge, completionHandler: completionHandler)
      if answered == nil { completionHandler(.performDefaultHandling, nil) }
    }

    @available(macOS 13.0, iOS 16.0, watchOS 9.0, tvOS 16.0, *)
    func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask) {
      // Before the task goes out, so that it meets no connection from before a change of pins.
      transport.platform.sessions.follow(transport.judge.generation)
      refuseIfClear(task.originalRequest, of: task)
      appTasks?.urlSession?(session, didCreateTask: task)
    }

    func urlSession(
      _ session: URLSession, task: URLSessionTask,
      willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest,
      completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
      // Last, whatever the app made of it.
      let goOn: @Sendable (URLRequest?) -> Void = { [self] request in
        completionHandler(refuseIfClear(request, of: task) ? nil : request)
      }
      let answered: Void? = appTasks?.urlSession?(
        session, task: task, willPerformHTTPRedirection: response, newRequest: request,
        completionHandler: goOn)
      if answered == nil { goOn(request) }
    }

    func urlSession(
      _ session: URLSession, task: URLSessionTask,
      didFinishCollecting metrics: URLSessionTaskMetrics
    ) {
      for transaction in metrics.transactionMetrics
      where transaction.resourceFetchType == .networkLoad && transaction.response != nil {
        audit(transaction)
      }
      transport.platform.sessions.follow(transport.judge.generation)
      appTasks?.urlSession?(session, task: task, didFinishCollecting: metrics)
    }

    /// Cancels the task where `request` would leave in clear text; its error leads to the refusal.
    @discardableResult
    private func refuseIfClear(_ request: URLRequest?, of task: URLSessionTask) -> Bool {
      guard let url = request?.url, !ClearTextProtocol.allows(url) else { return false }
      let refusal = PinEvaluation(
        host: url.host ?? "", outcome: .clearText(scheme: url.scheme?.lowercased() ?? ""),
        decision: .refuse)
      transport.judge.record(refusal)
      // The error may name the URL that led here, or the one it led to.
      for failing in [task.currentRequest?.url?.host, url.host] {
        guard let failing, let host = try? HostName(failing) else { continue }
        transport.platform.recent.note(refusal, failing: host, at: PlatformSession.uptime)
      }
      task.cancel()
      return true
    }

    /// Finds out whether a request that was answered had a verdict: detection, not prevention. The
    /// decision says `accept`, because the request did go out.
    private func audit(_ transaction: URLSessionTaskTransactionMetrics) {
      guard let url = transaction.request.url, let spelling = url.host,
        let host = try? HostName(spelling)
      else { return }
      guard ClearTextProtocol.allows(url) else {
        return report(host, .clearText(scheme: url.scheme?.lowercased() ?? ""))
      }
      guard let proof = proofs.withLock({ $0[host] }) else {
        let kind = transaction.isReusedConnection ? "a reused connection" : "a connection"
        return report(host, .unjudged("\(kind) was never challenged for this host"))
      }
      guard proof.generation != transport.judge.generation else { return }
      let judgement = TrustJudgement(transport: transport, acceptsUnlisted: isForUnlisted)
      let (evaluation, generation) = judgement.judged(proof.evidence, host: host)
      guard evaluation.decision == .accept else {
        // Forgotten, or every later request would be held against the old connection.
        proofs.withLock { $0[host] = nil }
        return report(host, .unjudged("it went over a connection from before a change of pins"))
      }
      let renewed = TrustJudgement.Proof(
        host: host, evidence: proof.evidence, generation: generation)
      proofs.withLock { $0[host] = renewed }
    }

    private func report(_ host: HostName, _ outcome: PinEvaluation.Outcome) {
      transport.judge.record(
        PinEvaluation(host: host.description, outcome: outcome, decision: .accept))
    }
  }
#endif
