/// The two times that a client knows, both in Unix seconds: what the device's clock says, and what the
/// signer of the statement in force vouches for.
///
/// - Neither may cut a client off from the cure. A clock is wrong on many devices; an `issued` is wrong
///   when the signer's clock was, or when a thief wrote it.
/// - So the dates of a chain pass if all of them hold at the clock *or* all of them hold at the floor: of a
///   statement that is not expired. An older one vouches for no time any longer, or a certificate that
///   ended years ago would pass for as long as an app keeps pinning.
/// - What must not come back takes the later of the two: a pin that expired, a time of absence.
/// - A statement's own expiry is judged at the clock alone, or one `issued` far ahead would end it.
public struct TrustTime: Hashable, Sendable {
  /// What the device's clock says, in Unix seconds.
  public let clock: Int64
  /// The `issued` of the statement in force, in Unix seconds; `nil` where no statement vouches for a time.
  public let floor: Int64?

  /// Whether dates may hold at the floor: whether its statement is still in force.
  public let isFloorInForce: Bool

  /// Whether a statement is believed, retired or not: then a registry's document is judged by more than its
  /// server's dates.
  public let believesStatement: Bool

  /// The two times, in Unix seconds.
  public init(
    clock: Int64, floor: Int64? = nil, isFloorInForce: Bool = true, believesStatement: Bool? = nil
  ) {
    self.believesStatement = believesStatement ?? (floor != nil)
    self.clock = clock
    self.floor = floor
    self.isFloorInForce = isFloorInForce
  }

  /// The last second that a certificate can name, at the end of the year 9999 (RFC 5280 §4.1.2.5).
  private static let lastDate: Int64 = 253_402_300_799

  /// The later of the two, in Unix seconds.
  public var later: Int64 { max(clock, floor ?? clock) }

  /// The times at which the dates of a chain may hold, in Unix seconds, the one to be tried first in front.
  public var dates: [Int64] {
    guard let floor, floor != clock, isFloorInForce, floor <= Self.lastDate else { return [clock] }
    return [clock, floor]
  }
}
