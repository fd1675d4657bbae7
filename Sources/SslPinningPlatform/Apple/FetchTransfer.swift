import SslPinningRules

#if canImport(Security)
  import Foundation
  import SslPinningRules

  /// What one transfer of ``PlatformFetch`` has received, and its answers to the session.
  final class FetchTransfer: NSObject, URLSessionDataDelegate {
    typealias Answer = Result<HTTPAnswer, FetchError>

    private struct State {
      var body: [UInt8] = []
      var redirects = 0
      var answer: Answer?
      var done: (@Sendable (Answer) -> Void)?
    }

    private static let mostRedirects = 5
    private let exchange: HTTPExchange
    private let validator: ChainValidator
    private let state = Locked(State())

    init(_ exchange: HTTPExchange, validator: ChainValidator) {
      self.exchange = exchange
      self.validator = validator
      super.init()
    }

    /// Calls `done` once, now or when the transfer has ended.
    func whenDone(_ done: @escaping @Sendable (Answer) -> Void) {
      let answer = state.withLock { state in
        if state.answer == nil { state.done = done }
        return state.answer
      }
      if let answer { done(answer) }
    }

    /// Ends the transfer with this answer, unless it has one.
    func end(_ answer: Answer) {
      let done = state.withLock { state -> (@Sendable (Answer) -> Void)? in
        guard state.answer == nil else { return nil }
        state.answer = answer
        defer { state.done = nil }
        return state.done
      }
      done?(answer)
    }

    func urlSession(
      _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
      completionHandler:
        @escaping @Sendable (
          URLSession.AuthChallengeDisposition, URLCredential?
        ) -> Void
    ) {
      let space = challenge.protectionSpace
      guard space.authenticationMethod == NSURLAuthenticationMethodServerTrust, !space.isProxy()
      else { return completionHandler(.performDefaultHandling, nil) }
      guard let trust = space.serverTrust, let host = try? HostName(space.host) else {
        return completionHandler(.cancelAuthenticationChallenge, nil)
      }
      let (store, time) = (validator.store, exchange.time)
      var evidence = store.evidence(handshake: trust, host: host, at: time?.dates ?? [])
      if case .failure(.outOfDate) = evidence.validation,
        let last = RegistryDates.lastMoment(
          for: PlatformTrustStore.certificates(of: trust), at: time)
      {
        evidence = store.evidence(handshake: trust, host: host, at: [last])
      }
      switch evidence.validation {
      case .success: completionHandler(.useCredential, URLCredential(trust: trust))
      case .failure(let fault):
        if fault.isEarly, let time {
          end(.failure(.notYetValid(clock: time.clock)))
        } else {
          end(.failure(.unreachable("\(fault)")))
        }
        completionHandler(.cancelAuthenticationChallenge, nil)
      }
    }

    func urlSession(
      _ session: URLSession, task: URLSessionTask,
      willPerformHTTPRedirection response: HTTPURLResponse,
      newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
      // Handed on as it is, a redirect is the answer.
      guard case .get = exchange.kind else { return completionHandler(nil) }
      let count = state.withLock { state in
        state.redirects += 1
        return state.redirects
      }
      guard request.url?.scheme?.lowercased() == "https" else {
        end(.failure(.unreachable("a redirect to another scheme than https")))
        completionHandler(nil)
        return task.cancel()
      }
      guard count <= Self.mostRedirects else {
        end(.failure(.unreachable("more than \(Self.mostRedirects) redirects")))
        completionHandler(nil)
        return task.cancel()
      }
      completionHandler(request)
    }

    func urlSession(
      _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
      completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
      guard response.expectedContentLength <= Int64(exchange.maximumBytes) else {
        end(excess(response))
        return completionHandler(.cancel)
      }
      completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
      let fits = state.withLock { state in
        guard state.body.count + data.count <= exchange.maximumBytes else { return false }
        state.body.append(contentsOf: data)
        return true
      }
      guard !fits else { return }
      end(excess(dataTask.response))
      dataTask.cancel()
    }

    /// What an answer is that has a longer body than is wanted.
    private func excess(_ response: URLResponse?) -> Answer {
      if case .post = exchange.kind, let response = response as? HTTPURLResponse {
        return .success(answer(response))
      }
      return .failure(.tooLarge(limit: exchange.maximumBytes))
    }

    private func answer(_ response: HTTPURLResponse) -> HTTPAnswer {
      HTTPAnswer(
        status: response.statusCode, etag: response.value(forHTTPHeaderField: "ETag"),
        retryAfter: response.value(forHTTPHeaderField: "Retry-After"),
        body: state.withLock { $0.body })
    }

    func urlSession(
      _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
    ) {
      if let error {
        let hasBody = state.withLock { !$0.body.isEmpty }
        if hasBody, case .post = exchange.kind, let response = task.response as? HTTPURLResponse {
          return end(.success(answer(response)))
        }
        return end(.failure(.unreachable(error.localizedDescription)))
      }
      guard let response = task.response as? HTTPURLResponse else {
        return end(.failure(.unreachable("the answer is not HTTP")))
      }
      end(.success(answer(response)))
    }
  }
#endif
