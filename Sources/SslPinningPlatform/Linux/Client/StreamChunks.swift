#if os(Linux)
  import Foundation

  /// An `InputStream` as chunks, read on threads that may block.
  ///
  /// Unchecked: the stream is touched by one call of ``pass(to:)`` alone, one read at a time.
  final class StreamChunks: @unchecked Sendable {
    // As many as requests over all hosts: no more are read at a time.
    private static let threads = OwnThreads(limit: RequestSettings().total)
    private let stream: InputStream

    init(_ stream: InputStream) { self.stream = stream }

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
            continuation.resume(throwing: stream.streamError ?? CocoaError(.fileReadUnknown))
          } else {
            continuation.resume(returning: count == 0 ? nil : Data(buffer.prefix(count)))
          }
        }
      }
    }
  }
#endif
