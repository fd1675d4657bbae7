#if canImport(Security)
  import Foundation

  extension URLSessionTask: TransferTask {}

  /// The tasks of one of ``PlatformClient``'s sessions: hands what the session says of a task to its
  /// ``TaskTransfer``.
  final class ClientTransfers: NSObject, URLSessionDataDelegate {
    private let byTask = Locked<[Int: TaskTransfer]>([:])

    /// A hop's transfer over a new task of `session`, whose delegate this is.
    func start(
      _ hop: Hop, feed: ResponseFeed?, unread: Int, on session: URLSession
    ) throws -> TaskTransfer {
      var request = hop.request
      let body = hop.feed
      let pump = try body.map(StreamPump.init)
      if case .data(let data) = hop.body { request.httpBody = data }
      if let pump { request.httpBodyStream = pump.input }
      // Under the lock: a task that is cancelled as it is made may end before its number is known.
      let transfer = byTask.withLock { transfers in
        let task = session.dataTask(with: request)
        let transfer = TaskTransfer(hop, over: task, body: body, feed: feed, unread: unread) {
          pump?.end()
        }
        transfers[task.taskIdentifier] = transfer
        return transfer
      }
      pump?.start { [weak transfer] in transfer?.stop(.body($0)) }
      return transfer
    }

    private func transfer(of task: URLSessionTask) -> TaskTransfer? {
      byTask.withLock { $0[task.taskIdentifier] }
    }

    /// The head decides over the next hop, and does so here: of a redirect that was declined some systems were seen to
    /// tell nothing more until the task timed out (Open Radar 19860450 and 31284156).
    func urlSession(
      _ session: URLSession, task: URLSessionTask,
      willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest,
      completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
      _ = transfer(of: task)?.head(response)
      completionHandler(nil)
    }

    func urlSession(
      _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
      completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) { completionHandler(transfer(of: dataTask)?.head(response) == true ? .allow : .cancel) }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
      transfer(of: dataTask)?.data(data)
    }

    func urlSession(
      _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
    ) {
      let transfer = byTask.withLock { $0.removeValue(forKey: task.taskIdentifier) }
      transfer?.ended(error, response: task.response)
    }
  }
#endif
