#if canImport(Security)
  import Foundation

  /// One transfer over a `URLSession` of its own, which ends with it.
  ///
  /// - The chain and the host name are judged by the fetcher's own validator; pins are not asked.
  /// - Redirects of a fetch go to `https` only, at most five; those of a post are not followed.
  /// - The body is counted as it arrives; one byte too many ends the transfer.
  enum PlatformFetch {
    static func perform(
      _ exchange: HTTPExchange, validator: ChainValidator
    ) async -> Result<HTTPAnswer, FetchError> {
      guard let url = URL(string: exchange.url.description) else {
        return .failure(.unreachable("\(exchange.url) is no URL"))
      }
      let seconds = max(0.001, min(exchange.timeout, Double(Int32.max) / 1000))
      let configuration = URLSessionConfiguration.ephemeral
      configuration.urlCache = nil
      configuration.httpShouldSetCookies = false
      configuration.httpCookieStorage = nil
      configuration.urlCredentialStorage = nil
      configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
      configuration.timeoutIntervalForRequest = seconds
      configuration.timeoutIntervalForResource = seconds
      var outgoing = URLRequest(
        url: url, cachePolicy: .reloadIgnoringLocalCacheData, timeoutInterval: seconds)
      for (name, value) in exchange.headers {
        outgoing.setValue(value, forHTTPHeaderField: name)
      }
      if case .post(let bytes) = exchange.kind {
        outgoing.httpMethod = "POST"
        outgoing.httpBody = Data(bytes)
      }
      let transfer = FetchTransfer(exchange, validator: validator)
      let session = URLSession(
        configuration: configuration, delegate: transfer, delegateQueue: nil)
      // The session holds its delegate until then.
      defer { session.invalidateAndCancel() }
      let task = session.dataTask(with: outgoing)
      return await withTaskCancellationHandler {
        await withCheckedContinuation { continuation in
          transfer.whenDone { continuation.resume(returning: $0) }
          // The system's own time-out for resources is checked now and then only.
          DispatchQueue.global().asyncAfter(deadline: .now() + seconds) {
            transfer.end(.failure(.unreachable("no whole answer within \(seconds) s")))
            task.cancel()
          }
          task.resume()
        }
      } onCancel: {
        transfer.end(.failure(.cancelled))
        task.cancel()
      }
    }
  }
#endif
