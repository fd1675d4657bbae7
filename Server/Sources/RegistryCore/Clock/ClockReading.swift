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
