#if canImport(Security)
  import Foundation

  /// Makes a stream of chunks that a session can read a body from.
  ///
  /// - Up to a buffer's length is asked for before the session reads the first byte, and with it before
  ///   the connection was accepted; it stays in this process.
  enum StreamPump {
    private static let bufferSize = 64 * 1024
    private static let queue = DispatchQueue(
      label: "ssl-pinning.pump", qos: .userInitiated, attributes: .concurrent)

    static func start(
      _ source: @escaping @Sendable (_ put: (Data) async -> Bool) async throws -> Void
    ) -> (InputStream?, Task<Void, Never>) {
      var input: InputStream?
      var output: OutputStream?
      Stream.getBoundStreams(
        withBufferSize: bufferSize, inputStream: &input, outputStream: &output)
      let sink = HandedOver(output)
      let task = Task {
        guard let output = sink.value else { return }
        output.open()
        // A body that breaks off must not look whole: closed only at its end.
        do {
          try await source { chunk in await write(chunk, to: sink) }
          output.close()
        } catch {}
      }
      return (input, task)
    }

    private static func write(_ chunk: Data, to sink: HandedOver<OutputStream?>) async -> Bool {
      await withCheckedContinuation { continuation in
        queue.async {
          var rest = chunk
          while !rest.isEmpty, let output = sink.value {
            let count = rest.withUnsafeBytes { bytes -> Int in
              guard let base = bytes.bindMemory(to: UInt8.self).baseAddress else { return 0 }
              return output.write(base, maxLength: bytes.count)
            }
            guard count > 0 else { return continuation.resume(returning: false) }
            rest = Data(rest.dropFirst(count))
          }
          continuation.resume(returning: sink.value != nil)
        }
      }
    }
  }
#endif
