import RegistryServer
import SslPinningPlatform

/// The row's time, as a machine has it whose clock is wrong.
struct WrongClock: ServerClock {
  private let time: VirtualTime
  /// Seconds.
  let error = Locked<Int64>(0)
  /// Whether a time daemon keeps it.
  let isKept = Locked(false)

  init(_ time: VirtualTime) { self.time = time }

  func now() -> Int64 { time.now() + error.withLock { $0 } }
  func elapsed() -> Int64 { time.elapsed() }
  var isSynchronized: Bool { isKept.withLock { $0 } }
  func uptime() -> Int64 { time.uptime() }
  func sleep(milliseconds: Int64) async throws { try await time.sleep(milliseconds: milliseconds) }
}
