#if canImport(Security)
  import Foundation

  /// One transfer over a `URLSession` of its own, which ends with it.
  ///
  /// - The chain and the host name are judged by the fetcher's own validator; pins are not asked.
  /// - Redirects go to `https` only, at most five.
  /// - The body is counted as it arrives; one byte too many ends the transfer.
  enum PlatformFetch {
    static func perform(
      _ request: DocumentRequest, validator: ChainValidator
    ) async -> Result<FetchedDocument, FetchError> {
      guard let url = URL(string: request.url.description) else {
        return .failure(.unreachable("\(request.url) is no URL"))
      }
      let seconds = max(0.001, min(request.timeout, Double(Int32.max) / 1000))
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
      for (name, value) in [
        ("Accept", "application/json"), ("User-Agent", "ssl-pinning"),
        ("If-None-Match", request.etag),
        ("Cache-Control", request.bypassesCaches ? "no-cache" : nil),
      ] {
        // A line break would be a header of somebody else's making.
        guard let value, !value.utf8.contains(where: { $0 < 0x20 || $0 == 0x7f }) else { continue }
        outgoing.setValue(value, forHTTPHeaderField: name)
      }
      let transfer = FetchTransfer(request, validator: validator)
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
        task.cancel()
      }
    }
  }
#endif
