/// The time that the server goes by: the machine's clock, as long as that agrees with the time that passed.
///
/// - A clock that jumps by more than an hour against the time that passed is *doubted*: the server goes on
///   by the last time plus what passed since. Small steps that add up to more than an hour are a jump too.
///   A clock that drifts by less than a tenth is followed: no oscillator drifts by more, and no kernel slews faster.
/// - A doubted clock is believed again at once if it comes back to within the hour. It is *adopted* as it is
///   if the kernel calls it synchronised and it has agreed with the time that passed for ten minutes, or if
///   a person says so.
/// - At the start nobody knows how much time passed since the store was last written. A clock that the kernel
///   calls synchronised is believed. Another one is doubted if it is more than an hour behind the newest
///   statement in the store, or ahead of it by more than statements live: a server signs daily, and one
///   that was away for longer has no client left whose list is not over. The server then goes on from that statement.
/// - *Confirmed* is a clock that is believed, and that the kernel has called synchronised for ten minutes or
///   a person vouched for: only that one may take a statement's time back (``TimeProof``).
///
/// Hazards: a clock that was wrong when the server first saw it, within these bounds, is believed. Readings
/// that arrive out of order do no harm.
///
/// Pure: readings in, Unix seconds out.
package struct SteadyTime: Sendable {
  /// What a reading led to.
  package enum Change: Sendable, Equatable {
    /// The clock is doubted: it says `wall`, and the server goes on by `time`.
    case doubted(wall: Int64, time: Int64)
    /// The clock came back, and is believed.
    case returned(time: Int64)
    /// The clock is right after all: the server goes by `time`, and before it was `before`.
    case adopted(time: Int64, before: Int64)
  }

  /// By how many seconds the clock may differ from the time that passed: a step of daylight saving on a
  /// machine that keeps local time, and any step of a time daemon that works.
  package static let tolerance: Int64 = 3600
  /// For how many seconds a clock must agree with the time that passed before it is adopted.
  static let probation: Int64 = 600
  /// How far it may drift meanwhile, in seconds: a tenth, the fastest slew.
  private static let drift: Int64 = 60

  /// The time in force, less what the steady clock says.
  private var offset: Int64
  /// What the clock is compared with: the offset that was believed, following slow drift.
  private var reference: Int64
  /// When the steady clock said that `reference` was in step, or last moved.
  private var followed: Int64
  /// With which offset the clock has agreed with the time that passed, and since when.
  private var agreement: (offset: Int64, since: Int64)
  /// Since when the clock is doubted, by the time in force; `nil` while it is believed.
  package private(set) var doubtedSince: Int64?
  /// Whether a person vouched for the clock since it was last doubted.
  private var isVouchedFor = false

  /// Believes the first reading.
  package init(_ first: ClockReading) {
    (offset, reference) = (first.offset, first.offset)
    followed = first.elapsed
    agreement = (first.offset, first.elapsed)
  }

  /// Whether the server goes by the machine's clock.
  var isBelieved: Bool { doubtedSince == nil }

  /// The time at a reading that was entered.
  package func time(at reading: ClockReading) -> Int64 { reading.elapsed + offset }

  /// Whether the clock is known to be right, not only not known to be wrong.
  package func isConfirmed(at reading: ClockReading) -> Bool {
    isBelieved && (isVouchedFor || isProved(by: reading))
  }

  /// Judges the first reading by the newest time that is known from before the start.
  ///
  /// - Parameters:
  ///   - newest: when the newest statement in the store was signed; `nil` if there is none.
  ///   - life: for how many seconds statements live.
  package mutating func begin(
    after newest: Int64?, life: Int64, at reading: ClockReading
  ) -> Change? {
    guard let newest, !reading.isSynchronized,
      newest - reading.wall > Self.tolerance || reading.wall - newest > life
    else { return nil }
    (offset, reference) = (newest - reading.elapsed, newest - reading.elapsed)
    return doubt(reading)
  }

  /// Takes a reading into account.
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

  /// A person says that the clock is right.
  ///
  /// - Returns: `nil` if it is believed anyway.
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

  /// Follows slow drift, a tenth of the time that passed at most.
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
  /// Unix time in seconds, by the clock that anybody may set.
  package var wall: Int64
  /// Seconds of a clock that nobody sets and that goes on while the machine sleeps; from any beginning.
  var elapsed: Int64
  /// Whether the kernel calls the clock synchronised.
  package var isSynchronized: Bool

  package init(wall: Int64, elapsed: Int64, isSynchronized: Bool) {
    (self.wall, self.elapsed, self.isSynchronized) = (wall, elapsed, isSynchronized)
  }

  /// How far the wall clock is ahead of the other one: it changes only if somebody sets the clock.
  var offset: Int64 { wall - elapsed }
}
