#if os(Linux)
  import CSslPinningShims
  import Foundation

  /// An `InputStream` as chunks, read on threads that may block.
  ///
  /// - A stream is sent once: one that was read to its end, or closed, has nothing left.
  /// - Foundation's `streamError` ends the process if the stream has no error of its own, as one that somebody closed. So
  ///   only one that says that it failed is asked for it.
  ///
  /// Unchecked: the stream is touched by one call of ``pass(to:)`` alone, one read at a time.
  final class StreamChunks: @unchecked Sendable {
    // As many as requests over all hosts: no more are read at a time.
    private static let threads = OwnThreads(limit: RequestSettings().total)
    private let stream: InputStream

    /// - Returns: `nil` for a stream that was used already.
    init?(_ stream: InputStream) {
      guard stream.streamStatus == .notOpen || stream.streamStatus == .open else { return nil }
      self.stream = stream
    }

    func pass(to put: (Data) async -> Bool) async throws {
      stream.open()
      defer { stream.close() }
      while let chunk = try await read() {
        guard await put(chunk) else { return }
      }
    }

    private func read() async throws -> Data? {
      try await withCheckedThrowingContinuation { continuation in
        Self.threads.run { [self] in
          var buffer = [UInt8](repeating: 0, count: 65_536)
          let count = stream.read(&buffer, maxLength: buffer.count)
          if count < 0 {
            let fault = stream.streamStatus == .error ? stream.streamError : nil
            continuation.resume(throwing: fault ?? CocoaError(.fileReadUnknown))
          } else {
            continuation.resume(returning: count == 0 ? nil : Data(buffer.prefix(count)))
          }
        }
      }
    }
  }

  extension BodyFeed {
    /// The loop's side: fills `bytes` with the next of the body and says with how many; 0 is its end,
    /// `PP_FEED_LATER` and `PP_FEED_FAILED`.
    func fill(_ bytes: UnsafeMutableRawPointer, capacity: Int) -> Int {
      switch next() {
      case .later: return Int(PP_FEED_LATER)
      case .end: return 0
      case .broken: return Int(PP_FEED_FAILED)
      case .bytes(let chunk):
        let count = min(capacity, chunk.count)
        chunk.withUnsafeBytes {
          if let from = $0.baseAddress { bytes.copyMemory(from: from, byteCount: count) }
        }
        took(count)
        return count
      }
    }
  }
#endif
