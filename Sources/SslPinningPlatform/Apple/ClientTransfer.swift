#if canImport(Security)
  import Foundation

  /// One hop of a request over one of ``PlatformClient``'s sessions.
  ///
  /// - With a feed it is answered by its head, and its task is suspended while more than a limit waits
  ///   for the reader; without one, by the whole of it.
  final class ClientTransfer: Sendable {
    /// The head, and the body where there is no feed.
    struct Answer: Sendable {
      let response: HTTPURLResponse
      var body = Data()
      fileprivate let transfer: ClientTransfer

      /// Nobody wants the rest.
      func cancel() { transfer.cancel() }

      /// Lets the body through to the feed: the answer is the last one.
      func deliver() { transfer.deliver() }
    }

    private struct State {
      var task: URLSessionDataTask?
      var continuation: CheckedContinuation<Answer, any Error>?
      var response: HTTPURLResponse?
      var body = Data()
      var unread = 0
      var isSuspended = false
      var isCancelled = false
      var isDelivered = false
      var isLate = false
      var end: Result<Void, any Error>?
    }

    private let feed: ResponseFeed?
    private let unread: Int
    private let state = Locked(State())

    init(feed: ResponseFeed?, unread: Int) {
      self.feed = feed
      self.unread = unread
    }

    /// Whether it was ended because its time was over.
    var isLate: Bool { state.withLock { $0.isLate } }

    /// - Parameter end: by the clock of the system's uptime, in seconds.
    func run(
      _ request: URLRequest, body: RequestBody?, until end: Double?, on session: URLSession,
      among transfers: ClientTransfers
    ) async throws -> Answer {
      var request = request
      var pump: Task<Void, Never>?
      switch body {
      case .data(let data): request.httpBody = data
      case .chunks(let source): (request.httpBodyStream, pump) = StreamPump.start(source)
      case nil: break
      }
      defer { pump?.cancel() }
      let task = session.dataTask(with: request)
      transfers.add(self, as: task)
      if let end {
        let left = max(0, end - ProcessInfo.processInfo.systemUptime)
        DispatchQueue.global().asyncAfter(deadline: .now() + left) { [weak self] in
          self?.cancel(isLate: true)
        }
      }
      return try await withTaskCancellationHandler {
        try await withCheckedThrowingContinuation { continuation in
          let isCancelled = state.withLock { state in
            state.task = task
            state.continuation = continuation
            return state.isCancelled
          }
          task.resume()
          if isCancelled { task.cancel() }
        }
      } onCancel: {
        cancel()
      }
    }

    func cancel(isLate: Bool = false) {
      let task = state.withLock { state -> URLSessionDataTask? in
        guard state.end == nil else { return nil }
        state.isCancelled = true
        if isLate { state.isLate = true }
        return state.task
      }
      task?.cancel()
    }

    func received(_ response: URLResponse) {
      let continuation = state.withLock { state -> CheckedContinuation<Answer, any Error>? in
        state.response = response as? HTTPURLResponse
        guard feed != nil, state.response != nil else { return nil }
        defer { state.continuation = nil }
        return state.continuation
      }
      guard let continuation, let response = response as? HTTPURLResponse else { return }
      continuation.resume(returning: Answer(response: response, transfer: self))
    }

    func received(_ data: Data) {
      let (isPassed, suspended) = state.withLock { state -> (Bool, URLSessionDataTask?) in
        guard feed != nil, state.isDelivered else {
          state.body.append(data)
          return (false, nil)
        }
        return (true, account(data.count, &state))
      }
      suspended?.suspend()
      if isPassed { feed?.append(data) }
    }

    /// Counts what waits for the reader; returns the task where it is to be suspended.
    private func account(_ count: Int, _ state: inout State) -> URLSessionDataTask? {
      state.unread += count
      guard state.unread >= unread, !state.isSuspended else { return nil }
      state.isSuspended = true
      return state.task
    }

    private func taken(_ count: Int) {
      let task = state.withLock { state -> URLSessionDataTask? in
        state.unread -= count
        guard state.isSuspended, state.unread * 2 <= unread else { return nil }
        state.isSuspended = false
        return state.task
      }
      task?.resume()
    }

    private func deliver() {
      guard let feed else { return }
      feed.whenTaken { [weak self] in self?.taken($0) }
      // What came before stands first; the lock keeps what comes meanwhile behind it. The feed has no
      // reader yet, so it calls nobody from inside.
      let (end, suspended) = state.withLock { state in
        let early = state.body
        state.body = Data()
        state.isDelivered = true
        let suspended = early.isEmpty ? nil : account(early.count, &state)
        if !early.isEmpty { feed.append(early) }
        return (state.end, suspended)
      }
      suspended?.suspend()
      finishFeed(end)
    }

    func ended(_ error: (any Error)?) {
      let result: Result<Void, any Error> = error.map { .failure($0) } ?? .success(())
      let (continuation, response, body, isDelivered) = state.withLock { state in
        let failure = state.isLate && error != nil ? URLError(.timedOut) : error
        state.end = failure.map { .failure($0) } ?? .success(())
        defer { state.continuation = nil }
        return (state.continuation, state.response, state.body, state.isDelivered)
      }
      guard let continuation else {
        if isDelivered { finishFeed(state.withLock { $0.end }) }
        return
      }
      switch (result, response) {
      case (.failure(let error), _): continuation.resume(throwing: error)
      case (.success, nil): continuation.resume(throwing: URLError(.badServerResponse))
      case (.success, let response?):
        continuation.resume(returning: Answer(response: response, body: body, transfer: self))
      }
    }

    private func finishFeed(_ end: Result<Void, any Error>?) {
      switch end {
      case .success: feed?.finish()
      case .failure(let error): feed?.finish(throwing: error)
      case nil: break
      }
    }
  }
#endif
