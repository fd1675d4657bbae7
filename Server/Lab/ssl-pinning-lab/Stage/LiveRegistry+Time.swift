/// Time that goes by for the server and the devices.
extension LiveRegistry {
  /// Lets seconds go by.
  func pass(seconds: Int64, step: Int64 = 1) async throws {
    for _ in 0..<(seconds / step) { try await pass(step) }
  }

  /// Lets days go by.
  ///
  /// - Parameter hours: of each step. Probes more than an hour apart count as unwatched.
  func pass(days: Int64, hours: Int64 = 1) async throws {
    for _ in 0..<(days * 24 / hours) { try await pass(hours * Timeline.hour) }
  }

  /// Lets the time go by after which a key that nobody shows any more is withdrawn.
  func passGrace() async throws {
    try await pass(days: 7)
    try await pass(Timeline.hour)
    try await pass(Timeline.hour)
  }

  /// Sets the server's clock wrong. The devices' clocks are right.
  ///
  /// - Parameter isKept: whether the kernel calls it synchronised.
  func setClockWrong(bySeconds seconds: Int64, isKept: Bool = false) {
    clock.error.withLock { $0 = seconds }
    clock.isKept.withLock { $0 = isKept }
  }

  private func pass(_ seconds: Int64) async throws {
    try await time.advance(milliseconds: seconds * 1000, leader, sleepers: sleepers)
  }

  /// Waits until nothing happens any more unless time goes by.
  func settle() async throws {
    try await time.untilAtRest(leader, sleepers: sleepers)
  }

  /// One that probes, one that sees to documents, and in each server one that follows the store.
  private var sleepers: Int { 2 + servers.withLock(\.count) }
}
