/// The two times that a client knows, both in Unix seconds: what the device's clock says, and what the
/// signer of the statement in force vouches for.
///
/// - Neither may cut a client off from the cure. A clock is wrong on many devices; an `issued` is wrong
///   when the signer's clock was, or when a thief wrote it.
/// - So the dates of a chain pass if all of them hold at the clock *or* all of them hold at the floor.
/// - What must not come back takes the later of the two: a pin that expired, a time of absence.
/// - A statement's own expiry is judged at the clock alone, or one `issued` far ahead would end it.
public struct TrustTime: Hashable, Sendable {
  /// What the device's clock says.
  public let clock: Int64
  /// The `issued` of the statement in force; `nil` where no statement vouches for a time.
  public let floor: Int64?

  /// The two times, in Unix seconds.
  public init(clock: Int64, floor: Int64? = nil) {
    self.clock = clock
    self.floor = floor
  }

  /// The later of the two.
  public var later: Int64 { max(clock, floor ?? clock) }

  /// The times at which the dates of a chain may hold, the one to be tried first in front.
  public var dates: [Int64] {
    guard let floor, floor != clock else { return [clock] }
    return [clock, floor]
  }
}
