import RegistryServer
import Synchronization

/// A clock that does not wait. Pauses of up to 10 s pass at once and move the time; longer ones, a
/// watcher's intervals, last until the task is cancelled: the test says when to look.
final class TestClock: ServerClock {
  private let milliseconds: Mutex<Int64>

  init(_ now: Int64 = 1_780_000_000) { milliseconds = Mutex(now * 1000) }

  func now() -> Int64 { milliseconds.withLock { $0 / 1000 } }

  func advance(_ seconds: Int64) { milliseconds.withLock { $0 += seconds * 1000 } }

  func sleep(milliseconds: Int64) async throws {
    guard milliseconds > 10_000 else {
      self.milliseconds.withLock { $0 += milliseconds }
      return
    }
    try await Task.sleep(for: .seconds(3600))
  }
}
