#if canImport(Security)
  import Foundation

  /// What the delegate sees of tasks. The app's delegate is asked as it would be by a session of its own.
  extension SessionDelegate: URLSessionDataDelegate {
    func urlSession(
      _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
      completionHandler: @escaping Handler
    ) { answer(challenge, at: .task, in: session, of: [task], Self.once(completionHandler)) }

    @available(macOS 13.0, iOS 16.0, watchOS 9.0, tvOS 16.0, *)
    func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask) {
      let kind: TaskKind = task is URLSessionStreamTask ? .stream : .request
      if !door.admits(kind, to: task.originalRequest?.url, task.currentRequest?.url) {
        task.cancel()
      }
      appTasks?.urlSession?(session, didCreateTask: task)
    }

    func urlSession(
      _ session: URLSession, task: URLSessionTask,
      willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest,
      completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
      let answer = OneShot(otherwise: nil, completionHandler)
      // Last, whatever the app made of it.
      let check: @Sendable (URLRequest?) -> Void = { [door] request in
        guard let request else { return answer.give(nil) }
        if door.follows(to: request.url, from: task.currentRequest?.url) {
          return answer.give(request)
        }
        // First: an answer without a body may be whole by the time that the redirect is declined.
        task.cancel()
        answer.give(nil)
      }
      let asked: Void? = appTasks?.urlSession?(
        session, task: task, willPerformHTTPRedirection: response, newRequest: request,
        completionHandler: check)
      if asked == nil { check(request) }
    }

    func urlSession(
      _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
      completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
      let answer = OneShot(otherwise: .cancel, completionHandler)
      // A stream outlives every change of pins.
      let check: @Sendable (URLSession.ResponseDisposition) -> Void = {
        answer.give($0 == .becomeStream ? .cancel : $0)
      }
      let asked: Void? = appTasks?.urlSession?(
        session, dataTask: dataTask, didReceive: response, completionHandler: check)
      if asked == nil { check(.allow) }
    }

    func urlSession(
      _ session: URLSession, task: URLSessionTask,
      didFinishCollecting metrics: URLSessionTaskMetrics
    ) {
      let isToGiveUp = door.finished(
        metrics.transactionMetrics.map {
          TransactionFacts(
            url: $0.request.url, isReused: $0.isReusedConnection,
            secured: $0.secureConnectionStartDate, established: $0.secureConnectionEndDate,
            begun: $0.requestStartDate, isAnswered: $0.response != nil,
            isCached: $0.resourceFetchType == .localCache)
        })
      if isToGiveUp { giveUp(session) }
      appTasks?.urlSession?(session, task: task, didFinishCollecting: metrics)
    }
  }
#endif
