import Foundation

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
