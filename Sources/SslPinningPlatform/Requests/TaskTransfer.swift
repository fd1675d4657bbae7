import Foundation
import SslPinningRules

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// What a ``TaskTransfer`` does to a task of the platform's session. None of these calls back from inside.
protocol TransferTask: Sendable {
  func suspend()
  func resume()
  func cancel()
}

/// One hop of a request over a task of the platform's session: carries out what ``TransferState`` orders.
///
/// - Orders about the task are carried out under the lock. The system counts `suspend` against `resume`, and a
///   `resume` that overtook its `suspend` would leave the task asleep for ever.
final class TaskTransfer: Sendable {
  private let state: Locked<TransferState>
  private let task: any TransferTask
  private let body: BodyFeed?
  private let feed: ResponseFeed?
  private let whenEnded: @Sendable () -> Void
  private let answered = Once<TransferState.Answer>()
  private let timer = Locked<Task<Void, Never>?>(nil)

  /// - Parameters:
  ///   - body: the body that the task sends; when all is over, the app is asked for no more of it.
  ///   - feed: takes the answer's body as it comes; `nil`: the whole of it is the answer's.
  ///   - unread: bytes that may wait for the feed's reader.
  ///   - whenEnded: called when the system is done with the task; until then it may still read a body.
  init(
    _ hop: Hop, over task: any TransferTask, body: BodyFeed? = nil, feed: ResponseFeed?,
    unread: Int, whenEnded: @escaping @Sendable () -> Void = {}
  ) {
    state = Locked(TransferState(hop, limit: feed == nil ? nil : unread))
    self.task = task
    self.body = body
    self.feed = feed
    self.whenEnded = whenEnded
    feed?.whenTaken { [weak self] count in self?.act { $0.taken(count) } }
  }

  /// Starts the task and waits for what the caller is told. Cancelling the caller's task ends the transfer, and so
  /// does the end of its time, after the answer, too.
  ///
  /// - Parameter seconds: sleep of the device included; `nil`: any time.
  func answer(within seconds: Double?) async -> TransferState.Answer {
    await withTaskCancellationHandler {
      if let seconds { startTimer(seconds) }
      // One that was stopped already, too: the system tells the end only of tasks that it has begun.
      task.resume()
      return await answered.value
    } onCancel: {
      stop(.cancelled)
    }
  }

  /// Ends the transfer; once it is over, nothing happens.
  func stop(_ reason: TransferState.Stop) { act { $0.stop(reason) } }

  /// The head has come.
  ///
  /// - Returns: whether the body is wanted.
  func head(_ response: URLResponse) -> Bool { act { $0.head(response) } }

  /// Bytes of the body have come.
  func data(_ data: Data) { act { $0.data(data) } }

  /// The system is done with the task.
  func ended(_ error: (any Error)?, response: URLResponse?) {
    act { $0.ended(error, response: response) }
    whenEnded()
  }

  /// - Returns: whether the transfer goes on.
  @discardableResult
  private func act(_ event: (inout TransferState) -> [TransferState.Order]) -> Bool {
    let (orders, isOver) = state.withLock { state in
      let orders = event(&state)
      for order in orders {
        switch order {
        case .suspend: task.suspend()
        case .resume: task.resume()
        case .cancel: task.cancel()
        case .answer, .pass, .finish: break
        }
      }
      return (orders, state.isOver)
    }
    for order in orders {
      switch order {
      case .suspend, .resume, .cancel: break
      case .answer(let answer): answered.give(answer)
      case .pass(let data): feed?.append(data)
      case .finish(nil): feed?.finish()
      case .finish(let error?): feed?.finish(throwing: error)
      }
    }
    if isOver {
      body?.close()
      timer.withLock { $0 }?.cancel()
    }
    return !isOver
  }

  private func startTimer(_ seconds: Double) {
    guard seconds < .infinity else { return }
    let timer = promptTask { [weak self] in
      guard (try? await ContinuousWait.ofRequests.waitOut(seconds)) != nil else { return }
      self?.stop(.late)
    }
    self.timer.withLock { $0 = timer }
    // It may have been stopped meanwhile.
    if state.withLock({ $0.isOver }) { timer.cancel() }
  }
}

extension TaskTransfer {
  /// Runs a request, a transfer for each hop, until an answer that leads nowhere else.
  ///
  /// - Parameters:
  ///   - seconds: for all of it, sleep of the device included; `nil`: any time.
  ///   - judge: is told the refusals that no connection was made for.
  ///   - refusal: the refusal behind an error of the system's.
  ///   - start: makes the transfer of a hop.
  /// - Throws: ``SslPinningRules/PinEvaluation`` for a refusal, the error of the app's own body, or `URLError`.
  static func run(
    _ first: Hop, within seconds: Double?, judge: any PinEvaluating,
    refusal: (any Error) -> PinEvaluation?, start: (Hop) throws -> TaskTransfer
  ) async throws -> (response: HTTPURLResponse, body: Data, last: TaskTransfer) {
    let end = seconds.map { continuousMoment() + $0 }
    var hop = first
    while true {
      let transfer: TaskTransfer
      do { transfer = try start(hop) } catch {
        if let refusal = error as? PinEvaluation { judge.record(refusal) }
        throw error
      }
      switch await transfer.answer(within: end.map { $0 - continuousMoment() }) {
      case .response(let response, let body): return (response, body, transfer)
      case .redirect(let next): hop.follow(next)
      case .refused(let refusal):
        judge.record(refusal)
        throw refusal
      case .failed(let error): throw error
      case .broken(let error): throw refusal(error) ?? error
      }
    }
  }
}
