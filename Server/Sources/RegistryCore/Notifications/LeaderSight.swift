/// That somebody led at this moment, as far as this server saw: it led itself, or its store said that another server did.
///
/// - What counts is the time since the last sight, also if no attempt to lead came to an end since. A fail-over takes seconds.
/// - No time counts that another server, or anybody else, wrote: only this server's own clock.
package struct LeaderSight: Sendable {
  /// For how many seconds nobody may lead before people are told.
  package static let patience: Int64 = 120

  private let isLeading: Bool
  private let time: Int64
  private let elapsed: Int64
  /// Why no leader was seen since.
  package var reason = "no attempt to lead came to an end since"

  /// - Parameters:
  ///   - isLeading: whether this server leads from now on. Then somebody does until the next sight.
  ///   - now: Unix seconds.
  ///   - elapsed: seconds of a clock that is never set.
  package init(isLeading: Bool, at now: Int64, elapsed: Int64) {
    (self.isLeading, time, self.elapsed) = (isLeading, now, elapsed)
  }

  /// That nobody leads; `nil` if somebody does, or did a moment ago.
  ///
  /// - Parameter elapsed: seconds of a clock that is never set.
  package func absence(elapsed: Int64) -> Condition? {
    guard !isLeading, elapsed - self.elapsed >= Self.patience else { return nil }
    return Condition(
      .alert(.nobodyLeads), since: time,
      message:
        "nobody leads, as far as this server sees: no endpoint is watched, and no changed key"
        + " is published: \(reason)")
  }
}
