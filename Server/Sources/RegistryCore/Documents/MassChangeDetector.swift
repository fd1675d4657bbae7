import SslPinningRules

/// Tells whether most endpoints changed at once, or some: a cron job that renews everything looks like the former, and so
/// does somebody who stands between this server and everything.
///
/// - Endpoints that shared one set of keys count once: one certificate for twenty names is one change.
/// - Where one shows a new key, a few of the others are probed right then: before the key has been
///   seen often enough to be published, it is known whether it is alone.
/// - It is sudden where at least three groups showed a new key within the window, and more than did not of
///   those that were probed since the last of them, or seconds before. What was calm minutes before a
///   change says nothing about it.
///
/// Pure: the time is an argument, in Unix seconds.
package struct MassChangeDetector: Sendable {
  /// The keys that were published for an endpoint before it changed.
  package typealias Group = [SPKIPin]

  private var changed: [Group: Int64] = [:]
  private var unchanged: [Group: Int64] = [:]
  /// The endpoints that changed, by their names, and when: under their new keys they are no others.
  private var members: [String: Int64] = [:]
  private var sampled: Int64?

  /// Nothing was seen.
  package init() {}

  /// How long a change is remembered.
  static let window: Int64 = 600
  /// For how many seconds a calm probe counts where a change follows it.
  static let calm: Int64 = 5
  /// How many groups make a change sudden, at least.
  static let least = 3
  /// How many other groups are probed where one changed.
  package static let sample = 8

  /// An endpoint of this group was probed, and showed a new key, or nothing but published ones. Of who
  /// shows a key that is held nothing is to be noted: that is neither.
  ///
  /// - Returns: whether other groups should be probed now: what is known of them is older than this
  ///   change. Once a second at most.
  @discardableResult
  package mutating func note(
    _ endpoint: String, of group: Group, isChanged: Bool, at now: Int64
  ) -> Bool {
    changed = changed.filter { now - $0.value <= Self.window }
    members = members.filter { now - $0.value <= Self.window }
    if changed.isEmpty { unchanged = [:] }
    guard !group.isEmpty else { return false }
    guard isChanged else {
      if !changed.isEmpty, changed[group] == nil, members[endpoint] == nil {
        unchanged[group] = now
      }
      return false
    }
    guard members[endpoint] == nil else { return false }
    members[endpoint] = now
    let isNew = changed[group] == nil
    changed[group] = changed[group] ?? now
    guard isNew else { return false }
    unchanged = unchanged.filter { $0.key != group && now - $0.value <= Self.calm }
    guard sampled.map({ now > $0 || now < $0 - Self.window }) ?? true else { return false }
    sampled = now
    return true
  }

  /// Whether most endpoints, as far as is known, changed at once.
  package var isMassChange: Bool { changed.count >= Self.least && changed.count > unchanged.count }

  /// Those that changed within the window, by name.
  package var changedEndpoints: [String] { members.keys.sorted() }
}
