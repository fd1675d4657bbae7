import RegistryCore
import SslPinningPlatform

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
  /// - Parameter newest: when the newest statement in the store was signed; `nil` if there is none.
  func begin(after newest: Int64?) {
    _ = enter { state, reading in
      state.begin(after: newest, life: DocumentSigner.horizon, at: reading)
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
