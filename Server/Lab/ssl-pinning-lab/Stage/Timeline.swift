import Foundation
import RegistryServer
import SslPinning
import SslPinningPlatform
import SslPinningRules

/// The time in a row: the true time, and the device's. Unix seconds.
final class Timeline: Sendable {
  static let hour: Int64 = 3600
  static let day: Int64 = 86400

  private struct State {
    var world: Int64
    var error: Int64 = 0
    /// The tasks that wait for a true time, by number.
    var sleepers: [Int: (due: Int64, continuation: CheckedContinuation<Void, any Error>)] = [:]
    var next = 0
  }

  private let start: Int64
  private let state: Locked<State>

  init() {
    start = Clocks.system.wall()
    state = Locked(State(world: start))
  }

  /// The true time.
  var world: Int64 { state.withLock { $0.world } }
  /// The device's time.
  var device: Int64 { state.withLock { $0.world + $0.error } }

  /// Lets days pass.
  func pass(days: Int64) { pass(seconds: days * Self.day) }

  func pass(seconds: Int64) { state.withLock { $0.world += seconds } }

  /// Sets the device's clock wrong by so many seconds.
  func setDeviceWrong(by seconds: Int64) { state.withLock { $0.error = seconds } }

  /// A client's clocks without background refresh: rows refresh explicitly.
  func clocks(longestRefresh: Double = 20) -> Clocks {
    Clocks(
      wall: { self.device }, steady: Clocks.system.steady,
      sleep: { _ in try await Clocks.systemSleep(86400) }, random: { 0.5 },
      longestRefresh: longestRefresh)
  }

  /// A client's clocks on a device in this time: it refreshes by itself whenever a ``second()`` makes that due.
  func livingClocks() -> Clocks {
    Clocks(
      wall: { self.device }, steady: { 1000 + self.world - self.start },
      sleep: { try await self.sleep($0) }, random: { 0.5 }, longestRefresh: 20)
  }

  /// Lets one second pass, and returns once all tasks that were due wait again; after 20 real seconds in any case, since one
  /// whose app is gone waits no more.
  func second() async throws {
    let (due, resting) = state.withLock { state in
      state.world += 1
      let due = state.sleepers.filter { $0.value.due <= state.world }
      let resting = state.sleepers.count
      for id in due.keys { state.sleepers[id] = nil }
      return (due.values.map(\.continuation), resting)
    }
    for continuation in due { continuation.resume() }
    let patience = Clocks.system.steady() + 20
    while state.withLock({ $0.sleepers.count }) < resting, Clocks.system.steady() < patience {
      try await Task.sleep(nanoseconds: 1_000_000)
    }
  }

  private func sleep(_ seconds: Double) async throws {
    let id = state.withLock { state in
      state.next += 1
      return state.next
    }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        state.withLock {
          $0.sleepers[id] = ($0.world + Int64(seconds.rounded(.up)), continuation)
        }
        if Task.isCancelled { cancel(id) }
      }
    } onCancel: {
      cancel(id)
    }
  }

  private func cancel(_ id: Int) {
    let sleeper = state.withLock { $0.sleepers.removeValue(forKey: id) }
    sleeper?.continuation.resume(throwing: CancellationError())
  }
}

/// A clock that the row moves. The registry server and the devices share it, with their default settings, and
/// nobody has to wait for real seconds.
final class VirtualTime: ServerClock {
  private struct State {
    var milliseconds: Int64 = 0
    var next = 0
    var sleepers: [Int: (due: Int64, continuation: CheckedContinuation<Void, any Error>)] = [:]
  }

  /// Unix time in seconds at which it begins.
  private let start: Int64
  private let state = Locked(State())

  /// - Parameter behind: how many seconds before the machine's time it begins. Chains are validated by the
  ///   machine's time, so a certificate that begins in this time must have begun by that, too.
  init(behind: Int64 = 0) { start = Clocks.system.wall() - behind }

  /// Seconds since it began.
  var seconds: Int64 { state.withLock { $0.milliseconds / 1000 } }

  func now() -> Int64 { start + seconds }

  func elapsed() -> Int64 { seconds }

  var isSynchronized: Bool { false }

  func uptime() -> Int64 { state.withLock { $0.milliseconds } }

  func sleep(milliseconds: Int64) async throws {
    let id = state.withLock { state in
      state.next += 1
      return state.next
    }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        state.withLock { state in
          state.sleepers[id] = (state.milliseconds + milliseconds, continuation)
        }
        if Task.isCancelled { cancel(id) }
      }
    } onCancel: {
      cancel(id)
    }
  }

  /// Moves on, and returns once the service has done everything that was due.
  func advance(milliseconds: Int64, _ service: RegistryService, sleepers: Int = 3) async throws {
    let due = state.withLock { state in
      state.milliseconds += milliseconds
      let due = state.sleepers.filter { $0.value.due <= state.milliseconds }
      for id in due.keys { state.sleepers[id] = nil }
      return due.values.map(\.continuation)
    }
    for continuation in due { continuation.resume() }
    try await untilAtRest(service, sleepers: sleepers)
  }

  /// Moves on while no service is running.
  func skip(seconds: Int64) { state.withLock { $0.milliseconds += seconds * 1000 } }

  /// Waits until all parts of the service sleep: probes, documents, and the follower of the store.
  ///
  /// - Parameter sleepers: how many parts there are; more if other services use this clock, too.
  func untilAtRest(_ service: RegistryService, sleepers: Int = 3) async throws {
    // In this order: once the service rests, its earlier sleepers are gone.
    while !service.isAtRest || state.withLock({ $0.sleepers.count }) < sleepers {
      try await Task.sleep(nanoseconds: 1_000_000)
    }
  }

  /// A device's clocks with this time.
  var clocks: Clocks { clocks(wrongBy: 0) }

  /// The clocks of a device that is wrong by so many seconds.
  func clocks(wrongBy error: Int64) -> Clocks {
    Clocks(
      wall: { self.now() + error }, steady: { 1000 + self.seconds },
      sleep: { _ in try await Clocks.systemSleep(86400) }, longestRefresh: 20)
  }

  private func cancel(_ id: Int) {
    let sleeper = state.withLock { $0.sleepers.removeValue(forKey: id) }
    sleeper?.continuation.resume(throwing: CancellationError())
  }
}
