import Foundation

/// Reads one pipe to its end on a thread of its own.
final class Collector: @unchecked Sendable {
  private static let limit = 16 << 20
  private let changed = NSCondition()
  private var bytes: [UInt8] = []
  private var hasEnded = false

  var text: String { changed.withLock { String(decoding: bytes, as: UTF8.self) } }

  func start(reading handle: FileHandle, onChange: @escaping @Sendable () -> Void) {
    let thread = Thread { [self] in
      var buffer = [UInt8](repeating: 0, count: 65_536)
      while true {
        let count = read(handle.fileDescriptor, &buffer, buffer.count)
        if count < 0, errno == EINTR { continue }
        guard count > 0 else { break }
        changed.withLock {
          bytes.append(contentsOf: buffer.prefix(min(count, Self.limit - bytes.count)))
        }
        onChange()
      }
      try? handle.close()
      changed.withLock { hasEnded = true }
      changed.broadcast()
      onChange()
    }
    thread.start()
  }

  func waitForEnd(seconds: Double) {
    let deadline = Date(timeIntervalSinceNow: seconds)
    changed.withLock {
      while !hasEnded, changed.wait(until: deadline) {}
    }
  }
}

/// Runs blocking work on a thread of its own: a test that blocked a cooperative thread could starve
/// the very task it waits for.
public func offTheCooperativePool<R: Sendable>(
  _ work: @escaping @Sendable () throws -> R
) async throws -> R {
  try await withCheckedThrowingContinuation { continuation in
    Thread { continuation.resume(with: Result { try work() }) }.start()
  }
}
