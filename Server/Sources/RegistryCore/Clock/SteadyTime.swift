/// The server's time: the machine's clock, as long as that agrees with the elapsed time (of a clock that nobody sets).
///
/// - If the clock jumps by more than an hour against the elapsed time, it is *doubted*: the server goes on with the
///   last time plus the time elapsed since. Small steps that add up to more than an hour count as a jump, too.
///   Drift of less than a tenth is followed: no oscillator drifts more, and no kernel slews faster.
/// - A doubted clock is believed again at once if it comes back to within the hour. It is *adopted* as it is
///   if the kernel calls it synchronised and it has agreed with the elapsed time for ten minutes, or if a person
///   says so.
/// - At the start it is unknown how much time has passed since the store was last written. A clock that the kernel
///   calls synchronised is believed. Any other is doubted if it is more than an hour behind the newest statement
///   in the store, or ahead of it by more than a statement's lifetime: a server signs daily, and after a longer
///   stop every client's list has expired anyway. The server then continues from that statement's time.
/// - A clock is *confirmed* if it is believed and the kernel has called it synchronised for ten minutes, or a
///   person vouched for it. Only a confirmed clock may take a statement's time back (``TimeProof``).
///
/// Hazards: a clock that was wrong at the start, within these bounds, is believed. Readings that arrive out
/// of order do no harm.
///
/// Pure: readings in, Unix seconds out.
package struct SteadyTime: Sendable {
  /// What a reading led to.
  package enum Change: Sendable, Equatable {
    /// The clock is doubted: it says `wall`, and the server goes on with `time`.
    case doubted(wall: Int64, time: Int64)
    /// The clock came back and is believed again.
    case returned(time: Int64)
    /// The doubted clock is adopted: the server's time steps from `before` to `time`.
    case adopted(time: Int64, before: Int64)
  }

  /// By how many seconds the clock may differ from the elapsed time. Covers a daylight saving step on a
  /// machine that keeps local time, and any step of a working time daemon.
  package static let tolerance: Int64 = 3600
  /// For how many seconds a clock must agree with the elapsed time before it is adopted.
  static let probation: Int64 = 600
  /// How far it may drift in that time, in seconds: a tenth, the fastest slew.
  private static let drift: Int64 = 60

  /// The server's time minus the elapsed time.
  private var offset: Int64
  /// The offset to compare the clock with: the last believed one, following slow drift.
  private var reference: Int64
  /// The elapsed time at which `reference` last matched the clock, or moved.
  private var followed: Int64
  /// The offset with which the clock has agreed with the elapsed time, and since when.
  private var agreement: (offset: Int64, since: Int64)
  /// Since when the clock is doubted, in the server's time; `nil` while it is believed.
  package private(set) var doubtedSince: Int64?
  /// Whether a person vouched for the clock since it was last doubted.
  private var isVouchedFor = false

  /// Believes the first reading.
  package init(_ first: ClockReading) {
    (offset, reference) = (first.offset, first.offset)
    followed = first.elapsed
    agreement = (first.offset, first.elapsed)
  }

  /// Whether the server uses the machine's clock.
  var isBelieved: Bool { doubtedSince == nil }

  /// The server's time at a reading that was entered.
  package func time(at reading: ClockReading) -> Int64 { reading.elapsed + offset }

  /// Whether the clock is known to be right, rather than merely not known to be wrong.
  package func isConfirmed(at reading: ClockReading) -> Bool {
    isBelieved && (isVouchedFor || isProved(by: reading))
  }

  /// Checks the first reading against the newest time known from before the start.
  ///
  /// - Parameters:
  ///   - newest: when the newest statement in the store was signed, in Unix seconds; `nil` if there is none.
  ///   - life: for how many seconds statements are valid.
  package mutating func begin(
    after newest: Int64?, life: Int64, at reading: ClockReading
  ) -> Change? {
    guard let newest, !reading.isSynchronized,
      newest - reading.wall > Self.tolerance || reading.wall - newest > life
    else { return nil }
    (offset, reference) = (newest - reading.elapsed, newest - reading.elapsed)
    return doubt(reading)
  }

  /// Enters a reading.
  package mutating func enter(_ reading: ClockReading) -> Change? {
    if abs(reading.offset - agreement.offset) > Self.drift {
      agreement = (reading.offset, reading.elapsed)
    }
    guard abs(reading.offset - reference) > Self.tolerance else {
      follow(reading)
      offset = reading.offset
      guard !isBelieved else { return nil }
      doubtedSince = nil
      return .returned(time: reading.wall)
    }
    if isBelieved { return doubt(reading) }
    return isProved(by: reading) ? believe(reading) : nil
  }

  /// Adopts the clock because a person says that it is right.
  ///
  /// - Returns: `nil` if it was believed anyway.
  package mutating func adopt(_ reading: ClockReading) -> Change? {
    guard !isBelieved else { return nil }
    isVouchedFor = true
    return believe(reading)
  }

  private func isProved(by reading: ClockReading) -> Bool {
    reading.isSynchronized && abs(reading.offset - agreement.offset) <= Self.drift
      && reading.elapsed - agreement.since >= Self.probation
  }

  private mutating func doubt(_ reading: ClockReading) -> Change {
    let time = time(at: reading)
    (doubtedSince, isVouchedFor) = (time, false)
    return .doubted(wall: reading.wall, time: time)
  }

  private mutating func believe(_ reading: ClockReading) -> Change {
    let before = time(at: reading)
    (offset, reference, followed) = (reading.offset, reading.offset, reading.elapsed)
    doubtedSince = nil
    return .adopted(time: reading.wall, before: before)
  }

  /// Follows slow drift, at most a tenth of the elapsed time.
  private mutating func follow(_ reading: ClockReading) {
    let gap = reading.offset - reference
    let allowance = max(0, reading.elapsed - followed) / 10
    let step = min(max(gap, -allowance), allowance)
    guard gap == 0 || step != 0 else { return }
    reference += step
    followed = max(followed, reading.elapsed)
  }
}

/// What a machine's clocks say at one moment.
package struct ClockReading: Sendable, Equatable {
  /// Unix time in seconds, by the machine's settable clock.
  package var wall: Int64
  /// Elapsed seconds since an arbitrary start, by a clock that cannot be set and goes on while the machine sleeps.
  var elapsed: Int64
  /// Whether the kernel calls the clock synchronised.
  package var isSynchronized: Bool

  package init(wall: Int64, elapsed: Int64, isSynchronized: Bool) {
    (self.wall, self.elapsed, self.isSynchronized) = (wall, elapsed, isSynchronized)
  }

  /// How far the wall clock is ahead of the elapsed time. It changes only if somebody sets the clock.
  var offset: Int64 { wall - elapsed }
}
