#if canImport(Security)
  import Foundation

  /// Makes a stream of a ``BodyFeed`` that a session can read a body from. Blocks no thread: it writes when the
  /// stream says that it has room.
  ///
  /// - Up to a buffer's length is asked for before the session reads the first byte, and with it before
  ///   the connection was accepted; it stays in this process.
  ///
  /// Unchecked: the stream's other half is touched on the queue alone.
  final class StreamPump: NSObject, StreamDelegate, @unchecked Sendable {
    private static let bufferSize = 64 * 1024
    private static let queue = DispatchQueue(label: "ssl-pinning.pump", qos: .userInitiated)

    /// What the session reads.
    let input: InputStream
    private let output: OutputStream
    private let body: BodyFeed
    private let failed = Locked<(@Sendable (any Error) -> Void)?>(nil)

    /// - Throws: `URLError` where the system makes no pair of streams.
    init(_ body: BodyFeed) throws {
      var input: InputStream?
      var output: OutputStream?
      Stream.getBoundStreams(
        withBufferSize: Self.bufferSize, inputStream: &input, outputStream: &output)
      guard let input, let output else { throw URLError(.resourceUnavailable) }
      (self.input, self.output, self.body) = (input, output, body)
      super.init()
    }

    /// Begins to ask the app for its body.
    ///
    /// - Parameter failed: called with the app's error, if there is one.
    func start(_ failed: @escaping @Sendable (any Error) -> Void) {
      self.failed.withLock { $0 = failed }
      body.whenMore { [weak self] in
        guard let self else { return }
        Self.queue.async { self.pour() }
      }
      Self.queue.async { [self] in
        output.delegate = self
        CFWriteStreamSetDispatchQueue(output as CFWriteStream, Self.queue)
        output.open()
        pour()
      }
    }

    /// The session is done with the body. To be called: the stream does not hold its delegate, which must not go
    /// while an event is on its way.
    func end() { Self.queue.async { [self] in output.delegate = nil } }

    func stream(_ aStream: Stream, handle eventCode: Stream.Event) { pour() }

    private func write(_ chunk: Data) -> Int {
      chunk.withUnsafeBytes { bytes -> Int in
        guard let base = bytes.bindMemory(to: UInt8.self).baseAddress else { return 0 }
        return output.write(base, maxLength: bytes.count)
      }
    }

    private func pour() {
      switch body.pour(hasRoom: { output.hasSpaceAvailable }, write: write) {
      case .waits: break
      case .ended:
        output.delegate = nil
        output.close()
      case .broken: if let failure = body.failure { failed.withLock { $0 }?(failure) }
      }
    }
  }
#endif
