import CMicroHTTPD
import Foundation
import SslPinningPlatform
import Synchronization

/// One client's connection, and the request on it: there is one at a time.
///
/// Unchecked: all but atomics and ``later`` belongs to the one thread of libmicrohttpd that
/// serves the connection.
final class HTTPConnection: @unchecked Sendable {
  enum Phase {
    /// Nothing of a request is known.
    case idle
    /// The first line is in.
    case header
    /// The header is in and accepted.
    case body
    /// Somebody works on the answer.
    case waiting
    /// The answer goes out.
    case answering
  }

  let pointer: OpaquePointer
  let descriptor: Int32
  /// The other side's numeric address, and what counts as one caller with it.
  let peer: String
  let caller: Caller
  /// Nanoseconds of the monotonic clock.
  let deadline = Atomic<Int64>(.max)
  /// When what it does now began, and whether that is waiting for a request.
  let since = Atomic<Int64>(0)
  let isIdle = Atomic(true)
  /// Whether it was cut, and only its end is missing.
  let isCut = Atomic(false)
  /// The answer that is waited for.
  var later: LaterAnswer? { waiting.withLock { $0 } }
  private let waiting = Locked<LaterAnswer?>(nil)

  var phase = Phase.idle
  /// When the request began, until it is told of.
  var began: ContinuousClock.Instant?
  /// Bytes of the target, up to a NUL.
  var targetLength = 0
  /// The query as sent, without its `?`.
  var query: [UInt8] = []
  /// As handlers are told it: HEAD is GET.
  var method = ""
  var path = ""
  var pairs: [(name: String, value: String)] = []
  var headers = HTTPHeaders()
  var body = RequestBody()
  /// What is answered in the handler's place.
  var refusal: HTTPResponse?
  /// Whether the answer is the connection's last.
  var isLast = false

  init(pointer: OpaquePointer, descriptor: Int32, peer: String) {
    self.pointer = pointer
    self.descriptor = descriptor
    self.peer = peer
    caller = Caller(peer)
  }

  func wait(for answer: LaterAnswer?) { waiting.withLock { $0 = answer } }

  /// Forgets the request.
  func reset() {
    phase = .idle
    began = nil
    method = ""
    path = ""
    query = []
    pairs = []
    body.end()
    refusal = nil
    isLast = false
  }
}

/// A connection whose answer comes later.
struct SuspendedConnection: @unchecked Sendable {
  /// Unchecked: resuming may be asked for from any thread.
  let pointer: OpaquePointer
  let descriptor: Int32
  let table: SuspendedConnections

  fileprivate func suspend() { MHD_suspend_connection(pointer) }

  func resume(_ answer: LaterAnswer) { table.resume(answer, pointer) }
}

/// The suspended connections of a server.
///
/// libmicrohttpd does not look at a suspended connection, so who hangs up is noticed here. A
/// descriptor is looked at under the lock that its resumption takes: until then it is open.
final class SuspendedConnections: Sendable {
  private struct State {
    var waiting: [ObjectIdentifier: Waiting] = [:]
    /// The strangers among them.
    var strangers = CallerCounts()
    var isStopping = false
    var isClosed = false
  }

  private struct Waiting {
    let answer: LaterAnswer
    let descriptor: Int32
    let stranger: Stranger?
  }

  /// Somebody who has shown no token.
  struct Stranger {
    let caller: Caller
    /// How many may wait in all, and of this one.
    let most: Int
    let mostOfOne: Int
  }

  private let state = Locked(State())

