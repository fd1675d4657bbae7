#if canImport(Security)
  import Foundation

  /// One transfer over a `URLSession` of its own, which ends with it.
  ///
  /// - The chain and the host name are judged by the fetcher's own validator; pins are not asked.
  /// - Redirects of a fetch go to `https` only, at most five; those of a post are not followed.
  /// - The body is counted as it arrives; one byte too many ends the transfer (``FetchState``).
  enum PlatformFetch {
    static func perform(
      _ exchange: HTTPExchange, validator: ChainValidator
    ) async -> Result<HTTPAnswer, FetchError> {
      guard let url = URL(string: exchange.url.description) else {
        return .failure(.unreachable("\(exchange.url) is no URL"))
      }
      let seconds = exchange.sessionTimeout
      let transfer = FetchTransfer(exchange, validator: validator)
      let session = URLSession(
        configuration: exchange.configuration, delegate: transfer, delegateQueue: nil)
      // Cancels the task, and lets go of the delegate, which the session holds until then.
      defer { session.invalidateAndCancel() }
      let task = session.dataTask(with: exchange.request(to: url))
      return await withTaskCancellationHandler {
        // The system's own time-out for resources is checked now and then only.
        let timer = Task {
          guard (try? await ContinuousWait.ofRequests.waitOut(seconds)) != nil else { return }
          transfer.answer.give(.failure(.unreachable("no whole answer within \(seconds) s")))
        }
        defer { timer.cancel() }
        task.resume()
        return await transfer.answer.value
      } onCancel: {
        transfer.answer.give(.failure(.cancelled))
      }
    }
  }
#endif
