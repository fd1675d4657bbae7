import Foundation
import RegistryCore
import SslPinningPlatform
import SslPinningRules

/// The one source of time of all that the server decides and signs: a machine's clock, judged by
/// ``SteadyTime`` with every question. Safe from any thread.
final class SteadyClock: ServerClock {
  private let machine: any ServerClock
  private let state: Locked<SteadyTime>
  private let tell: @Sendable (SteadyTime.Change) -> Void

  /// - Parameter tell: is told of each change, outside of any lock.
  init(
    _ machine: any ServerClock, tell: @escaping @Sendable (SteadyTime.Change) -> Void = { _ in }
  ) {
    self.machine = machine
    self.tell = tell
    state = Locked(SteadyTime(Self.read(machine)))
  }

  /// Unix time in seconds, by which the server goes.
  func now() -> Int64 { standing.time }

  func elapsed() -> Int64 { machine.elapsed() }

  var isSynchronized: Bool { machine.isSynchronized }

  func uptime() -> Int64 { machine.uptime() }

  func sleep(milliseconds: Int64) async throws {
    try await machine.sleep(milliseconds: milliseconds)
  }

  /// What is known of the time now.
  var standing: ClockStanding {
    enter { state, reading in state.enter(reading) }.standing
  }

  /// Judges the machine's clock by what the store knows; once, before anything is decided or signed.
  ///
  /// - Parameters:
  ///   - newest: when the newest statement in the store was signed; `nil` if there is none.
  ///   - life: for how many seconds a statement is signed.
  func begin(after newest: Int64?, life: Int64) {
    _ = enter { state, reading in
      state.begin(after: newest, life: life, at: reading)
    }
  }

  /// A person says that the machine's clock is right.
  ///
  /// - Returns: the time in force now, and the one before; `nil` if the server goes by that clock anyway.
  func adopt() -> (time: Int64, before: Int64)? {
    let (change, _) = enter { state, reading in state.enter(reading) ?? state.adopt(reading) }
    guard case .adopted(let time, let before) = change else { return nil }
    return (time, before)
  }

  private func enter(
    _ step: (inout SteadyTime, ClockReading) -> SteadyTime.Change?
  ) -> (change: SteadyTime.Change?, standing: ClockStanding) {
    let entered = state.withLock { state in
      let reading = Self.read(machine)
      let change = step(&state, reading)
      return (
        change: change,
        standing: ClockStanding(
          time: state.time(at: reading), wall: reading.wall,
          isSynchronized: reading.isSynchronized, doubtedSince: state.doubtedSince,
          isConfirmed: state.isConfirmed(at: reading))
      )
    }
    if let change = entered.change { tell(change) }
    return entered
  }

  /// Both clocks at one moment: a machine that falls asleep between the two questions is asked again.
  private static func read(_ machine: any ServerClock) -> ClockReading {
    let isSynchronized = machine.isSynchronized
    var (before, wall) = (machine.elapsed(), machine.now())
    for _ in 0..<3 {
      let after = machine.elapsed()
      if after - before <= 1 { break }
      (before, wall) = (after, machine.now())
    }
    return ClockReading(wall: wall, elapsed: before, isSynchronized: isSynchronized)
  }
}

/// A machine's time. Tests pass one that does not wait.
public protocol ServerClock: Sendable {
  /// Unix time in seconds, as the machine's clock has it: anybody may set that.
  func now() -> Int64

  /// Seconds of a clock that nobody sets and that goes on while the machine sleeps; from any beginning.
  func elapsed() -> Int64

  /// Whether the kernel calls the machine's clock synchronised.
  var isSynchronized: Bool { get }

  /// Milliseconds of a clock that never jumps, whatever is done to the machine's; from any beginning.
  func uptime() -> Int64

  /// Waits; throws when the task is cancelled.
  func sleep(milliseconds: Int64) async throws
}

/// The system's clock.
public struct SystemClock: ServerClock {
  /// The system's clock.
  public init() {}

  public func now() -> Int64 { Int64(time(nil)) }

  public func elapsed() -> Int64 { continuousSeconds() }

  public var isSynchronized: Bool { isClockSynchronized() }

  public func uptime() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
  }

  public func sleep(milliseconds: Int64) async throws {
    try await Task.sleep(for: .milliseconds(milliseconds))
  }
}

/// What is known of the server's time at one moment. Times are Unix seconds.
struct ClockStanding: Sendable, Equatable {
  /// The time that the server goes by.
  var time: Int64
  /// What the machine's clock says.
  var wall: Int64
  /// Whether the kernel calls that clock synchronised.
  var isSynchronized: Bool
  /// Since when that clock is doubted; `nil` while the server goes by it.
  var doubtedSince: Int64?
  /// Whether it is known to be right (``SteadyTime/isConfirmed(at:)``).
  var isConfirmed: Bool

  /// What is amiss, for people; `nil` if nothing is.
  var trouble: String? {
    guard doubtedSince != nil else { return nil }
    return
      "the machine's clock says \(RFC3339.text(wall)), and the server goes by \(RFC3339.text(time))"
      + ", its last time and what passed since; hint: put the clock right, by a time daemon, or say that"
      + " it is right: ssl-pinning admin adopt-clock"
  }

  /// The same as an alert about the server, of no document.
  var alert: ServerAlert? {
    guard let since = doubtedSince, let trouble else { return nil }
    return ServerAlert(kind: .clock, message: trouble, since: since)
  }

  /// The times of which one is right. Somebody has to be able to say that the clock is right, with a token of before
  /// or with one that was made by the clock that is doubted; and a chain that is valid at either counts, as at
  /// clients: otherwise no endpoint that renewed meanwhile could be watched until somebody says which one it is.
  var times: [Int64] { doubtedSince == nil ? [time] : [time, wall] }
}

/// Readings of a clock that is never set, for measuring how long something takes.
enum MonotonicReading {
  private static let start = ContinuousClock.now

  /// The time since the first reading of the process.
  static func now() -> Duration { start.duration(to: .now) }

  /// The same in milliseconds.
  static let milliseconds: @Sendable () -> Int64 = {
    let reading = now().components
    return reading.seconds * 1000 + reading.attoseconds / 1_000_000_000_000_000
  }
}
