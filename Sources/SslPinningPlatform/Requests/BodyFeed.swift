import Foundation

/// A request's body as it comes from the app, chunk by chunk.
///
/// - The app is asked for nothing before the transfer asks for the first time.
/// - One chunk at a time: the app is asked for the next once the transfer has taken the last.
/// - A body that breaks off never looks whole: after an error of the app's, or once nobody wants more, there is
///   no ``Piece/end``.
final class BodyFeed: Sendable {
  /// What the transfer gets when it asks.
  enum Piece: Equatable {
    /// Bytes to send; what was sent of them is told by ``took(_:)``.
    case bytes(Data)
    /// Nothing yet; ``whenMore(_:)`` tells when to ask again.
    case later
    /// The body is whole.
    case end
    /// The body breaks off here.
    case broken
  }

  private struct State {
    var chunk = Data()
    var hasEnded = false
    var failure: (any Error)?
    var space: CheckedContinuation<Void, Never>?
    var source: Task<Void, Never>?
    var isClosed = false
    var wake: (@Sendable () -> Void)?
  }

  private let state = Locked(State())
  private let source: @Sendable (BodyFeed) async throws -> Void

  /// - Parameter source: calls ``put(_:)`` for each chunk and returns at the end.
  init(_ source: @escaping @Sendable (BodyFeed) async throws -> Void) { self.source = source }

  /// The app's error that broke the body off.
  var failure: (any Error)? { state.withLock { $0.failure } }

  /// Whether a chunk was asked for: then the body cannot be sent again.
  var hasBegun: Bool { state.withLock { $0.source != nil } }

  /// Whom to tell when there is more, or no more.
  func whenMore(_ wake: @escaping @Sendable () -> Void) { state.withLock { $0.wake = wake } }

  /// Gives the app's next chunk and waits until it was taken. False: nobody wants more.
  func put(_ chunk: Data) async -> Bool {
    guard !chunk.isEmpty else {
      // A sequence that gives nothing else must not keep a thread for ever.
      await Task.yield()
      return !state.withLock { $0.isClosed }
    }
    await withCheckedContinuation { continuation in
      let (waits, wake) = state.withLock { state -> (Bool, (@Sendable () -> Void)?) in
        guard !state.isClosed else { return (false, nil) }
        state.chunk = chunk
        state.space = continuation
        return (true, state.wake)
      }
      if waits { wake?() } else { continuation.resume() }
    }
    return !state.withLock { $0.isClosed }
  }

  /// What to send now. One transfer asks, one call at a time.
  func next() -> Piece {
    state.withLock { state in
      if state.source == nil, !state.isClosed { state.source = Task { await self.run() } }
      if state.isClosed || state.failure != nil { return .broken }
      if !state.chunk.isEmpty { return .bytes(state.chunk) }
      return state.hasEnded ? .end : .later
    }
  }

  /// So many bytes of the last ``Piece/bytes(_:)`` were sent.
  func took(_ count: Int) {
    let space = state.withLock { state -> CheckedContinuation<Void, Never>? in
      state.chunk.removeFirst(min(count, state.chunk.count))
      guard state.chunk.isEmpty else { return nil }
      defer { state.space = nil }
      return state.space
    }
    space?.resume()
  }

  /// Nobody wants more: the app's sequence is cancelled.
  func close() {
    let (space, source) = state.withLock { state in
      state.isClosed = true
      state.wake = nil
      defer { state.space = nil }
      return (state.space, state.source)
    }
    source?.cancel()
    space?.resume()
  }

  private func run() async {
    var failure: (any Error)?
    do { try await source(self) } catch { failure = error }
    let wake = state.withLock { state in
      state.failure = failure
      state.hasEnded = true
      // Whoever is woken often holds this feed.
      defer { state.wake = nil }
      return state.wake
    }
    wake?()
  }
}

extension BodyFeed {
  /// Where a body stands after ``pour(hasRoom:write:)``.
  enum Poured {
    /// It goes on when the app gives more or the other side has room.
    case waits
    /// All of it was written: close the stream.
    case ended
    /// The app's error broke it off, or nobody wants more: the stream must stay open until the transfer has
    /// ended, because its end would make the body look whole.
    case broken
  }

  /// Writes for as long as there are bytes and the other side has room; never waits.
  ///
  /// - Parameters:
  ///   - hasRoom: whether a write would take at least one byte without waiting.
  ///   - write: returns how many bytes it took; none or less: the other side wants no more, and the app is not
  ///     asked for more. Why, the transfer tells by itself: it has an answer already, or has failed.
  func pour(hasRoom: () -> Bool, write: (Data) -> Int) -> Poured {
    while true {
      // A body that has ended or broken is told without room, too.
      switch next() {
      case .later: return .waits
      case .end: return .ended
      case .broken: return .broken
      case .bytes(let chunk):
        guard hasRoom() else { return .waits }
        let count = write(chunk)
        guard count > 0 else {
          close()
          return .broken
        }
        took(count)
      }
    }
  }
}
