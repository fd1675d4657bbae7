import Pinning

/// Tells a sudden change of all endpoints from the change of some: somebody who stands between this
/// server and everything looks like the first.
///
/// - Endpoints that shared one set of keys count once: one certificate for twenty names is one change.
/// - Where one shows a new key, a few of the others are looked at right then: before the key has been
///   seen often enough to be published, it is known whether it is alone.
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
  /// How many other groups are looked at where one of the first changed.
  static let sample = 8

  /// An endpoint of this group was looked at, and showed a new key, or nothing but published ones. Of who
  /// shows a key that is held nothing is to be noted: that is neither.
  ///
  /// - Returns: whether other groups should be looked at now: this one is among the first that changed,
  ///   and how many others did is known only once they were looked at too.
  @discardableResult
  mutating func note(_ group: Group, isChanged: Bool, at now: Int64) -> Bool {
    changed = changed.filter { now - $0.value <= Self.window }
    if changed.isEmpty { unchanged = [:] }
    guard !group.isEmpty else { return false }
    let isNew = isChanged && changed[group] == nil
    if isChanged {
      changed[group] = changed[group] ?? now
      unchanged[group] = nil
    } else if !changed.isEmpty, changed[group] == nil {
      unchanged[group] = now
    }
    return isNew && changed.count <= Self.least
  }

  /// Whether so many changed at once that nothing more is published without a person.
  var isSudden: Bool { changed.count >= Self.least && changed.count > unchanged.count }
}