  /// Suspends a connection until its answer is there. Called from the connection's handler.
  ///
  /// - Parameters:
  ///   - stranger: whose connection it is; `nil` for somebody who is not limited.
  ///   - then: is told the answer before work on it begins.
  /// - Returns: what to answer in its place; `nil` where it waits now.
  func suspend(
    _ pointer: OpaquePointer, _ descriptor: Int32, of stranger: Stranger?,
    for work: @escaping @Sendable () async -> HTTPResponse, then: (LaterAnswer) -> Void
  ) -> HTTPResponse? {
    let connection = SuspendedConnection(pointer: pointer, descriptor: descriptor, table: self)
    let answer = LaterAnswer(connection: connection)
    let (refusal, isStopping): (HTTPResponse?, Bool) = state.withLock { state in
      guard !state.isClosed else { return (HTTPRefusal.unavailable, true) }
      if let stranger {
        guard state.strangers.total < stranger.most,
          state.strangers.hasRoom(for: stranger.caller, most: stranger.mostOfOne)
        else { return (HTTPRefusal.crowded, false) }
        state.strangers.add(stranger.caller)
      }
      connection.suspend()
      state.waiting[ObjectIdentifier(answer)] = Waiting(
        answer: answer, descriptor: descriptor, stranger: stranger)
      return (nil, state.isStopping)
    }
    guard refusal == nil else { return refusal }
    then(answer)
    if isStopping { answer.cancel() }
    answer.start(work)
    return nil
  }

  /// Cancels the work for clients that have hung up or closed their sending side, as nobody who
  /// waits for an answer does.
  func cancelAbandoned() {
    let abandoned = state.withLock { state in
      let waiting = Array(state.waiting.values)
      var watched = waiting.map {
        pollfd(fd: $0.descriptor, events: pp_poll_peer_ended(), revents: 0)
      }
      guard !watched.isEmpty, poll(&watched, nfds_t(watched.count), 0) > 0 else {
        return [LaterAnswer]()
      }
      return zip(waiting, watched).filter { $0.1.revents != 0 }.map { $0.0.answer }
    }
    for answer in abandoned { answer.cancel() }
  }

  /// Cancels all work, from now on also what only begins.
  func cancelAll() {
    let all = state.withLock { state in
      state.isStopping = true
      return state.waiting.values.map(\.answer)
    }
    for answer in all { answer.cancel() }
  }

  /// Answers in place of all work that is still under way, and takes no more.
  func close() {
    let all = state.withLock { state in
      state.isClosed = true
      return state.waiting.values.map(\.answer)
    }
    for answer in all { answer.deliver(HTTPRefusal.unavailable) }
  }

  /// How many wait.
  var count: Int { state.withLock { $0.waiting.count } }

  /// Under the lock: a daemon must not be stopped between the two steps, and ``close()`` comes
  /// before its stop.
  fileprivate func resume(_ answer: LaterAnswer, _ pointer: OpaquePointer) {
    state.withLock { state in
      guard let ended = state.waiting.removeValue(forKey: ObjectIdentifier(answer)) else { return }
      if let stranger = ended.stranger { state.strangers.remove(stranger.caller) }
      MHD_resume_connection(pointer)
    }
  }
}

/// An answer that a task works on while its connection is suspended.
///
/// - It comes once: from the task, or in its place when time is up. What comes after is dropped.
/// - The connection is resumed once, and then belongs to libmicrohttpd again.
final class LaterAnswer: Sendable {
  private struct State {
    var task: Task<Void, Never>?
    var response: HTTPResponse?
    var isCancelled = false
  }

  private let state = Locked(State())
  private let connection: SuspendedConnection

  init(connection: SuspendedConnection) { self.connection = connection }

  func start(_ work: @escaping @Sendable () async -> HTTPResponse) {
    guard response == nil else { return }
    let task = Task { deliver(await work()) }
    let isCancelled = state.withLock { state in
      if state.response == nil { state.task = task }
      return state.isCancelled
    }
    if isCancelled { task.cancel() }
  }

  /// The answer, once it is there.
  var response: HTTPResponse? { state.withLock { $0.response } }

  /// Asks the task to end. Its answer is still sent.
  func cancel() {
    let task = state.withLock { state in
      state.isCancelled = true
      return state.task
    }
    task?.cancel()
  }

  /// Time is up: asks the task to end, and where it was asked before, answers in its place.
  func expire() {
    if state.withLock({ $0.isCancelled }) { deliver(HTTPRefusal.unavailable) } else { cancel() }
  }

  /// Sets the answer, unless there is one, and resumes the connection.
  func deliver(_ response: HTTPResponse) {
    let isFirst = state.withLock { state in
      guard state.response == nil else { return false }
      state.response = response
      state.task = nil
      return true
    }
    if isFirst { connection.resume(self) }
  }
}
