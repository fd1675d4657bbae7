#if canImport(Security)
  import Foundation

  /// The tasks of one of ``PlatformClient``'s sessions: hands what the session says of a task to its
  /// transfer.
  final class ClientTransfers: NSObject, URLSessionDataDelegate {
    private let byTask = Locked<[Int: ClientTransfer]>([:])

    func add(_ transfer: ClientTransfer, as task: URLSessionTask) {
      byTask.withLock { $0[task.taskIdentifier] = transfer }
    }

    private func transfer(of task: URLSessionTask) -> ClientTransfer? {
      byTask.withLock { $0[task.taskIdentifier] }
    }

    /// Whoever asked decides over the next hop; the answer that leads there is an answer.
    func urlSession(
      _ session: URLSession, task: URLSessionTask,
      willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest,
      completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) { completionHandler(nil) }

    func urlSession(
      _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
      completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
      transfer(of: dataTask)?.received(response)
      completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
      transfer(of: dataTask)?.received(data)
    }

    func urlSession(
      _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
    ) {
      let transfer = byTask.withLock { $0.removeValue(forKey: task.taskIdentifier) }
      transfer?.ended(error)
    }
  }
#endif
