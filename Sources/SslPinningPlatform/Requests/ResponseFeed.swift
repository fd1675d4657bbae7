import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// A response's body on its way from the transfer to whoever reads it.
///
/// - Chunks that nobody has taken count against the transfer, which pauses at a limit: a slow reader
///   slows the server down, through TCP.
final class ResponseFeed: Sendable {
  private struct State {
    var chunks: [Data] = []
    var end: Result<Void, any Error>?
    var reader: CheckedContinuation<Data?, any Error>?
    var taken: (@Sendable (Int) -> Void)?
  }

  private let state = Locked(State())

  /// Whom to tell how many bytes were taken.
  func whenTaken(_ taken: @escaping @Sendable (Int) -> Void) {
    state.withLock { $0.taken = taken }
  }

  func append(_ chunk: Data) {
    let (reader, taken) = state.withLock { state in
      if state.reader == nil { state.chunks.append(chunk) }
      defer { state.reader = nil }
      return (state.reader, state.taken)
    }
    guard let reader else { return }
    reader.resume(returning: chunk)
    taken?(chunk.count)
  }

  func finish() { end(.success(())) }

  func finish(throwing error: any Error) { end(.failure(error)) }

  private func end(_ result: Result<Void, any Error>) {
    let reader = state.withLock { state -> CheckedContinuation<Data?, any Error>? in
      guard state.end == nil else { return nil }
      state.end = result
      state.taken = nil
      defer { state.reader = nil }
      return state.reader
    }
    reader?.resume(with: result.map { nil })
  }

  /// The next chunk; `nil` at the end. One reader at a time.
  func next() async throws -> Data? {
    try await withCheckedThrowingContinuation { continuation in
      enum Now {
        case chunk(Data, (@Sendable (Int) -> Void)?)
        case end(Result<Void, any Error>)
        case busy, later
      }
      let now = state.withLock { state -> Now in
        if !state.chunks.isEmpty { return .chunk(state.chunks.removeFirst(), state.taken) }
        if let end = state.end { return .end(end) }
        guard state.reader == nil else { return .busy }
        state.reader = continuation
        return .later
      }
      switch now {
      case .later: break
      case .busy: continuation.resume(throwing: URLError(.cancelled))
      case .end(let end): continuation.resume(with: end.map { nil })
      case .chunk(let chunk, let taken):
        continuation.resume(returning: chunk)
        taken?(chunk.count)
      }
    }
  }
}

/// A response's body as it comes, in chunks.
///
/// - A slow reader slows the server down: where a quarter of a megabyte waits for it, the transfer pauses. What
///   the system has read by then still comes.
/// - For one reader. Iterating ends with the error that ended the transfer, if one did; letting go of
///   the sequence, or cancelling the reader's task, ends the transfer.
public struct ResponseChunks: AsyncSequence, Sendable {
  /// A chunk, as it came.
  public typealias Element = Data

  private let source: Source

  init(
    next: @escaping @Sendable () async throws -> Data?, cancel: @escaping @Sendable () -> Void,
    keeping transport: PinnedTransport
  ) {
    source = Source(next: next, cancel: cancel, transport: transport)
  }

  public func makeAsyncIterator() -> Iterator { Iterator(source: source) }

  /// Hands the chunks out, each once.
  public struct Iterator: AsyncIteratorProtocol {
    fileprivate let source: Source

    /// The next chunk; `nil` at the end.
    ///
    /// - Throws: `URLError` where the transfer failed; hops are judged before there is a body.
    public mutating func next() async throws -> Data? {
      let source = source
      return try await withTaskCancellationHandler {
        try await source.next()
      } onCancel: {
        source.cancel()
      }
    }
  }

  /// Ends the transfer with the last reference. Holds the transport, whose end would end it too.
  fileprivate final class Source: Sendable {
    let next: @Sendable () async throws -> Data?
    let cancel: @Sendable () -> Void
    private let transport: PinnedTransport

    init(
      next: @escaping @Sendable () async throws -> Data?, cancel: @escaping @Sendable () -> Void,
      transport: PinnedTransport
    ) {
      self.next = next
      self.cancel = cancel
      self.transport = transport
    }

    deinit { cancel() }
  }
}
