import Foundation
import FoundationNetworking
import SslPinningPlatform
import TestSupport

/// An app's own delegate that writes down what it is told and waits for the task's end.
final class RecordingDelegate: NSObject, URLSessionDataDelegate, URLSessionDownloadDelegate {
  struct Record: Sendable {
    var events: [String] = []
    var body = Data()
    var chunks = 0
    var sent: Int64 = 0
    var error: (any Error)?
    var isComplete = false
  }

  private let state = Locked(Record())
  private let followsRedirects: Bool
  private let credential: URLCredential?

  init(followsRedirects: Bool = true, credential: URLCredential? = nil) {
    self.followsRedirects = followsRedirects
    self.credential = credential
  }

  var record: Record { state.withLock { $0 } }

  private func note(_ event: String) { state.withLock { $0.events.append(event) } }

  /// Starts the task and returns what was told until its end; within a minute.
  func run(_ task: URLSessionTask) async -> Record {
    task.resume()
    _ = await eventually { self.record.isComplete }
    return record
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
    completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
  ) {
    note("challenge \(challenge.protectionSpace.authenticationMethod)")
    completionHandler(credential == nil ? .performDefaultHandling : .useCredential, credential)
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask,
    willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest,
    completionHandler: @escaping (URLRequest?) -> Void
  ) {
    note("redirect \(response.statusCode)")
    completionHandler(followsRedirects ? request : nil)
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64,
    totalBytesSent: Int64, totalBytesExpectedToSend: Int64
  ) {
    state.withLock { $0.sent = totalBytesSent }
  }

  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
    completionHandler: @escaping (URLSession.ResponseDisposition) -> Void
  ) {
    note("response \((response as? HTTPURLResponse)?.statusCode ?? 0)")
    completionHandler(.allow)
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    state.withLock {
      $0.body.append(data)
      $0.chunks += 1
    }
  }

  func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask,
    didFinishDownloadingTo location: URL
  ) {
    let body = (try? Data(contentsOf: location)) ?? Data()
    state.withLock { $0.body = body }
    note("downloaded")
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
  ) {
    state.withLock {
      $0.error = error
      $0.isComplete = true
    }
  }
}
