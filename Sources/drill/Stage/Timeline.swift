import Pinning
import PinningPlatform
import SslPinning

/// The time in a row: the world's, and what the device takes it for. Unix seconds.
final class Timeline: Sendable {
  static let hour: Int64 = 3600
  static let day: Int64 = 86400

  private let times: Locked<(world: Int64, error: Int64)>

  init() { times = Locked((Clocks.system.wall(), 0)) }

  /// What time it is.
  var world: Int64 { times.withLock { $0.world } }
  /// What time the device takes it for.
  var device: Int64 { times.withLock { $0.world + $0.error } }

  /// Lets time go by.
  func pass(days: Int64) { times.withLock { $0.world += days * Self.day } }

  /// Sets the device's clock wrong by so many seconds.
  func setDeviceWrong(by seconds: Int64) { times.withLock { $0.error = seconds } }

  /// A client's clocks. Nothing is refreshed in the background: rows say when.
  func clocks(longestRefresh: Double = 20) -> Clocks {
    Clocks(
      wall: { self.device }, steady: Clocks.system.steady,
      sleep: { _ in try await Clocks.systemSleep(86400) }, random: { 0.5 },
      longestRefresh: longestRefresh)
  }
}
