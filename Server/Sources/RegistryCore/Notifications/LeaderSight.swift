/// Whether somebody leads, as far as this server sees: it leads itself, or its store says that another server does.
///
/// - What counts is the time since the first attempt in a row that found neither. A fail-over takes seconds.
/// - No time counts that another server, or anybody else, wrote: only this server's own clock.
package struct LeaderSight: Sendable {
  /// For how many seconds nobody may lead before people are told.
  package static let patience: Int64 = 120

  private struct Miss: Sendable {
    /// In Unix seconds.
    let time: Int64
    /// In seconds of a clock that is never set.
    let elapsed: Int64
  }

  private var first: Miss?
  /// That nobody leads; `nil` if somebody does, or did a moment ago.
  package private(set) var absence: Condition?

  /// Nobody looked yet.
  package init() {}

  /// This server leads from now on, or another one does.
  package mutating func sees() { (first, absence) = (nil, nil) }

  /// This server does not lead, and cannot see that another one does.
  ///
  /// - Parameters:
  ///   - reason: what the store said.
  ///   - now: Unix seconds.
  ///   - elapsed: seconds of a clock that is never set.
  /// - Returns: whether ``absence`` begins with this attempt.
  package mutating func misses(_ reason: String, at now: Int64, elapsed: Int64) -> Bool {
    let first = self.first ?? Miss(time: now, elapsed: elapsed)
    self.first = first
    guard elapsed - first.elapsed >= Self.patience else { return false }
    let isNew = absence == nil
    absence = Condition(
      .alert(.nobodyLeads), since: first.time,
      message:
        "nobody leads, as far as this server sees: no endpoint is watched, and no changed key"
        + " is published: \(reason)")
    return isNew
  }
}
