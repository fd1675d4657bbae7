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
