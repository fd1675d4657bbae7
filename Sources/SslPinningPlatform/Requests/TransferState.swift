import Foundation
import SslPinningRules

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// What one hop of a request over a task of the platform's session has come to: events in, orders out.
///
/// - The caller is answered once. When all is over, no event asks for anything any more.
/// - The head decides: of a redirect nothing further is read, and the task is cancelled.
/// - A transfer that is ended from outside (the app's cancel, the end of its time, a body that breaks off) answers
///   at once, in its own words. What the system says of it afterwards is not looked at: it says "cancelled", as it
///   does of a refusal.
/// - With a reader the task is suspended once as many bytes wait for the reader as may, and resumed at half of
///   that. Data that comes all the same is passed on. One `suspend` never follows another: the system counts them.
struct TransferState {
  /// What the caller is told.
  enum Answer: Sendable {
    /// The head, and the whole body where there is no reader.
    case response(HTTPURLResponse, Data)
    /// The next request.
    case redirect(URLRequest)
    /// A redirect that must not be followed.
    case refused(PinEvaluation)
    /// It was ended from outside, or there is no answer that could be used.
    case failed(any Error)
    /// The system's error; a refusal of its connection may stand behind it.
    case broken(any Error)
  }

  /// What is to be done, in order.
  enum Order: Sendable {
    /// About the task.
    case suspend, resume, cancel
    /// Answers the caller.
    case answer(Answer)
    /// Hands bytes to the reader.
    case pass(Data)
    /// Ends the reader's body; `nil`: it is whole.
    case finish((any Error)?)
  }

  /// Why a transfer is ended from outside.
  enum Stop: Sendable {
    case cancelled
    /// Its time is over.
    case late
    /// The app's own body broke off with this error.
    case body(any Error)
  }

  private enum Phase {
    case waiting
    case gathering(HTTPURLResponse, Data)
    case streaming(unread: Int, isSuspended: Bool)
    case over
  }

  private let hop: Hop
  /// Bytes that may wait for the reader; `nil`: there is none, and the whole answer is gathered.
  private let limit: Int?
  private var phase = Phase.waiting

  init(_ hop: Hop, limit: Int?) {
    self.hop = hop
    self.limit = limit
  }

  /// Whether nothing of the transfer is wanted any more.
  var isOver: Bool { if case .over = phase { true } else { false } }

  /// The head has come. A further one, between the parts of a `multipart/x-mixed-replace`, changes nothing.
  mutating func head(_ response: URLResponse) -> [Order] {
    guard case .waiting = phase else { return [] }
    guard let response = response as? HTTPURLResponse else { return end(.failed(noAnswer)) }
    switch hop.decide(response) {
    case .deliver:
      guard limit != nil else {
        phase = .gathering(response, Data())
        return []
      }
      phase = .streaming(unread: 0, isSuspended: false)
      return [.answer(.response(response, Data()))]
    case .follow(let next): return end(.redirect(next))
    case .refuse(let evaluation): return end(.refused(evaluation))
    case .fail(let code): return end(.failed(URLError.failing(code, hop.request.url)))
    }
  }

  /// Bytes of the body have come.
  mutating func data(_ data: Data) -> [Order] {
    switch phase {
    case .waiting: return end(.failed(noAnswer))
    case .gathering(let response, var body):
      // Out of `phase` meanwhile, so that appending copies nothing.
      phase = .over
      body.append(data)
      phase = .gathering(response, body)
      return []
    case .streaming(let before, let isSuspended):
      let unread = before + data.count
      let isFull = unread >= limit ?? 0
      phase = .streaming(unread: unread, isSuspended: isSuspended || isFull)
      return isFull && !isSuspended ? [.suspend, .pass(data)] : [.pass(data)]
    case .over: return []
    }
  }

  /// The reader has taken so many bytes.
  mutating func taken(_ count: Int) -> [Order] {
    guard case .streaming(let before, let isSuspended) = phase else { return [] }
    let unread = max(0, before - count)
    let goesOn = isSuspended && unread <= (limit ?? 0) / 2
    phase = .streaming(unread: unread, isSuspended: isSuspended && !goesOn)
    return goesOn ? [.resume] : []
  }

  /// Ends the transfer from outside.
  mutating func stop(_ reason: Stop) -> [Order] {
    let error: any Error =
      switch reason {
      case .cancelled: URLError.failing(.cancelled, hop.request.url)
      case .late: URLError.failing(.timedOut, hop.request.url)
      case .body(let error): error
      }
    return end(.failed(error))
  }

  /// The system says that the task has ended.
  ///
  /// - Parameter response: the task's head, for an end that no head was told before.
  mutating func ended(_ error: (any Error)?, response: URLResponse?) -> [Order] {
    var orders: [Order] = []
    if case .waiting = phase, error == nil, let response { orders = head(response) }
    switch phase {
    case .waiting: orders += [.answer(error.map(Answer.broken) ?? .failed(noAnswer))]
    case .gathering(let response, let body):
      orders += [.answer(error.map(Answer.broken) ?? .response(response, body))]
    case .streaming: orders += [.finish(error)]
    case .over: break
    }
    phase = .over
    return orders
  }

  private mutating func end(_ answer: Answer) -> [Order] {
    defer { phase = .over }
    switch (phase, answer) {
    case (.over, _): return []
    case (.streaming, .failed(let error)): return [.cancel, .finish(error)]
    default: return [.cancel, .answer(answer)]
    }
  }

  private var noAnswer: URLError { .failing(.badServerResponse, hop.request.url) }
}
