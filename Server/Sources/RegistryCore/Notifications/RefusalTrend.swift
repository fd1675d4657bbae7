/// Whether apps report more refusals than usual.
///
/// - Counted are reports whose chain an authority issued: others anybody can make up, and nobody should be woken by
///   them.
/// - They rise if the last two windows had more than ``least``, and more than ``factor`` times what two windows of the
///   day before had on average. They are over once it is half of that: between the two they neither begin nor end.
/// - A window counts as usual up to what would be a rise then: a burst, of a stranger's replays or of real refusals, must
///   not make the next one usual. What goes on is usual after a day or two.
/// - It begins with what was reported in the day before. Otherwise a fleet that always reports a few would seem to rise
///   after each start, and for most of a day no real rise would be told.
package struct RefusalTrend: Sendable {
  /// Seconds that are looked at.
  static let window: Int64 = 900
  /// How many reports of two windows are nothing yet.
  static let least = 20
  /// How many times as many as usual.
  static let factor = 3
  /// How many windows before make up what is usual.
  static let usual = 96

  /// By the window's number: its time divided by ``window``.
  private var counts: [Int64: Int] = [:]
  /// The same, as far as it counts as usual.
  private var usuals: [Int64: Int] = [:]
  /// Since when they rise, in Unix seconds; `nil` if they do not.
  package private(set) var risingSince: Int64?

  /// Nothing was reported.
  package init() {}

  /// So many were reported in the day before.
  package mutating func begin(after reports: Int, at now: Int64) {
    let current = now / Self.window
    for window in (current - Int64(Self.usual))..<(current - 1) {
      usuals[window, default: 0] += reports / Self.usual
    }
  }

  /// So many more were reported until now.
  package mutating func count(_ reports: Int, at now: Int64) {
    let current = now / Self.window
    // A clock that went back keeps counting in the window that it is in.
    let day = current - Int64(Self.usual)...current
    counts = counts.filter { day.contains($0.key) }
    usuals = usuals.filter { day.contains($0.key) }
    counts[current, default: 0] += reports
    let before = usuals.filter { $0.key < current - 1 }.values.reduce(0, +)
    let limit = max(Self.least, Self.factor * 2 * before / Self.usual)
    usuals[current] = min(counts[current, default: 0], limit)
    let recent = recent(at: now)
    if recent > limit {
      risingSince = risingSince ?? now
    } else if recent <= limit / 2 {
      risingSince = nil
    }
  }

  /// How many were reported in this window and the one before.
  package func recent(at now: Int64) -> Int {
    let current = now / Self.window
    return counts[current, default: 0] + counts[current - 1, default: 0]
  }
}
