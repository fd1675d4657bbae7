import Pinning

/// Tells a sudden change of all endpoints from the change of some: somebody who stands between this
/// server and everything looks like the first.
///
/// - Endpoints that shared one set of keys count once: one certificate for twenty names is one change.
/// - It is sudden where at least three groups showed a new key within the window, and more of those that
///   were looked at since then did than did not.
///
/// Pure: the time is an argument, in Unix seconds.
struct ChangeGauge: Sendable {
  /// The keys that were published for an endpoint before it changed.
  typealias Group = [SPKIPin]

  private var changed: [Group: Int64] = [:]
  private var unchanged: [Group: Int64] = [:]

  /// How long a change is remembered.
  static let window: Int64 = 600
  /// How many groups make a change sudden, at least.
  static let least = 3

  /// An endpoint of this group was looked at.
  mutating func note(_ group: Group, isChanged: Bool, at now: Int64) {
    guard !group.isEmpty else { return }
    if isChanged {
      changed[group] = changed[group] ?? now
      unchanged[group] = nil
    } else if !changed.isEmpty, changed[group] == nil {
      unchanged[group] = now
    }
    changed = changed.filter { now - $0.value <= Self.window }
    if changed.isEmpty { unchanged = [:] }
  }

  /// Whether so many changed at once that nothing more is published without a person.
  var isSudden: Bool { changed.count >= Self.least && changed.count > unchanged.count }

  /// Whether somebody changed, so that it is worth looking at others.
  var hasChange: Bool { !changed.isEmpty }
}
