#if os(Linux)
  import CSslPinningShims
  import Foundation

  /// A request's body as it comes from the app, chunk by chunk.
  ///
  /// - Nothing is taken from the app before the connection was accepted.
  /// - One chunk at a time: the next is asked for once libcurl has taken the last.
  final class BodyFeed: Sendable {
    private struct State {
      var chunk = Data()
      var hasEnded = false
      var failure: (any Error)?
      var space: CheckedContinuation<Void, Never>?
      var pump: Task<Void, Never>?
      var isClosed = false
      var wake: (@Sendable () -> Void)?
    }

    /// How many bytes will come; -1: unknown.
    let count: Int64
    private let state = Locked(State())
    private let source: @Sendable (BodyFeed) async throws -> Void

    /// - Parameter source: calls ``put(_:)`` for each chunk and returns at the end.
    init(count: Int64 = -1, _ source: @escaping @Sendable (BodyFeed) async throws -> Void) {
      self.count = count
      self.source = source
    }

    var failure: (any Error)? { state.withLock { $0.failure } }

    /// Whether a chunk was asked for: then the body cannot be sent again.
    var hasBegun: Bool { state.withLock { $0.pump != nil } }

    /// Whom to tell when there is more.
    func whenMore(_ wake: @escaping @Sendable () -> Void) { state.withLock { $0.wake = wake } }

    /// Gives the app's next chunk and waits until it was taken. False: nobody wants more.
    func put(_ chunk: Data) async -> Bool {
      guard !chunk.isEmpty else { return true }
      await withCheckedContinuation { continuation in
        let wake = state.withLock { state -> (@Sendable () -> Void)? in
          guard !state.isClosed else { return nil }
          state.chunk = chunk
          state.space = continuation
          return state.wake
        }
        if let wake { wake() } else { continuation.resume() }
      }
      return !state.withLock { $0.isClosed }
    }

    /// The loop's side: fills `bytes`, or says that there is nothing yet.
    func fill(_ bytes: UnsafeMutableRawPointer, capacity: Int) -> Int {
      let (filled, space) = state.withLock { state -> (Int, CheckedContinuation<Void, Never>?) in
        if state.pump == nil { state.pump = Task { await self.run() } }
        if state.failure != nil { return (Int(PP_FEED_FAILED), nil) }
        guard !state.chunk.isEmpty else {
          return (state.hasEnded ? 0 : Int(PP_FEED_LATER), nil)
        }
        let count = min(capacity, state.chunk.count)
        state.chunk.withUnsafeBytes {
          if let from = $0.baseAddress { bytes.copyMemory(from: from, byteCount: count) }
        }
        state.chunk = state.chunk.dropFirst(count)
        guard state.chunk.isEmpty else { return (count, nil) }
        defer { state.space = nil }
        return (count, state.space)
      }
      space?.resume()
      return filled
    }

    /// The request is over: the app's sequence is cancelled.
    func close() {
      let (space, pump) = state.withLock { state in
        state.isClosed = true
        state.wake = nil
        defer { state.space = nil }
        return (state.space, state.pump)
      }
      pump?.cancel()
      space?.resume()
    }

    private func run() async {
      var failure: (any Error)?
      do { try await source(self) } catch { failure = error }
      let wake = state.withLock { state in
        state.failure = failure
        state.hasEnded = true
        return state.wake
      }
      wake?()
    }
  }
#endif
